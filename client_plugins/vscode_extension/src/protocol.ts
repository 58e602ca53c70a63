// What is said to and by `sidecar lsp` beyond the standard protocol. Answers are checked against these schemas, so that
// a server of another version leads to a message and not to "undefined" somewhere in a view. No editor, no I/O.

import * as v from "valibot";

const usefulness = v.object({
  used: v.number(),
  misled: v.number(),
  shown: v.number(),
  multiplier: v.number(),
});

const memory = v.object({
  id: v.string(),
  content: v.string(),
  type: v.string(),
  namespace: v.string(),
  importance: v.number(),
  createdAt: v.string(),
  age: v.string(),
  golden: v.boolean(),
  disputed: v.boolean(),
  superseded: v.boolean(),
  usefulness,
  relevance: v.nullish(v.number()),
  files: v.nullish(v.array(v.string())),
});

const status = v.object({
  state: v.picklist(["running", "starting", "away"]),
  memories: v.nullish(v.number()),
  namespace: v.string(),
  version: v.nullish(v.string()),
  message: v.nullish(v.string()),
});

const figure = v.object({
  name: v.string(),
  label: v.string(),
  value: v.nullable(v.number()),
  numerator: v.number(),
  denominator: v.number(),
  proxy: v.nullish(v.string()),
});

const memories = v.array(memory);

/** The answer of each request, by the request's name. */
export const ANSWERS = {
  "sidecar/recall": v.object({ memories, degraded: v.nullish(v.string()), recallId: v.string() }),
  "sidecar/list": v.object({ memories, total: v.number() }),
  "sidecar/memoriesForFile": v.object({ memories }),
  "sidecar/get": v.object({ memory }),
  "sidecar/remember": v.object({
    id: v.string(),
    created: v.boolean(),
    namespace: v.string(),
    redacted: v.nullish(v.array(v.string())),
  }),
  "sidecar/forget": v.object({ forgotten: v.array(v.string()) }),
  "sidecar/restore": v.object({ restored: v.array(v.string()) }),
  "sidecar/challenge": v.object({ id: v.string(), disputed: v.boolean() }),
  "sidecar/insights": v.object({ figures: v.array(figure) }),
  "sidecar/status": status,
} as const;

/** The parameters of each request; the types alone, since we are the ones who send them. */
export type Parameters = {
  "sidecar/recall": { query: string; limit?: number; uri?: string };
  "sidecar/list": { uri?: string; type?: string; limit?: number };
  "sidecar/memoriesForFile": { uri: string; limit?: number };
  "sidecar/get": { id: string };
  "sidecar/remember": { content: string; type?: string; uri?: string };
  "sidecar/forget": { id: string };
  "sidecar/restore": { id: string };
  "sidecar/challenge": { id: string; reason: string };
  "sidecar/insights": { days?: number };
  "sidecar/status": Record<string, never>;
};

export type RequestName = keyof typeof ANSWERS & keyof Parameters;
export type Answer<Name extends RequestName> = v.InferOutput<(typeof ANSWERS)[Name]>;

export type Memory = v.InferOutput<typeof memory>;
export type Usefulness = v.InferOutput<typeof usefulness>;
export type Status = v.InferOutput<typeof status>;
export type Figure = v.InferOutput<typeof figure>;

/** Sent by the server when what it says of itself has changed. */
export const STATUS_CHANGED = "sidecar/statusChanged";

/** The error code of a refusal by the sidecar itself, LSP's RequestFailed. */
export const REQUEST_FAILED = -32803;

const refusal = v.object({ reason: v.string(), remedy: v.nullish(v.string()) });

/** Return the reason and remedy that come with a refusal, if they do. */
export function readRefusal(data: unknown): { reason: string; remedy: string } | undefined {
  const parsed = v.safeParse(refusal, data);
  return parsed.success ? { reason: parsed.output.reason, remedy: parsed.output.remedy ?? "" } : undefined;
}

/** Return the status in a notification, or nothing if it is none that this version knows. */
export function readStatus(value: unknown): Status | undefined {
  const parsed = v.safeParse(status, value);
  return parsed.success ? parsed.output : undefined;
}
