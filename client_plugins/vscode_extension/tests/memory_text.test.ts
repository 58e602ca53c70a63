import assert from "node:assert/strict";
import { test } from "node:test";
import * as text from "../src/memory_text.ts";
import { memory } from "./memories.ts";

test("the label is the first line that says something, cut to a row", () => {
  assert.equal(text.label(memory({ content: "\n   \n  Use uv.  \nmore" })), "Use uv.");
  assert.equal(text.label(memory({ content: " \n" })), "(blank)");
  const long = text.label(memory({ content: "𝒳".repeat(200) }));
  assert.equal([...long].length, 36);
  assert.ok(long.endsWith("𝒳…"), "a character of two units is not cut in half");
});

test("being shown is not told as being useful", () => {
  const none = { used: 0, misled: 0, shown: 0, multiplier: 1 };
  assert.equal(text.usefulness(none), "not shown yet");
  assert.equal(text.usefulness({ ...none, shown: 4 }), "shown 4×, use not seen");
  assert.equal(text.usefulness({ ...none, shown: 4, used: 2, misled: 1 }), "used 2×, misled 1×");
});

test("the description has age, use and marks", () => {
  assert.equal(text.description(memory()), "3 d · not shown yet");
  assert.equal(
    text.description(memory({ golden: true, disputed: true, superseded: true })),
    "3 d · not shown yet · golden · disputed · superseded",
  );
});

test("what would hide or turn text is taken out, everything else is kept", () => {
  const tricky = "ab\u0000c\u001b[31m \u202etxt\u2066 <b>&amp;</b> [x](command:y)\n\tend";
  const shown = text.asDocument(memory({ content: tricky }));
  assert.ok(shown.includes("abc[31m txt <b>&amp;</b> [x](command:y)\n\tend"));
  assert.ok(text.tooltip(memory({ content: tricky })).startsWith("abc[31m txt <b>"));
});

test("a document tells what is known of the memory", () => {
  const shown = text.asDocument(
    memory({
      golden: true,
      files: ["src/a.ts"],
      usefulness: { used: 2, misled: 0, shown: 5, multiplier: 1.164 },
    }),
  );
  assert.match(shown, /^mem_\w{26} {2}convention {2}project:shop\n/);
  assert.match(shown, /shown 5×, used 2×, misled 0×, rank × 1\.16\ngolden rule\nabout src\/a\.ts\n─+\nDeploys go out/);
});

test("a notification cannot hold a link that runs a command", () => {
  assert.equal(text.withoutLinks("[here](command:x)"), "[here] (command:x)");
  // Links are found again if what stood between the brackets is taken out later than they are broken.
  assert.equal(text.withoutLinks("[here]\u202e(command:x)"), "[here] (command:x)");
});

test("a list cannot hold an icon that a memory asks for", () => {
  assert.doesNotMatch(text.withoutIcons("a $(trash) b"), /\$\(/);
});

test("each figure stands with what it rests on, and an unknown one is not a zero", () => {
  const shown = text.insightsDocument(
    [
      { name: "hit_rate", label: "Hit rate", value: 0.41234, numerator: 7, denominator: 17, proxy: "judged by texts" },
      { name: "precision", label: "Context precision", value: null, numerator: 0, denominator: 0 },
    ],
    30,
  );
  assert.match(shown, /Hit rate: 0\.412\n {4}7 of 17\n {4}stands for: judged by texts/);
  assert.match(shown, /Context precision: not known yet\n {4}0 of 0/);
  assert.match(text.insightsDocument([], 30), /no figures yet/);
});
