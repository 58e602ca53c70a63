// Runs `sidecar lsp` by the editor's language client, and tells what becomes of it.

import { homedir } from "node:os";
import { type Disposable, type LogOutputChannel, window, workspace } from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  TransportKind,
} from "vscode-languageclient/node";
import { initializationOptions } from "../initialization.ts";
import { findProgram, realSurroundings } from "../program.ts";
import { readStatus, STATUS_CHANGED } from "../protocol.ts";
import { RestartBudget, type ServerEvent } from "../server_state.ts";
import { SidecarRequestError } from "../sidecar_requests.ts";

/** One language server at a time. */
export class LanguageServer implements Disposable {
  private readonly log: LogOutputChannel;
  private readonly happened: (event: ServerEvent) => void;
  private client: LanguageClient | undefined;
  private turn: Promise<void> = Promise.resolve();

  constructor(happened: (event: ServerEvent) => void) {
    this.log = window.createOutputChannel("Memory Sidecar", { log: true });
    this.happened = happened;
  }

  showLog(): void {
    this.log.show();
  }

  /** Start, or start anew with the settings of now. Calls wait for each other. */
  restart(): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.stop();
      await this.start();
    });
    return this.turn;
  }

  /** Send a request. Its answer is unchecked. */
  send(name: string, parameters: object): Promise<unknown> {
    if (!this.client?.isRunning()) {
      throw new SidecarRequestError("The language server of the memory sidecar is not running", {
        reason: "not_running",
        remedy: 'The command "Memory: Show Menu" starts it again and shows its log.',
      });
    }
    return this.client.sendRequest(name, parameters);
  }

  /** Ask how things stand; what comes of it is told as an event. */
  async askStatus(): Promise<void> {
    if (!this.client?.isRunning()) {
      return;
    }
    try {
      this.noteStatus(await this.client.sendRequest("sidecar/status", {}));
    } catch (error) {
      this.happened({ kind: "failed", message: `The language server does not tell its status: ${messageOf(error)}` });
    }
  }

  async dispose(): Promise<void> {
    await this.turn;
    await this.stop();
    this.log.dispose();
  }

  private async start(): Promise<void> {
    this.happened({ kind: "starting" });
    const settings = workspace.getConfiguration("memorySidecar");
    const program = findProgram(settings.get("command", "sidecar"), realSurroundings(homedir()));
    if ("missing" in program) {
      this.happened({ kind: "not_found", message: program.missing });
      return;
    }
    const server = { command: program.path, args: ["lsp"], transport: TransportKind.stdio };
    const client = new LanguageClient("memorySidecar", "Memory Sidecar", server, this.clientOptions());
    client.onNotification(STATUS_CHANGED, (value: unknown) => this.noteStatus(value));
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.happened({ kind: "failed", message: `${program.path} lsp did not start: ${messageOf(error)}` });
      return;
    }
    await this.askStatus();
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      // A server that does not end in time is killed by the client; the next start must not wait for it.
      this.log.warn(`the server did not end as asked: ${error}`);
    }
  }

  private clientOptions(): LanguageClientOptions {
    const settings = workspace.getConfiguration("memorySidecar");
    const restarts = new RestartBudget();
    return {
      documentSelector: [{ scheme: "file" }],
      initializationOptions: initializationOptions({
        home: settings.get("home", ""),
        namespace: settings.get("namespace", ""),
        hover: settings.get("hover", true),
        codeLens: settings.get("codeLens", true),
        fileActivity: settings.get("fileActivity", true),
      }),
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      // Memories are written by many: nothing in them may run a command or be HTML.
      markdown: { isTrusted: false, supportHtml: false },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (restarts.allowsAnother(Date.now())) {
            return { action: CloseAction.Restart, handled: true };
          }
          this.happened({
            kind: "failed",
            message: "The language server of the memory sidecar ended again and again.",
          });
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  private noteStatus(value: unknown): void {
    const status = readStatus(value);
    if (status === undefined) {
      this.log.warn("the server told a status that this version does not know");
      return;
    }
    this.happened({ kind: "status", status });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
