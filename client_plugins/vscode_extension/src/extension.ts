// Entry of the extension: builds the parts and ties them to the editor. Decisions are made elsewhere.

import {
  commands,
  type ExtensionContext,
  env,
  StatusBarAlignment,
  ThemeColor,
  type Uri,
  window,
  workspace,
} from "vscode";
import { memoryId, NEEDS_MEMORY } from "./command_arguments.ts";
import type { CommandName } from "./command_names.ts";
import { editorFront } from "./editor/front.ts";
import { LanguageServer } from "./editor/language_server.ts";
import { MemoryView } from "./editor/memory_view.ts";
import { MemoryActions } from "./memory_actions.ts";
import { MemoryTree } from "./memory_tree.ts";
import { AT_FIRST, after, type ServerEvent, statusBar } from "./server_state.ts";
import { SidecarRequests } from "./sidecar_requests.ts";

/** Called by the editor once it has started. */
export async function activate({ subscriptions }: ExtensionContext): Promise<void> {
  let state = AT_FIRST;
  const bar = window.createStatusBarItem("memorySidecar.state", StatusBarAlignment.Right, 50);
  bar.name = "Memory Sidecar";
  bar.command = "memorySidecar.showMenu" satisfies CommandName;
  const happened = (event: ServerEvent): void => {
    const { state: next, notice } = after(state, event);
    state = next;
    const { text, tooltip, isWarning } = statusBar(state);
    if (text !== bar.text) {
      // Another state, or another number of memories: what the view shows may be old.
      view.refresh();
    }
    bar.text = text;
    bar.tooltip = tooltip;
    bar.backgroundColor = isWarning ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    bar.show();
    if (notice) {
      void tell(notice.text, notice.offersSettings);
    }
  };
  const server = new LanguageServer(happened);
  const requests = new SidecarRequests((name, parameters) => server.send(name, parameters));
  const view = new MemoryView(new MemoryTree(requests));
  const front = editorFront(requests, subscriptions);
  const actions = new MemoryActions(requests, front, async () => {
    view.refresh();
    await server.askStatus();
  });
  subscriptions.push(bar, server, window.registerTreeDataProvider("memorySidecar.memories", view));
  registerCommands({ server, view, actions }, subscriptions);
  followEditor(view, subscriptions);
  subscriptions.push(
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("memorySidecar")) {
        void server.restart();
      }
    }),
  );
  await server.restart();
}

type Parts = { server: LanguageServer; view: MemoryView; actions: MemoryActions };

function registerCommands({ server, view, actions }: Parts, subscriptions: ExtensionContext["subscriptions"]): void {
  const about =
    (act: (id: string) => unknown) =>
    (argument: unknown): unknown => {
      const id = memoryId(argument);
      return id === undefined ? window.showWarningMessage(NEEDS_MEMORY) : act(id);
    };
  const handlers: Record<CommandName, (argument: unknown) => unknown> = {
    "memorySidecar.rememberSelection": () => {
      const editor = window.activeTextEditor;
      const text = editor && !editor.selection.isEmpty ? editor.document.getText(editor.selection) : "";
      return actions.rememberSelection(text, fileInFront()?.toString());
    },
    "memorySidecar.recall": () => actions.recall(fileInFront()?.toString()),
    "memorySidecar.insights": () => actions.insights(),
    "memorySidecar.refresh": () => view.refresh(),
    "memorySidecar.showMenu": showMenu,
    "memorySidecar.restart": () => server.restart(),
    "memorySidecar.showLog": () => server.showLog(),
    "memorySidecar.openMemory": about((id) => actions.open(id)),
    "memorySidecar.copyId": about((id) => env.clipboard.writeText(id)),
    "memorySidecar.challenge": about((id) => actions.challenge(id)),
    "memorySidecar.forget": about((id) => actions.forget(id)),
  };
  for (const [name, handler] of Object.entries(handlers)) {
    subscriptions.push(commands.registerCommand(name, handler));
  }
}

function followEditor(view: MemoryView, subscriptions: ExtensionContext["subscriptions"]): void {
  const look = (): void => {
    const uri = fileInFront();
    // A memory that is opened, a search or a picture leaves the view at the file before it. Between two editors there is
    // none for a moment, so that only a window without tabs counts as empty.
    if (uri !== undefined || window.tabGroups.all.every(({ tabs }) => tabs.length === 0)) {
      const folder = (uri && workspace.getWorkspaceFolder(uri)) ?? workspace.workspaceFolders?.[0];
      view.lookAt(uri?.toString(), folder?.uri.toString());
    }
  };
  subscriptions.push(window.onDidChangeActiveTextEditor(look));
  look();
}

function fileInFront(): Uri | undefined {
  const uri = window.activeTextEditor?.document.uri;
  return uri?.scheme === "file" ? uri : undefined;
}

async function showMenu(): Promise<void> {
  const choices: { label: string; command: CommandName }[] = [
    { label: "$(search) Recall…", command: "memorySidecar.recall" },
    { label: "$(add) Remember…", command: "memorySidecar.rememberSelection" },
    { label: "$(graph) Insights", command: "memorySidecar.insights" },
    { label: "$(debug-restart) Restart language server", command: "memorySidecar.restart" },
    { label: "$(output) Show log", command: "memorySidecar.showLog" },
  ];
  const chosen = await window.showQuickPick(choices, { title: "Memory" });
  if (chosen) {
    await commands.executeCommand(chosen.command);
  }
}

async function tell(text: string, offersSettings: boolean): Promise<void> {
  const settings = "Open Settings";
  const log = "Show Log";
  const pressed = await window.showErrorMessage(text, ...(offersSettings ? [settings] : [log]));
  if (pressed === settings) {
    await commands.executeCommand("workbench.action.openSettings", "memorySidecar.command");
  } else if (pressed === log) {
    await commands.executeCommand("memorySidecar.showLog" satisfies CommandName);
  }
}
