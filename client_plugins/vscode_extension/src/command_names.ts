// The commands by name; package.json declares the same, which a test compares.

export const COMMAND_NAMES = [
  "memorySidecar.rememberSelection",
  "memorySidecar.recall",
  "memorySidecar.insights",
  "memorySidecar.refresh",
  "memorySidecar.showMenu",
  "memorySidecar.restart",
  "memorySidecar.showLog",
  "memorySidecar.openMemory",
  "memorySidecar.copyId",
  "memorySidecar.challenge",
  "memorySidecar.forget",
] as const;

export type CommandName = (typeof COMMAND_NAMES)[number];
