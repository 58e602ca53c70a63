// What commands are called with. The editor passes a row of the view, a keybinding or another extension passes anything.

import * as v from "valibot";

const ID = v.pipe(v.string(), v.regex(/^mem_[0-9A-Za-z]{26}$/));
const anyRow = v.object({ kind: v.literal("memory"), memory: v.object({ id: ID }) });
const anyId = v.object({ id: ID });

/** Return the memory that a command is about, or nothing if the argument names none. */
export function memoryId(argument: unknown): string | undefined {
  const parsed = v.safeParse(
    v.union([
      v.pipe(
        anyRow,
        v.transform(({ memory }) => memory),
      ),
      anyId,
    ]),
    argument,
  );
  return parsed.success ? parsed.output.id : undefined;
}

/** Say what a command is to be called with, for the message when it was called with something else. */
export const NEEDS_MEMORY = 'This command is about one memory: call it from the view, or with {"id": "mem_…"}.';
