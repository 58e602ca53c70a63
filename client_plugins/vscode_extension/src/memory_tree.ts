// What the view of memories holds: four groups, each asked for when it is opened. Knows nothing of the editor's widgets.

import { description, label, tooltip } from "./memory_text.ts";
import type { Answer, Memory } from "./protocol.ts";
import { SidecarRequestError, type SidecarRequests } from "./sidecar_requests.ts";

export type GroupName = "file" | "project" | "golden" | "disputed";

export type GroupNode = { kind: "group"; name: GroupName; title: string };
export type MemoryNode = { kind: "memory"; memory: Memory; group: GroupName };
/** Says why there is nothing, or that there is more. */
export type NoteNode = { kind: "note"; text: string; detail: string };
export type TreeNode = GroupNode | MemoryNode | NoteNode;

/** A row as a view draws it. `icon` is the name of one of the editor's own icons. */
export type Row = { label: string; description: string; tooltip: string; icon: string; id: string };

const GROUPS: readonly GroupNode[] = [
  { kind: "group", name: "file", title: "This file" },
  { kind: "group", name: "project", title: "This project" },
  { kind: "group", name: "golden", title: "Golden" },
  { kind: "group", name: "disputed", title: "Disputed" },
];
const GROUP_ICONS: Record<GroupName, string> = {
  file: "file",
  project: "repo",
  golden: "star-full",
  disputed: "question",
};
const ROWS = 100;

/** Some memories, and what has to be said about those that are not among them. */
type Listing = { memories: readonly Memory[]; leftOut: string };

/** The groups and their memories. Answers are kept until `forgetAnswers`. */
export class MemoryTree {
  private readonly requests: SidecarRequests;
  private fileUri: string | undefined;
  private folderUri: string | undefined;
  private newest: Promise<Answer<"sidecar/list">> | undefined;
  private rules: Promise<Answer<"sidecar/list">> | undefined;
  private aboutFile: Promise<Answer<"sidecar/memoriesForFile">> | undefined;

  constructor(requests: SidecarRequests) {
    this.requests = requests;
  }

  /** Take note of the file in front and of the folder it is in; true if what is shown may be another now. */
  lookAt(fileUri: string | undefined, folderUri: string | undefined): boolean {
    if (fileUri === this.fileUri && folderUri === this.folderUri) {
      return false;
    }
    if (folderUri !== this.folderUri) {
      this.forgetAnswers();
    }
    this.fileUri = fileUri;
    this.folderUri = folderUri;
    this.aboutFile = undefined;
    return true;
  }

  forgetAnswers(): void {
    this.newest = undefined;
    this.rules = undefined;
    this.aboutFile = undefined;
  }

  /** Return what is below a node; failures are a row that says so, since a view has no other place for them. */
  async children(node?: TreeNode): Promise<readonly TreeNode[]> {
    if (node === undefined) {
      return GROUPS;
    }
    if (node.kind !== "group") {
      return [];
    }
    try {
      return nodes(node.name, await this.listing(node.name));
    } catch (error) {
      if (error instanceof SidecarRequestError) {
        this.forgetAnswers();
        return [{ kind: "note", text: error.message, detail: error.remedy }];
      }
      throw error;
    }
  }

  private async listing(name: GroupName): Promise<Listing> {
    if (name === "file") {
      return { memories: await this.memoriesAboutFile(), leftOut: "" };
    }
    this.newest ??= this.requests.ask("sidecar/list", { ...this.place(), limit: ROWS });
    const { memories, total } = await this.newest;
    const beyond = total - memories.length;
    if (name === "project") {
      return { memories, leftOut: beyond > 0 ? `and ${beyond} more` : "" };
    }
    const leftOut = beyond > 0 ? `of the newest ${memories.length}; ${beyond} more were not looked at` : "";
    if (name === "disputed") {
      return { memories: memories.filter((memory) => memory.disputed), leftOut };
    }
    // Rules are kept for long, so that they need not be among the newest memories.
    this.rules ??= this.requests.ask("sidecar/list", { ...this.place(), type: "golden_rule", limit: ROWS });
    const { memories: rules } = await this.rules;
    return {
      memories: merged(
        rules,
        memories.filter((memory) => memory.golden),
      ),
      leftOut,
    };
  }

  private async memoriesAboutFile(): Promise<readonly Memory[]> {
    if (this.fileUri === undefined) {
      return [];
    }
    this.aboutFile ??= this.requests.ask("sidecar/memoriesForFile", { uri: this.fileUri });
    return (await this.aboutFile).memories;
  }

  // Of a file, never of a folder, for which the server would take the project that the folder lies in. A file from
  // elsewhere, such as a page that the server shows, does not change which project is looked at.
  private place(): { uri?: string } {
    const { fileUri, folderUri } = this;
    const isInside = fileUri !== undefined && (folderUri === undefined || fileUri.startsWith(`${folderUri}/`));
    return isInside ? { uri: fileUri } : {};
  }
}

/** Return how a node is drawn. */
export function row(node: TreeNode): Row {
  switch (node.kind) {
    case "group":
      return { label: node.title, description: "", tooltip: "", icon: GROUP_ICONS[node.name], id: node.name };
    case "note":
      return { label: node.text, description: node.detail, tooltip: node.detail, icon: "", id: "" };
    case "memory":
      return {
        label: label(node.memory),
        description: description(node.memory),
        tooltip: tooltip(node.memory),
        icon: memoryIcon(node.memory),
        // The same memory may stand in several groups, and ids of rows must differ.
        id: `${node.group}/${node.memory.id}`,
      };
  }
}

function memoryIcon(memory: Memory): string {
  if (memory.disputed) {
    return "question";
  }
  if (memory.golden) {
    return "star-full";
  }
  return memory.usefulness.used > 0 ? "check" : "circle-outline";
}

function nodes(group: GroupName, { memories, leftOut }: Listing): readonly TreeNode[] {
  const found: TreeNode[] = memories.map((memory) => ({ kind: "memory", memory, group }));
  if (found.length === 0) {
    found.push({ kind: "note", text: "None yet", detail: "" });
  }
  if (leftOut !== "") {
    found.push({ kind: "note", text: leftOut, detail: "Recall… finds them" });
  }
  return found;
}

function merged(first: readonly Memory[], second: readonly Memory[]): readonly Memory[] {
  return [...new Map([...first, ...second].map((memory) => [memory.id, memory])).values()];
}
