// Makes dist/extension.cjs, and beside package.json the licences that go into the package.

import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), "..");
const LICENCE_FILES = ["LICENSE", "LICENSE.md", "LICENSE.txt", "License.txt", "license"];

const { metafile } = await build({
  absWorkingDir: FOLDER,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.cjs",
  bundle: true,
  platform: "node",
  format: "cjs",
  // The Node of VS Code 1.82.
  target: "node18",
  external: ["vscode"],
  minify: true,
  metafile: true,
  logLevel: "warning",
});

const packages = Object.keys(metafile.inputs).flatMap(
  (path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? [],
);
writeFileSync(join(FOLDER, "THIRD-PARTY-NOTICES.txt"), [...new Set(packages)].sort().map(notice).join("\n\n"));
copyFileSync(join(FOLDER, "../../LICENSE"), join(FOLDER, "LICENSE"));

function notice(path: string): string {
  const { name, version } = JSON.parse(readFileSync(join(FOLDER, path, "package.json"), "utf8"));
  const file = LICENCE_FILES.map((each) => join(FOLDER, path, each)).find(existsSync);
  if (file === undefined) {
    throw new Error(`${name} has no licence file, and may not be shipped without: add its name to LICENCE_FILES`);
  }
  return `${name} ${version}\n${"-".repeat(60)}\n${readFileSync(file, "utf8")}`;
}
