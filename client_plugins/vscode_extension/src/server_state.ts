// What the status bar says, and when a notification is due: every cause is told once, until it is over. Pure.

import { withoutLinks } from "./memory_text.ts";
import type { Status } from "./protocol.ts";

/** What may happen to the language server, as seen from the editor. */
export type ServerEvent =
  | { kind: "starting" }
  | { kind: "status"; status: Status }
  | { kind: "not_found"; message: string }
  | { kind: "failed"; message: string };

/** What is known of the server, and which cause the user has been told of. */
export type ServerState = { event: ServerEvent; told: string };

/** A message that is due, and whether the settings are where its cause is cured. */
export type Notice = { text: string; offersSettings: boolean };

const ICONS: Record<Status["state"], string> = {
  running: "$(database)",
  starting: "$(sync~spin)",
  away: "$(debug-disconnect)",
};
const SENTENCES: Record<Status["state"], string> = {
  running: "The memory sidecar is running",
  starting: "The memory sidecar is starting",
  away: "The memory sidecar is away",
};

export const AT_FIRST: ServerState = { event: { kind: "starting" }, told: "" };

/** Return the state after an event, and the notice that it calls for. */
export function after(state: ServerState, event: ServerEvent): { state: ServerState; notice?: Notice } {
  if (event.kind === "not_found" || event.kind === "failed") {
    // One crash is told of in several ways: the start fails, then every start again, then there are no more.
    const cause = event.kind === "failed" ? event.kind : event.message;
    const next = { event, told: cause };
    return state.told === cause
      ? { state: next }
      : { state: next, notice: { text: withoutLinks(event.message), offersSettings: event.kind === "not_found" } };
  }
  // The server itself says in a message of its own when the sidecar is away, so that nothing is added here.
  const isOver = event.kind === "status" && event.status.state === "running";
  return { state: { event, told: isOver ? "" : state.told } };
}

/** Return what the status bar shows; `isWarning` is for what keeps memories from being there. */
export function statusBar({ event }: ServerState): { text: string; tooltip: string; isWarning: boolean } {
  if (event.kind === "starting") {
    return {
      text: "$(sync~spin) Memory",
      tooltip: "The language server of the memory sidecar is starting",
      isWarning: false,
    };
  }
  if (event.kind === "not_found" || event.kind === "failed") {
    return { text: "$(error) Memory", tooltip: event.message, isWarning: true };
  }
  const { state, memories, namespace, version, message } = event.status;
  const facts = [`${SENTENCES[state]}${version ? ` (${version})` : ""}`, `Memories go to ${namespace}`, message ?? ""];
  return {
    text: `${ICONS[state]} ${memories ?? "Memory"}`,
    tooltip: facts.filter((fact) => fact !== "").join("\n"),
    isWarning: state === "away",
  };
}

/** Says how often a server that ended may be started again: a few times, then no more until asked for. */
export class RestartBudget {
  private readonly most: number;
  private readonly windowMs: number;
  private readonly endedAtMs: number[] = [];

  constructor({ most = 3, windowMs = 180_000 }: { most?: number; windowMs?: number } = {}) {
    this.most = most;
    this.windowMs = windowMs;
  }

  /** Note an end and tell whether one more start is allowed. */
  allowsAnother(nowMs: number): boolean {
    this.endedAtMs.push(nowMs);
    return this.endedAtMs.filter((endedAtMs) => nowMs - endedAtMs < this.windowMs).length <= this.most;
  }
}
