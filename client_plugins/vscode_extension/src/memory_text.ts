// How a memory reads in lists, on hover and as a document. Plain text only: what a memory says is never markup, a link or
// an icon for the editor, whoever wrote it.

import type { Figure, Memory, Usefulness } from "./protocol.ts";

// A longer one would push what is known of use out of a side bar of the usual width.
const LABEL_LENGTH = 36;
const LONG_LABEL_LENGTH = 100;
const TOOLTIP_LENGTH = 1200;

/** Return the first line that says something, cut to fit a row. */
export function label(memory: Memory, length = LABEL_LENGTH): string {
  const line = memory.content
    .split(/\r?\n/)
    .map((text) => visible(text).trim())
    .find((text) => text !== "");
  return cut(line ?? "(blank)", length);
}

/** Return the same for lists as wide as the window. */
export function longLabel(memory: Memory): string {
  return label(memory, LONG_LABEL_LENGTH);
}

/** Return age, usefulness and marks, most telling first. */
export function description(memory: Memory): string {
  const marks = [memory.golden && "golden", memory.disputed && "disputed", memory.superseded && "superseded"];
  return [memory.age, usefulness(memory.usefulness), ...marks].filter(Boolean).join(" · ");
}

/** Say what is known of use; "not shown yet" and "shown 3 times, not used" are different things. */
export function usefulness({ used, misled, shown }: Usefulness): string {
  const parts = [used > 0 && `used ${used}×`, misled > 0 && `misled ${misled}×`].filter(Boolean);
  if (parts.length > 0) {
    return parts.join(", ");
  }
  return shown > 0 ? `shown ${shown}×, use not seen` : "not shown yet";
}

/** Return what the pointer shows, as plain text. */
export function tooltip(memory: Memory): string {
  return `${cut(visible(memory.content), TOOLTIP_LENGTH)}\n\n${facts(memory).join("\n")}`;
}

/** Return a memory as a read-only text document. */
export function asDocument(memory: Memory): string {
  return `${facts(memory).join("\n")}\n${"─".repeat(40)}\n${visible(memory.content)}\n`;
}

/** Return the insights as a read-only text document, each figure with what it rests on. */
export function insightsDocument(figures: readonly Figure[], days: number): string {
  const lines = figures.map((figure) => {
    const value = figure.value === null ? "not known yet" : String(Math.round(figure.value * 1000) / 1000);
    const proxy = figure.proxy ? `\n    stands for: ${figure.proxy}` : "";
    return `${figure.label}: ${value}\n    ${figure.numerator} of ${figure.denominator}${proxy}`;
  });
  return `How often memories helped, last ${days} days\n\n${lines.join("\n\n") || "There are no figures yet."}\n`;
}

/** Return a text that a status bar or quick pick shows as it is: there `$(name)` would be an icon. */
export function withoutIcons(text: string): string {
  return text.replaceAll("$(", "$\u200b(");
}

/** Return a text that a notification shows as it is: there `[a](command:b)` would be a link that runs a command. */
export function withoutLinks(text: string): string {
  return visible(text).replaceAll("](", "] (");
}

function facts(memory: Memory): string[] {
  const { used, misled, shown, multiplier } = memory.usefulness;
  const rows = [
    `${memory.id}  ${memory.type}  ${memory.namespace}`,
    `stored ${memory.createdAt} (${memory.age}), importance ${memory.importance.toFixed(2)}`,
    `shown ${shown}×, used ${used}×, misled ${misled}×, rank × ${multiplier.toFixed(2)}`,
    [memory.golden && "golden rule", memory.disputed && "disputed", memory.superseded && "superseded"]
      .filter(Boolean)
      .join(", "),
    memory.files?.length ? `about ${memory.files.join(", ")}` : "",
  ];
  return rows.filter((row) => row !== "").map(visible);
}

/** Take out what would turn or hide text: control characters but tab and newline, and direction overrides. */
function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it takes out
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}

function cut(text: string, length: number): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join("")}…`;
}
