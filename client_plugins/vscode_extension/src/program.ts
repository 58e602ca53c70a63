// Finds the program to start. Only full paths come out, so that nothing in an open folder can stand in for it.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** Where to look; given from outside for tests. */
export type Surroundings = {
  platform: string;
  home: string;
  path: string;
  isProgram: (path: string) => boolean;
};

export type Program = { path: string } | { missing: string };

/** Return the full path of the program that a setting names, or why there is none and what to do. */
export function findProgram(setting: string, surroundings: Surroundings): Program {
  const name = setting.trim() || "sidecar";
  const expanded = /^~[\\/]/.test(name) ? join(surroundings.home, name.slice(2)) : name;
  if (isAbsolute(expanded)) {
    return surroundings.isProgram(expanded)
      ? { path: expanded }
      : { missing: `The setting memorySidecar.command names ${expanded}, which is no program. Correct it.` };
  }
  if (/[\\/]/.test(expanded)) {
    return {
      missing: `The setting memorySidecar.command is ${name}, which depends on the open folder. Give a full path, or a name to look for on PATH.`,
    };
  }
  const found = places(surroundings)
    .flatMap((folder) => fileNames(expanded, surroundings.platform).map((file) => join(folder, file)))
    .find(surroundings.isProgram);
  return found === undefined
    ? {
        missing: `The program ${expanded} was not found on PATH. Install memory-sidecar, or set memorySidecar.command to the full path that "which ${expanded}" prints in a terminal.`,
      }
    : { path: found };
}

/** Return the surroundings of this process. */
export function realSurroundings(home: string): Surroundings {
  return { platform: process.platform, home, path: process.env["PATH"] ?? "", isProgram };
}

// An editor started from a menu may lack the folder that pipx and uv put programs into.
function places({ path, home }: Surroundings): string[] {
  return [...path.split(delimiter).filter(isAbsolute), join(home, ".local", "bin")];
}

// Scripts (.cmd, .bat) would need a shell, which reads the arguments once more.
function fileNames(name: string, platform: string): string[] {
  return platform === "win32" && !name.toLowerCase().endsWith(".exe") ? [`${name}.exe`] : [name];
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Whatever the reason, it cannot be started; the caller says so with the path.
    return false;
  }
}
