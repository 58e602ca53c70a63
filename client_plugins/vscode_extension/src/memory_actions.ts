// What the commands do, step by step, in terms of questions to the user and requests. The editor is behind `Front`.

import { description, insightsDocument, longLabel, withoutIcons, withoutLinks } from "./memory_text.ts";
import type { Memory } from "./protocol.ts";
import { SidecarRequestError, type SidecarRequests } from "./sidecar_requests.ts";

const INSIGHT_DAYS = 30;
const RECALL_LIMIT = 20;

export type Choice<Value> = { label: string; description: string; value: Value };

/** What a command needs of the editor. Questions resolve to nothing when the user turns away. */
export type Front = {
  ask(title: string, hint: string): Promise<string | undefined>;
  choose<Value>(title: string, choices: readonly Choice<Value>[]): Promise<Value | undefined>;
  /** Resolves to the button that was pressed. */
  say(text: string, ...buttons: string[]): Promise<string | undefined>;
  complain(text: string): Promise<void>;
  openText(name: string, text: string): Promise<void>;
  openMemory(id: string): Promise<void>;
};

const TYPES: readonly Choice<string>[] = [
  { label: "fact", description: "something that is so", value: "fact" },
  { label: "decision", description: "what was chosen, and why", value: "decision" },
  { label: "convention", description: "how things are done here", value: "convention" },
  { label: "gotcha", description: "a trap that somebody fell into", value: "gotcha" },
  { label: "pattern", description: "a shape that works", value: "pattern" },
  { label: "preference", description: "how somebody likes it", value: "preference" },
  { label: "reference", description: "where to find something", value: "reference" },
  { label: "open_question", description: "what is not settled yet", value: "open_question" },
];

/** The commands' steps. Every one tells a failure in a message with its remedy. */
export class MemoryActions {
  private readonly requests: SidecarRequests;
  private readonly front: Front;
  private readonly memoriesChanged: () => Promise<void>;

  constructor(requests: SidecarRequests, front: Front, memoriesChanged: () => Promise<void>) {
    this.requests = requests;
    this.front = front;
    this.memoriesChanged = memoriesChanged;
  }

  /** Store the selected text, with a sentence about it if the user adds one. */
  rememberSelection(selection: string, uri: string | undefined): Promise<void> {
    return this.tellingFailures(async () => {
      const content = await this.askForContent(selection);
      const type = content && (await this.front.choose("What kind of thing is it?", TYPES));
      if (!content || !type) {
        return;
      }
      const stored = await this.requests.ask("sidecar/remember", { content, type, ...(uri ? { uri } : {}) });
      await this.memoriesChanged();
      const what = stored.created ? "Remembered in" : "Already known in";
      // Whoever pasted a secret wants to know that it is not in the memory, and must not be in the file either.
      const redacted = stored.redacted?.length ? ` Taken out: ${stored.redacted.join(", ")}.` : "";
      await this.offerUndo(`${what} ${stored.namespace}.${redacted}`, stored.created ? stored.id : undefined);
    });
  }

  /**
   * Ask for a query, then offer what was found. Asked once, not for each key: every
   * question costs an embedding.
   */
  recall(uri: string | undefined): Promise<void> {
    return this.tellingFailures(async () => {
      const query = (await this.front.ask("Recall", "What do you want to know?"))?.trim();
      if (!query) {
        return;
      }
      const place = uri ? { uri } : {};
      const { memories, degraded } = await this.requests.ask("sidecar/recall", {
        query,
        limit: RECALL_LIMIT,
        ...place,
      });
      const limits = degraded ? ` (limited: ${degraded})` : "";
      if (memories.length === 0) {
        await this.front.say(withoutLinks(`Nothing is known about that${limits}.`));
        return;
      }
      const id = await this.front.choose(withoutIcons(`${memories.length} found${limits}`), memories.map(asChoice));
      if (id !== undefined) {
        await this.front.openMemory(id);
      }
    });
  }

  open(id: string): Promise<void> {
    return this.tellingFailures(() => this.front.openMemory(id));
  }

  challenge(id: string): Promise<void> {
    return this.tellingFailures(async () => {
      const reason = (await this.front.ask("Challenge", "What is wrong with it?"))?.trim();
      if (!reason) {
        return;
      }
      const { disputed } = await this.requests.ask("sidecar/challenge", { id, reason });
      await this.memoriesChanged();
      await this.front.say(disputed ? "Noted: it is disputed until somebody decides." : "Noted.");
    });
  }

  forget(id: string): Promise<void> {
    return this.tellingFailures(async () => {
      await this.forgetNow(id);
    });
  }

  insights(): Promise<void> {
    return this.tellingFailures(async () => {
      const { figures } = await this.requests.ask("sidecar/insights", { days: INSIGHT_DAYS });
      await this.front.openText("insights", insightsDocument(figures, INSIGHT_DAYS));
    });
  }

  private async askForContent(selection: string): Promise<string | undefined> {
    const isSelected = selection.trim() !== "";
    const sentence = isSelected
      ? await this.front.ask("Remember selection", "A sentence about it, or nothing for the selected text alone")
      : await this.front.ask("Remember", "What should be remembered?");
    return sentence === undefined
      ? undefined
      : [sentence.trim(), isSelected ? selection : ""].filter((part) => part !== "").join("\n\n");
  }

  private async forgetNow(id: string): Promise<void> {
    const { forgotten } = await this.requests.ask("sidecar/forget", { id });
    await this.memoriesChanged();
    const what = forgotten.length === 1 ? "1 memory" : `${forgotten.length} memories`;
    const pressed = await this.front.say(`Forgot ${what}.`, ...(forgotten.length > 0 ? ["Undo"] : []));
    if (pressed === "Undo") {
      for (const each of forgotten) {
        await this.requests.ask("sidecar/restore", { id: each });
      }
      await this.memoriesChanged();
      await this.front.say(`Restored ${what}.`);
    }
  }

  private async offerUndo(text: string, id: string | undefined): Promise<void> {
    const pressed = await this.front.say(withoutLinks(text), ...(id ? ["Open", "Undo"] : []));
    if (id && pressed === "Open") {
      await this.front.openMemory(id);
    } else if (id && pressed === "Undo") {
      await this.forgetNow(id);
    }
  }

  private async tellingFailures(steps: () => Promise<void>): Promise<void> {
    try {
      await steps();
    } catch (error) {
      if (!(error instanceof SidecarRequestError)) {
        throw error;
      }
      await this.front.complain(withoutLinks(`${error.message}${error.remedy ? `. ${error.remedy}` : ""}`));
    }
  }
}

function asChoice(memory: Memory): Choice<string> {
  return {
    label: withoutIcons(longLabel(memory)),
    description: withoutIcons(description(memory)),
    value: memory.id,
  };
}
