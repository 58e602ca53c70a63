// Typed requests to the language server. The connection is given from outside: the editor's client, or a bare one in tests.

import * as v from "valibot";
import { ANSWERS, type Answer, type Parameters, REQUEST_FAILED, type RequestName, readRefusal } from "./protocol.ts";

/** Sends one request and resolves to its raw answer; rejects as the connection does. */
export type Send = (name: string, parameters: object) => Promise<unknown>;

/** A request that was not answered: what is wrong, and what to do if that is known. */
export class SidecarRequestError extends Error {
  readonly reason: string;
  readonly remedy: string;

  constructor(message: string, { reason, remedy = "", cause }: { reason: string; remedy?: string; cause?: unknown }) {
    super(message, { cause });
    this.name = "SidecarRequestError";
    this.reason = reason;
    this.remedy = remedy;
  }
}

/** Asks the language server, and gives back what this version understands or a `SidecarRequestError`. */
export class SidecarRequests {
  private readonly send: Send;

  constructor(send: Send) {
    this.send = send;
  }

  async ask<Name extends RequestName>(name: Name, parameters: Parameters[Name]): Promise<Answer<Name>> {
    let raw: unknown;
    try {
      raw = await this.send(name, parameters);
    } catch (error) {
      throw toRequestError(name, error);
    }
    const parsed = v.safeParse(ANSWERS[name], raw);
    if (!parsed.success) {
      const at = v.getDotPath(parsed.issues[0]) ?? "the answer itself";
      throw new SidecarRequestError(`The answer to ${name} is not as expected at ${at}`, {
        reason: "unexpected_answer",
        remedy: "Update the sidecar and this extension to versions that belong together.",
      });
    }
    return parsed.output as Answer<Name>;
  }
}

function toRequestError(name: string, error: unknown): SidecarRequestError {
  if (error instanceof SidecarRequestError) {
    return error;
  }
  const message = error instanceof Error ? error.message : String(error);
  const { code, data } = Object(error) as { code?: unknown; data?: unknown };
  const told = code === REQUEST_FAILED ? readRefusal(data) : undefined;
  if (told) {
    return new SidecarRequestError(message, { ...told, cause: error });
  }
  return new SidecarRequestError(`${name} failed: ${message}`, { reason: "request_failed", cause: error });
}
