"""An editor before a real language server: pytest-lsp's client with the recorded capabilities of a real editor."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.uris import to_fs_path
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tests.e2e.running import ROOT

PRESETS = ("visual-studio-code", "neovim", "emacs")
DEADLINE_S = 30.0
COMMAND = (sys.executable, "-m", "sidecar", "lsp")


class Editor:
    """One editor with one language server.

    Attributes:
        statuses: What the server told of the sidecar, in order.
        refreshes: How often it asked to draw code lenses anew.
    """

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.statuses: list[Any] = []
        self.refreshes = 0
        client.feature("sidecar/statusChanged")(self._note_status())
        client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(self._note_refresh())

    @property
    def messages(self) -> list[str]:
        """What was shown to the user."""
        return [message.message for message in self.client.messages]

    @property
    def pages(self) -> list[str]:
        """The text of the pages that were opened."""
        return [_read(shown.uri) for shown in self.client.shown_documents]

    async def ask(self, name: str, **fields: Any) -> Any:
        """Send a request of ours and return its answer as plain JSON."""
        protocol: Any = self.client.protocol
        return as_json(await protocol.send_request_async(f"sidecar/{name}", fields))

    async def run(self, name: str, *arguments: Mapping[str, Any]) -> Any:
        """Run a command of ours."""
        params = types.ExecuteCommandParams(f"sidecar.{name}", arguments=list(arguments))
        return as_json(await self.client.workspace_execute_command_async(params))

    async def hover(self, uri: str, line: int, character: int) -> str:
        """Return what is shown beside the cursor; empty for nothing."""
        params = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, character))
        answer = await self.client.text_document_hover_async(params)
        if answer is None:
            return ""
        assert isinstance(answer.contents, types.MarkupContent)
        return answer.contents.value

    async def lens(self, uri: str) -> str:
        """Return the title of the code lens; empty for none."""
        lenses = await self.client.text_document_code_lens_async(
            types.CodeLensParams(types.TextDocumentIdentifier(uri))
        )
        assert len(lenses or ()) <= 1
        return lenses[0].command.title if lenses and lenses[0].command else ""

    def open(self, uri: str, language: str = "python", text: str = "") -> None:
        """Open a document."""
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def save(self, uri: str) -> None:
        """Save a document."""
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def _note_status(self) -> Any:
        def note(params: Any) -> None:
            self.statuses.append(as_json(params))

        return note

    def _note_refresh(self) -> Any:
        def note(_: Any) -> None:
            self.refreshes += 1

        return note


@asynccontextmanager
async def editor(
    home: Path,
    *folders: Path,
    preset: str = PRESETS[0],
    options: Mapping[str, Any] | None = None,
    command: Sequence[str] = COMMAND,
) -> AsyncIterator[Editor]:
    """Give an editor with these folders open; its server is told to end afterwards, and must end well."""
    client: Any = make_test_lsp_client()
    found = Editor(client)
    await client.start_io(*command, env=environment(home))
    process = client._server
    assert process is not None
    await client.initialize_session(
        types.InitializeParams(
            capabilities=client_capabilities(preset),
            client_info=types.ClientInfo(name=preset),
            workspace_folders=[types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders],
            initialization_options=dict(options) if options is not None else None,
        )
    )
    try:
        yield found
    finally:
        await client.shutdown_session()
        await client.stop()
    assert process.returncode == 0


class RawServer:
    """A language server on pipes, spoken to byte by byte.

    Attributes:
        told: What it said by itself, in order.
    """

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            COMMAND, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.told: list[dict[str, Any]] = []
        self._last = 0

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def receive(self) -> dict[str, Any]:
        """Return the next message; anything else on the way is a failure."""
        stream = self.process.stdout
        assert stream is not None
        headers = {}
        while (line := stream.readline()) != b"\r\n":
            name, separator, value = line.decode("ascii").partition(": ")
            assert separator, f"not a header: {line!r}"
            headers[name] = value
        message: dict[str, Any] = json.loads(stream.read(int(headers["Content-Length"])))
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a request, keeping aside what the server tells by itself."""
        while True:
            message = self.receive()
            if message.get("id") == number and "method" not in message:
                return message
            self.told.append(message)

    def greet(self, *folders: Path, **params: Any) -> dict[str, Any]:
        """Say hello with these folders open, and return what the server says of itself."""
        opened = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
        hello: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}, "workspaceFolders": opened}
        result = self.ask("initialize", hello | params)["result"]
        self.send({"method": "initialized", "params": {}})
        assert isinstance(result, dict)
        return result

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Send a request and return its answer, result or error."""
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        return self.answer(self._last)

    def end(self) -> int:
        """Close the server's stdin and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)

    def kill(self) -> None:
        """End it whatever it does."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            # What was written last may have found nobody.
            with suppress(BrokenPipeError):
                stream.close()
        self.process.wait()


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a server that no agent of this machine started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_"))}
    return {**kept, "SIDECAR_HOME": str(home), "PYTHONPATH": str(ROOT)}


def as_json(value: Any) -> Any:
    """Return what the client made of JSON as JSON again."""
    if hasattr(value, "_asdict"):
        return {name: as_json(below) for name, below in value._asdict().items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value


def _read(uri: str) -> str:
    path = to_fs_path(uri)
    assert path is not None
    return Path(path).read_text(encoding="utf-8")
