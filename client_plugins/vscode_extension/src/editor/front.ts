// The editor's side of the commands: input boxes, lists, notifications and read-only documents.

import { type Disposable, EventEmitter, type TextDocumentContentProvider, Uri, window, workspace } from "vscode";
import type { Choice, Front } from "../memory_actions.ts";
import { asDocument } from "../memory_text.ts";
import type { SidecarRequests } from "../sidecar_requests.ts";

const SCHEME = "memory-sidecar";

/** Texts that are opened read-only, each under a name. */
class ReadOnlyTexts implements TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changes = new EventEmitter<Uri>();
  readonly onDidChange = this.changes.event;

  provideTextDocumentContent(uri: Uri): string {
    return (
      this.texts.get(uri.path) ?? "This was opened in an earlier window. Open it again from the view of memories.\n"
    );
  }

  async open(name: string, text: string): Promise<void> {
    const uri = Uri.from({ scheme: SCHEME, path: `/${name}.txt` });
    this.texts.set(uri.path, text);
    this.changes.fire(uri);
    await window.showTextDocument(await workspace.openTextDocument(uri), { preview: true });
  }
}

/** Build the front, and register its documents for as long as the extension runs. */
export function editorFront(requests: SidecarRequests, subscriptions: Disposable[]): Front {
  const texts = new ReadOnlyTexts();
  subscriptions.push(workspace.registerTextDocumentContentProvider(SCHEME, texts));
  return {
    async ask(title: string, hint: string): Promise<string | undefined> {
      return window.showInputBox({ title, placeHolder: hint, ignoreFocusOut: true });
    },
    async choose<Value>(title: string, choices: readonly Choice<Value>[]): Promise<Value | undefined> {
      return (await window.showQuickPick(choices, { title, matchOnDescription: true }))?.value;
    },
    async say(text: string, ...buttons: string[]): Promise<string | undefined> {
      return window.showInformationMessage(text, ...buttons);
    },
    async complain(text: string): Promise<void> {
      await window.showWarningMessage(text);
    },
    openText: (name, text) => texts.open(name, text),
    async openMemory(id: string): Promise<void> {
      const { memory } = await requests.ask("sidecar/get", { id });
      await texts.open(id, asDocument(memory));
    },
  };
}
