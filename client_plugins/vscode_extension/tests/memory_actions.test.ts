import assert from "node:assert/strict";
import { test } from "node:test";
import { type Choice, type Front, MemoryActions } from "../src/memory_actions.ts";
import { awayError, ID, memory, OTHER_ID, scripted } from "./memories.ts";

/** A user who answers from a list, and sees everything that is said. */
class ScriptedUser implements Front {
  readonly seen: string[] = [];
  private readonly answers: (string | undefined)[];

  constructor(...answers: (string | undefined)[]) {
    this.answers = answers;
  }

  async ask(title: string): Promise<string | undefined> {
    this.seen.push(`ask ${title}`);
    return this.answers.shift();
  }

  async choose<Value>(title: string, choices: readonly Choice<Value>[]): Promise<Value | undefined> {
    this.seen.push(`choose ${title}: ${choices.map(({ label }) => label).join("|")}`);
    const wanted = this.answers.shift();
    return choices.find(({ label }) => label === wanted)?.value;
  }

  async say(text: string, ...buttons: string[]): Promise<string | undefined> {
    this.seen.push([`say ${text}`, ...buttons].join(" / "));
    return buttons.length > 0 ? this.answers.shift() : undefined;
  }

  async complain(text: string): Promise<void> {
    this.seen.push(`complain ${text}`);
  }

  async openText(name: string, text: string): Promise<void> {
    this.seen.push(`text ${name} ${text.length > 0}`);
  }

  async openMemory(id: string): Promise<void> {
    this.seen.push(`open ${id}`);
  }
}

function set(user: ScriptedUser, answers: Record<string, unknown>) {
  const { requests, asked } = scripted(answers);
  let changes = 0;
  const actions = new MemoryActions(requests, user, async () => {
    changes += 1;
  });
  return { actions, asked, changes: () => changes };
}

const STORED = { "sidecar/remember": { id: ID, created: true, namespace: "project:shop" } };
const FORGOTTEN = { "sidecar/forget": { forgotten: [ID, OTHER_ID] }, "sidecar/restore": { restored: [ID] } };

test("a selection is stored as it is, after the sentence about it", async () => {
  const user = new ScriptedUser(" Retries go here. ", "gotcha", undefined);
  const { actions, asked, changes } = set(user, STORED);
  await actions.rememberSelection("  def retry():\n    ...\n", "file:///shop/app.py");
  assert.deepEqual(asked, [
    [
      "sidecar/remember",
      { content: "Retries go here.\n\n  def retry():\n    ...\n", type: "gotcha", uri: "file:///shop/app.py" },
    ],
  ]);
  assert.equal(changes(), 1);
  assert.equal(user.seen.at(-1), "say Remembered in project:shop. / Open / Undo");
});

test("secrets that were taken out are told by kind", async () => {
  const user = new ScriptedUser("key is x", "fact", undefined);
  const { actions } = set(user, {
    "sidecar/remember": { id: ID, created: true, namespace: "global", redacted: ["github-token"] },
  });
  await actions.rememberSelection("", undefined);
  assert.equal(user.seen.at(-1), "say Remembered in global. Taken out: github-token. / Open / Undo");
});

test("turning away at any question stores nothing", async () => {
  for (const user of [new ScriptedUser(undefined), new ScriptedUser("about it", undefined), new ScriptedUser("")]) {
    const { actions, asked, changes } = set(user, {});
    await actions.rememberSelection(user.seen.length === 0 ? "" : "text", undefined);
    assert.deepEqual(asked, []);
    assert.equal(changes(), 0);
  }
});

test("what was known already offers no undo, which would forget another's memory", async () => {
  const user = new ScriptedUser("Use uv.", "fact");
  const { actions } = set(user, { "sidecar/remember": { id: ID, created: false, namespace: "global" } });
  await actions.rememberSelection("", undefined);
  assert.equal(user.seen.at(-1), "say Already known in global.");
});

test("forgetting can be undone, all of it", async () => {
  const user = new ScriptedUser("Undo");
  const { actions, asked, changes } = set(user, FORGOTTEN);
  await actions.forget(ID);
  assert.deepEqual(asked, [
    ["sidecar/forget", { id: ID }],
    ["sidecar/restore", { id: ID }],
    ["sidecar/restore", { id: OTHER_ID }],
  ]);
  assert.deepEqual(user.seen, ["say Forgot 2 memories. / Undo", "say Restored 2 memories."]);
  assert.equal(changes(), 2);
});

test("a query is one recall, and what is chosen is opened", async () => {
  const found = memory({ content: "Costs $(trash) and more" });
  const user = new ScriptedUser("deploy", "Costs $\u200b(trash) and more");
  const { actions, asked } = set(user, {
    "sidecar/recall": { memories: [found], degraded: "no vectors", recallId: "rec_1" },
  });
  await actions.recall(undefined);
  assert.deepEqual(asked, [["sidecar/recall", { query: "deploy", limit: 20 }]]);
  assert.match(user.seen[1] ?? "", /^choose 1 found \(limited: no vectors\)/);
  assert.equal(user.seen.at(-1), `open ${ID}`);
});

test("finding nothing is said, and a blank query is not asked", async () => {
  const user = new ScriptedUser("deploy");
  await set(user, { "sidecar/recall": { memories: [], recallId: "rec_1" } }).actions.recall(undefined);
  assert.equal(user.seen.at(-1), "say Nothing is known about that.");
  const { actions, asked } = set(new ScriptedUser("  "), {});
  await actions.recall(undefined);
  assert.deepEqual(asked, []);
});

test("a challenge needs a reason", async () => {
  const user = new ScriptedUser("It is Friday now.");
  const { actions, asked } = set(user, { "sidecar/challenge": { id: ID, disputed: true } });
  await actions.challenge(ID);
  assert.deepEqual(asked, [["sidecar/challenge", { id: ID, reason: "It is Friday now." }]]);
  const silent = set(new ScriptedUser(""), {});
  await silent.actions.challenge(ID);
  assert.deepEqual(silent.asked, []);
});

test("insights open as a text", async () => {
  const user = new ScriptedUser();
  await set(user, { "sidecar/insights": { figures: [] } }).actions.insights();
  assert.deepEqual(user.seen, ["text insights true"]);
});

test("a failure is told with its remedy, and no success with it", async () => {
  const user = new ScriptedUser();
  const { actions, changes } = set(user, { "sidecar/forget": awayError() });
  await actions.forget(ID);
  assert.deepEqual(user.seen, ["complain the sidecar is not running. Run `sidecar start`."]);
  assert.equal(changes(), 0);
});
