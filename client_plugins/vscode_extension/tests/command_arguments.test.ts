import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryId } from "../src/command_arguments.ts";
import { initializationOptions } from "../src/initialization.ts";
import { ID, memory } from "./memories.ts";

test("a row of the view and an object with an id name a memory", () => {
  assert.equal(memoryId({ kind: "memory", memory: memory(), group: "file" }), ID);
  assert.equal(memoryId({ id: ID }), ID);
});

for (const argument of [
  undefined,
  null,
  ID,
  7,
  {},
  { id: "" },
  { id: "../x" },
  { id: [ID] },
  { kind: "note", text: ID },
]) {
  test(`${JSON.stringify(argument)} names no memory`, () => {
    assert.equal(memoryId(argument), undefined);
  });
}

test("the server is told what is set, and nothing else", () => {
  const switches = { hover: true, codeLens: false, fileActivity: true };
  assert.deepEqual(initializationOptions({ ...switches, home: " ", namespace: "" }), switches);
  assert.deepEqual(initializationOptions({ ...switches, home: "/data", namespace: " project:shop " }), {
    ...switches,
    home: "/data",
    namespace: "project:shop",
  });
});
