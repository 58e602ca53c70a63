// A language server for tests that answers as the contract says, over stdio, with two memories that it keeps in itself.
// What it cannot show is whether the real server answers so; tests/e2e/test_editor_plugins.py runs the same test on that.

import { createMessageConnection, ResponseError } from "vscode-jsonrpc/node.js";
import type { Memory } from "../src/protocol.ts";
import { memory } from "./memories.ts";

const connection = createMessageConnection(process.stdin, process.stdout);
const memories = new Map<string, Memory>();
const forgotten = new Set<string>();

function kept(): Memory[] {
  return [...memories.values()].filter(({ id }) => !forgotten.has(id));
}

function known(id: string): Memory {
  const found = memories.get(id);
  if (found === undefined) {
    throw new ResponseError(-32803, `no memory ${id}`, { reason: "MEMORY_NOT_FOUND", remedy: "List memories." });
  }
  return found;
}

connection.onRequest("initialize", () => ({ capabilities: {}, serverInfo: { name: "memory-sidecar" } }));
connection.onRequest("shutdown", () => null);
connection.onNotification("exit", () => process.exit(0));
connection.onRequest("sidecar/status", () => ({
  state: "running",
  memories: kept().length,
  namespace: "project:shop",
}));
connection.onRequest("sidecar/remember", ({ content, type }: { content: string; type: string }) => {
  const same = kept().find((each) => each.content === content);
  const id = same?.id ?? `mem_${String(memories.size).padStart(26, "0")}`;
  memories.set(id, memory({ id, content, type }));
  void connection.sendNotification("sidecar/statusChanged", {
    state: "running",
    memories: kept().length,
    namespace: "project:shop",
  });
  return { id, created: same === undefined, namespace: "project:shop" };
});
connection.onRequest("sidecar/recall", () => ({ memories: kept(), recallId: "rec_0" }));
connection.onRequest("sidecar/list", () => ({ memories: kept(), total: kept().length }));
connection.onRequest("sidecar/memoriesForFile", () => ({ memories: [] }));
connection.onRequest("sidecar/get", ({ id }: { id: string }) => ({ memory: known(id) }));
connection.onRequest("sidecar/forget", ({ id }: { id: string }) => {
  forgotten.add(known(id).id);
  return { forgotten: [id] };
});
connection.onRequest("sidecar/restore", ({ id }: { id: string }) => {
  forgotten.delete(known(id).id);
  return { restored: [id] };
});
connection.onRequest("sidecar/challenge", ({ id }: { id: string }) => {
  memories.set(id, { ...known(id), disputed: true });
  return { id, disputed: true };
});
connection.onRequest("sidecar/insights", () => ({
  figures: [{ name: "hit_rate", label: "Hit rate", value: null, numerator: 0, denominator: 0 }],
}));
connection.listen();
