import assert from "node:assert/strict";
import { test } from "node:test";
import type { Status } from "../src/protocol.ts";
import { AT_FIRST, after, RestartBudget, type ServerEvent, statusBar } from "../src/server_state.ts";

const RUNNING: Status = { state: "running", memories: 12, namespace: "project:shop", version: "0.1.0" };
const NOT_FOUND: ServerEvent = { kind: "not_found", message: "no program" };

function noticesOf(events: readonly ServerEvent[]): string[] {
  let state = AT_FIRST;
  const texts: string[] = [];
  for (const event of events) {
    const outcome = after(state, event);
    state = outcome.state;
    texts.push(...(outcome.notice ? [outcome.notice.text] : []));
  }
  return texts;
}

test("a cause is told once, until the server has run", () => {
  const starting: ServerEvent = { kind: "starting" };
  assert.deepEqual(noticesOf([NOT_FOUND, starting, NOT_FOUND]), ["no program"]);
  assert.deepEqual(noticesOf([NOT_FOUND, { kind: "failed", message: "it ended" }]), ["no program", "it ended"]);
  assert.deepEqual(noticesOf([NOT_FOUND, { kind: "status", status: RUNNING }, NOT_FOUND]), [
    "no program",
    "no program",
  ]);
});

test("one crash is one message, however many things fail in turn", () => {
  assert.deepEqual(
    noticesOf([
      { kind: "failed", message: "it did not start" },
      { kind: "failed", message: "it ended again and again" },
    ]),
    ["it did not start"],
  );
});

test("the sidecar being away is left to the server to tell", () => {
  assert.deepEqual(noticesOf([{ kind: "status", status: { state: "away", namespace: "global" } }]), []);
});

test("settings are offered where they are the cure", () => {
  assert.equal(after(AT_FIRST, NOT_FOUND).notice?.offersSettings, true);
  assert.equal(after(AT_FIRST, { kind: "failed", message: "x" }).notice?.offersSettings, false);
});

test("a notice holds no link that runs a command", () => {
  const { notice } = after(AT_FIRST, { kind: "failed", message: "[x](command:y)" });
  assert.equal(notice?.text, "[x] (command:y)");
});

test("the status bar shows the count when running, and warns when memories are not there", () => {
  const shown = (event: ServerEvent) => statusBar({ event, told: "" });
  assert.deepEqual(shown({ kind: "status", status: RUNNING }), {
    text: "$(database) 12",
    tooltip: "The memory sidecar is running (0.1.0)\nMemories go to project:shop",
    isWarning: false,
  });
  assert.equal(shown({ kind: "status", status: { ...RUNNING, memories: 0 } }).text, "$(database) 0");
  assert.equal(shown({ kind: "status", status: { state: "starting", namespace: "global" } }).isWarning, false);
  const away = shown({ kind: "status", status: { state: "away", namespace: "global", message: "it sleeps" } });
  assert.equal(away.isWarning, true);
  assert.match(away.tooltip, /it sleeps/);
  assert.equal(shown(NOT_FOUND).tooltip, "no program");
  assert.match(shown({ kind: "starting" }).text, /spin/);
});

test("a server that ends again and again is let be", () => {
  const budget = new RestartBudget({ most: 2, windowMs: 1000 });
  assert.deepEqual(
    [0, 10, 20].map((now) => budget.allowsAnother(now)),
    [true, true, false],
  );
  assert.equal(budget.allowsAnother(2000), true, "old ends are forgotten");
});
