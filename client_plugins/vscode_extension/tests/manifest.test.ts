import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { COMMAND_NAMES } from "../src/command_names.ts";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const { contributes } = manifest;

test("the manifest declares exactly the commands that there are", () => {
  assert.deepEqual(
    contributes.commands.map(({ command }: { command: string }) => command).sort(),
    [...COMMAND_NAMES].sort(),
  );
});

test("menus name commands that there are", () => {
  const inMenus = Object.values(contributes.menus as Record<string, { command: string }[]>).flat();
  assert.deepEqual(
    inMenus.map(({ command }) => command).filter((name) => !(COMMAND_NAMES as readonly string[]).includes(name)),
    [],
  );
});

test("an opened folder cannot choose the program to run or the data folder", () => {
  for (const name of ["command", "home"]) {
    assert.equal(contributes.configuration.properties[`memorySidecar.${name}`].scope, "machine", name);
  }
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, false);
});

test("the extension has the version of the sidecar that it belongs to", () => {
  const project = readFileSync(new URL("../../../pyproject.toml", import.meta.url), "utf8");
  assert.equal(manifest.version, project.match(/^version = "(.+)"$/m)?.[1]);
});
