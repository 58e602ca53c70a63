// The requests over stdio, against the server that SIDECAR_LSP names (a JSON list of words), else a scripted one.

import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node.js";
import { initializationOptions } from "../src/initialization.ts";
import { MemoryTree } from "../src/memory_tree.ts";
import { readStatus, STATUS_CHANGED } from "../src/protocol.ts";
import { SidecarRequestError, SidecarRequests } from "../src/sidecar_requests.ts";

const SCRIPTED = [process.execPath, fileURLToPath(new URL("scripted_server.ts", import.meta.url))];
const UNKNOWN_ID = "mem_00000000000000000000000009";

let server: ChildProcessByStdio<Writable, Readable, null>;
let connection: MessageConnection;
let requests: SidecarRequests;
let statuses: unknown[];

before(async () => {
  const [program = "", ...words] = process.env["SIDECAR_LSP"] ? JSON.parse(process.env["SIDECAR_LSP"]) : SCRIPTED;
  server = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
  connection = createMessageConnection(server.stdout, server.stdin);
  requests = new SidecarRequests((name, parameters) => connection.sendRequest(name, parameters));
  statuses = [];
  connection.onNotification(STATUS_CHANGED, (value) => statuses.push(value));
  connection.listen();
  const folder = pathToFileURL(process.cwd()).toString();
  const settings = { home: "", namespace: "project:shop", hover: true, codeLens: true, fileActivity: false };
  const { serverInfo } = await connection.sendRequest<{ serverInfo: { name: string } }>("initialize", {
    processId: process.pid,
    rootUri: folder,
    workspaceFolders: [{ uri: folder, name: "folder" }],
    capabilities: {},
    initializationOptions: initializationOptions(settings),
  });
  assert.equal(serverInfo.name, "memory-sidecar");
  await connection.sendNotification("initialized", {});
});

after(async () => {
  await connection.sendRequest("shutdown");
  const ended = new Promise((resolve) => server.once("exit", resolve));
  await connection.sendNotification("exit");
  await ended;
  connection.dispose();
});

test("a memory goes through its life, each answer as the schemas say", async () => {
  const content = "Deploys go out on Tuesday, never on Friday.";
  const { id, created, namespace } = await requests.ask("sidecar/remember", { content, type: "convention" });
  assert.equal(created, true);
  assert.equal(namespace, "project:shop");
  assert.equal((await requests.ask("sidecar/remember", { content, type: "convention" })).created, false);

  const { memory } = await requests.ask("sidecar/get", { id });
  assert.equal(memory.content, content);
  assert.equal(memory.type, "convention");

  const recalled = await requests.ask("sidecar/recall", { query: "when do deploys go out?", limit: 5 });
  assert.deepEqual(
    recalled.memories.map((each) => each.id),
    [id],
  );

  assert.equal((await requests.ask("sidecar/challenge", { id, reason: "It is Friday now." })).disputed, true);
  const tree = new MemoryTree(requests);
  const disputed = await tree.children({ kind: "group", name: "disputed", title: "" });
  assert.deepEqual(
    disputed.map((node) => node.kind === "memory" && node.memory.id),
    [id],
  );

  assert.deepEqual((await requests.ask("sidecar/forget", { id })).forgotten, [id]);
  assert.deepEqual((await requests.ask("sidecar/list", { limit: 100 })).memories, []);
  assert.deepEqual((await requests.ask("sidecar/restore", { id })).restored, [id]);
  assert.equal((await requests.ask("sidecar/list", { limit: 100 })).total, 1);
});

test("status, insights and memories of a file are answered as the schemas say", async () => {
  const status = await requests.ask("sidecar/status", {});
  assert.equal(status.state, "running");
  assert.equal(status.namespace, "project:shop");
  await requests.ask("sidecar/insights", { days: 30 });
  const { memories } = await requests.ask("sidecar/memoriesForFile", { uri: import.meta.url });
  assert.deepEqual(memories, []);
});

test("every status that was told by itself can be read", () => {
  assert.ok(statuses.length > 0);
  assert.deepEqual(
    statuses.filter((value) => readStatus(value) === undefined),
    [],
  );
});

test("a refusal comes with its reason and remedy", async () => {
  await assert.rejects(requests.ask("sidecar/get", { id: UNKNOWN_ID }), (error: unknown) => {
    assert.ok(error instanceof SidecarRequestError);
    assert.match(error.message, /mem_0/);
    assert.match(error.reason, /NOT_FOUND/i);
    assert.notEqual(error.remedy, "");
    return true;
  });
});

test("an answer of another form is an error that says where, not an undefined in a view", async () => {
  const odd = new SidecarRequests(async () => ({ memories: [{ id: 7 }], total: 1 }));
  await assert.rejects(odd.ask("sidecar/list", {}), /sidecar\/list is not as expected at memories\.0\.id/);
});

test("an unknown request is refused without a reason of the sidecar", async () => {
  const asking = new SidecarRequests((_, parameters) => connection.sendRequest("sidecar/nothing", parameters));
  await assert.rejects(asking.ask("sidecar/status", {}), (error: unknown) => {
    return error instanceof SidecarRequestError && error.reason === "request_failed";
  });
});
