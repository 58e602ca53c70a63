"""A language model's HTTP endpoint on 127.0.0.1 that answers as a test tells it, and shows what it was sent."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

_POLL_S: Final = 0.02


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: bytes


@dataclass(frozen=True)
class Reply:
    """What goes back.

    Attributes:
        headers: These besides the length.
        hold: Waited for before anything is sent.
        is_dripping: The header, and then a byte now and then until the client hangs up or `hold` is set.
        is_hanging_up: Nothing at all.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    is_dripping: bool = False
    is_hanging_up: bool = False


Script = Callable[[Asked], Reply]


class ScriptedLlm:
    """Serves while used as a context manager; `asked` holds what came, in order."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.tunnels: list[str] = []
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def everything(self) -> bytes:
        """All that was sent here, headers included."""
        return b"\n".join(repr(dict(asked.headers)).encode() + asked.raw for asked in self.asked)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: ScriptedLlm) -> None:
        super().__init__(address, _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Header and body are two writes; without this the second waits for an acknowledgement.
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.path, dict(self.headers), json.loads(raw or b"{}"), raw)
        self.server.owner.asked.append(asked)
        reply = self.server.owner.script(asked)
        if reply.is_hanging_up:
            self.close_connection = True
            return
        if reply.hold is not None and not reply.is_dripping:
            reply.hold.wait(60)
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(1_000_000 if reply.is_dripping else len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            while reply.is_dripping and reply.hold is not None and not reply.hold.wait(_POLL_S):
                self.wfile.write(b" ")
        except OSError:
            # The client gave up, which is what some tests are about.
            self.close_connection = True

    def do_CONNECT(self) -> None:
        self.server.owner.tunnels.append(self.path)
        self.send_error(403)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay quiet."""


def openai_reply(text: object, *, finish_reason: str = "stop", usage: object = None) -> Reply:
    """A chat completion with this content."""
    document = {
        "id": "chatcmpl-1",
        "model": "tiny-2026",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20} if usage is None else usage,
    }
    return Reply(json.dumps(document).encode())


def anthropic_reply(blocks: list[object], *, stop_reason: str = "tool_use", usage: object = None) -> Reply:
    """A message with these content blocks."""
    document = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "tiny-2026",
        "content": blocks,
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 100, "output_tokens": 20} if usage is None else usage,
    }
    return Reply(json.dumps(document).encode())


def text_block(text: str) -> dict[str, str]:
    """A block of text."""
    return {"type": "text", "text": text}


def tool_block(value: object, *, name: str = "verdict") -> dict[str, object]:
    """A call of the tool that takes the answer."""
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": value}
