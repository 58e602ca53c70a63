// Memories and answers for tests, in the form that the language server sends.

import type { Memory } from "../src/protocol.ts";
import { type Send, SidecarRequests } from "../src/sidecar_requests.ts";

export const ID = "mem_01HZX3V5K8Q2W4E6R7T9Y0A1B2";
export const OTHER_ID = "mem_01HZX3V5K8Q2W4E6R7T9Y0A1B3";

export function memory(given: Partial<Memory> = {}): Memory {
  return {
    id: ID,
    content: "Deploys go out on Tuesday.",
    type: "convention",
    namespace: "project:shop",
    importance: 0.5,
    createdAt: "2026-05-04T10:00:00Z",
    age: "3 d",
    golden: false,
    disputed: false,
    superseded: false,
    usefulness: { used: 0, misled: 0, shown: 0, multiplier: 1 },
    ...given,
  };
}

/** What was asked, in order. */
export type Asked = [name: string, parameters: object];

/** Requests that are answered by a table; what is not in it fails the test that asks. */
export function scripted(answers: Record<string, unknown>): { requests: SidecarRequests; asked: Asked[] } {
  const asked: Asked[] = [];
  const send: Send = async (name, parameters) => {
    asked.push([name, parameters]);
    const answer = answers[name];
    if (answer === undefined) {
      throw new Error(`the test has no answer to ${name}`);
    }
    if (answer instanceof Error) {
      throw answer;
    }
    return typeof answer === "function" ? answer(parameters) : answer;
  };
  return { requests: new SidecarRequests(send), asked };
}

/** The refusal that the server sends when the sidecar cannot be reached. */
export function awayError(): Error {
  return Object.assign(new Error("the sidecar is not running"), {
    code: -32803,
    data: { reason: "sidecar_away", remedy: "Run `sidecar start`." },
  });
}
