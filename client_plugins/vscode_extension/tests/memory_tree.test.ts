import assert from "node:assert/strict";
import { test } from "node:test";
import { type GroupName, MemoryTree, row, type TreeNode } from "../src/memory_tree.ts";
import { awayError, ID, memory, OTHER_ID, scripted } from "./memories.ts";

const FILE = "file:///shop/app.py";
const FOLDER = "file:///shop";

function group(name: GroupName): TreeNode {
  return { kind: "group", name, title: name };
}

function ids(nodes: readonly TreeNode[]): string[] {
  return nodes.map((node) => (node.kind === "memory" ? node.memory.id : `${node.kind}: ${row(node).label}`));
}

test("the tree has four groups and asks for nothing until one is opened", async () => {
  const { requests, asked } = scripted({});
  const tree = new MemoryTree(requests);
  assert.deepEqual(
    (await tree.children()).map((node) => row(node).label),
    ["This file", "This project", "Golden", "Disputed"],
  );
  assert.deepEqual(asked, []);
});

test("a file's memories are asked for once, and again when another file comes to the front", async () => {
  const { requests, asked } = scripted({ "sidecar/memoriesForFile": { memories: [memory()] } });
  const tree = new MemoryTree(requests);
  assert.deepEqual(ids(await tree.children(group("file"))), ["note: None yet"]);
  assert.equal(tree.lookAt(FILE, FOLDER), true);
  assert.equal(tree.lookAt(FILE, FOLDER), false);
  assert.deepEqual(ids(await tree.children(group("file"))), [ID]);
  await tree.children(group("file"));
  tree.lookAt("file:///shop/other.py", FOLDER);
  await tree.children(group("file"));
  assert.deepEqual(asked, [
    ["sidecar/memoriesForFile", { uri: FILE }],
    ["sidecar/memoriesForFile", { uri: "file:///shop/other.py" }],
  ]);
});

test("project, golden and disputed share one listing, and say what they did not look at", async () => {
  const rule = memory({ id: OTHER_ID, golden: true, type: "golden_rule" });
  const { requests, asked } = scripted({
    "sidecar/list": ({ type }: { type?: string }) =>
      type ? { memories: [rule], total: 1 } : { memories: [memory({ disputed: true }), rule], total: 50 },
  });
  const tree = new MemoryTree(requests);
  tree.lookAt(FILE, FOLDER);
  assert.deepEqual(ids(await tree.children(group("project"))), [ID, OTHER_ID, "note: and 48 more"]);
  assert.deepEqual(ids(await tree.children(group("disputed"))), [
    ID,
    "note: of the newest 2; 48 more were not looked at",
  ]);
  assert.deepEqual(ids(await tree.children(group("golden"))).slice(0, 1), [OTHER_ID]);
  assert.deepEqual(asked, [
    ["sidecar/list", { uri: FILE, limit: 100 }],
    ["sidecar/list", { uri: FILE, type: "golden_rule", limit: 100 }],
  ]);
});

test("another folder is another project, and without a file the server's own", async () => {
  const { requests, asked } = scripted({ "sidecar/list": { memories: [], total: 0 } });
  const tree = new MemoryTree(requests);
  tree.lookAt(undefined, FOLDER);
  await tree.children(group("project"));
  tree.lookAt("file:///other/a.py", "file:///other");
  await tree.children(group("project"));
  tree.lookAt("file:///tmp/page.md", FOLDER);
  await tree.children(group("project"));
  assert.deepEqual(
    asked.map(([, parameters]) => parameters),
    [{ limit: 100 }, { uri: "file:///other/a.py", limit: 100 }, { limit: 100 }],
  );
});

test("a failure is a row with its remedy, and is asked about again next time", async () => {
  const answers: Record<string, unknown> = { "sidecar/list": awayError() };
  const { requests } = scripted(answers);
  const tree = new MemoryTree(requests);
  const [note] = await tree.children(group("project"));
  assert.ok(note);
  assert.equal(row(note).label, "the sidecar is not running");
  assert.equal(row(note).description, "Run `sidecar start`.");
  answers["sidecar/list"] = { memories: [memory()], total: 1 };
  assert.deepEqual(ids(await tree.children(group("project"))), [ID]);
});

test("a row's id differs between groups, and its icon tells the most urgent mark", () => {
  const shown = { ...memory({ golden: true, disputed: true }) };
  const rows = (["project", "golden"] as const).map((name) => row({ kind: "memory", memory: shown, group: name }));
  assert.notEqual(rows[0]?.id, rows[1]?.id);
  assert.equal(rows[0]?.icon, "question");
  const used = memory({ usefulness: { used: 1, misled: 0, shown: 1, multiplier: 1.1 } });
  assert.equal(row({ kind: "memory", memory: used, group: "file" }).icon, "check");
});
