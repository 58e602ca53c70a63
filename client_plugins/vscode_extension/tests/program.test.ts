import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { test } from "node:test";
import { findProgram, type Surroundings } from "../src/program.ts";

function surroundings(programs: readonly string[], given: Partial<Surroundings> = {}): Surroundings {
  return {
    platform: "linux",
    home: "/home/dev",
    path: ["/usr/bin", "/opt/bin"].join(delimiter),
    isProgram: (path) => programs.includes(path),
    ...given,
  };
}

test("a name is looked for on PATH, in its order", () => {
  assert.deepEqual(findProgram("sidecar", surroundings(["/opt/bin/sidecar"])), { path: "/opt/bin/sidecar" });
  assert.deepEqual(findProgram(" ", surroundings(["/usr/bin/sidecar", "/opt/bin/sidecar"])), {
    path: "/usr/bin/sidecar",
  });
});

test("where pipx and uv put programs is looked at last", () => {
  assert.deepEqual(findProgram("sidecar", surroundings(["/home/dev/.local/bin/sidecar"])), {
    path: "/home/dev/.local/bin/sidecar",
  });
});

test("nothing in the open folder is ever found", () => {
  const everywhere = surroundings([], {
    path: [".", "bin", ""].join(delimiter),
    isProgram: (path) => !path.includes(".local"),
  });
  assert.match(JSON.stringify(findProgram("sidecar", everywhere)), /not found on PATH/);
  assert.match(JSON.stringify(findProgram("./sidecar", everywhere)), /depends on the open folder/);
  assert.match(JSON.stringify(findProgram("bin/sidecar", everywhere)), /depends on the open folder/);
});

test("a full path is taken as it is, and refused with its name if it is no program", () => {
  assert.deepEqual(findProgram("/srv/sidecar", surroundings(["/srv/sidecar"])), { path: "/srv/sidecar" });
  assert.deepEqual(findProgram("~/bin/sidecar", surroundings(["/home/dev/bin/sidecar"])), {
    path: "/home/dev/bin/sidecar",
  });
  assert.match(JSON.stringify(findProgram("/srv/gone", surroundings([]))), /\/srv\/gone, which is no program/);
});

test("on Windows only programs are found, no scripts that a shell would have to run", () => {
  const windows = surroundings(["/usr/bin/sidecar.exe", "/usr/bin/sidecar.cmd"], { platform: "win32" });
  assert.deepEqual(findProgram("sidecar", windows), { path: "/usr/bin/sidecar.exe" });
});

test("what is missing comes with what to do", () => {
  const found = findProgram("sidecar", surroundings([]));
  assert.ok("missing" in found);
  assert.match(found.missing, /Install memory-sidecar, or set memorySidecar\.command/);
});
