"""A model that plays a script, behind the two APIs that coding agents speak.

It serves the Anthropic Messages API and the OpenAI Responses API on the loopback interface. It is
also an HTTP proxy that refuses everything: a client pointed at it as its proxy reaches nothing
else, and what it tried to reach is on record.

Run it alone with `python -m tests.lab.scripted_model --script s.yaml --port 0`.
"""

import argparse
import contextlib
import json
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.lab import anthropic_messages, openai_responses
from tests.lab.player import Player
from tests.lab.script import Script

_CHARS_PER_TOKEN = 4
_POLL_S = 0.05
"""How soon the server notices that it is to stop."""


@dataclass(frozen=True)
class Received:
    """One request that reached the server."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass
class Journal:
    """Everything that reached the server, in order.

    Attributes:
        refused: Targets outside the server that a client tried to reach, as `host:port` or URL.
    """

    requests: list[Received] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class ScriptedModel:
    """Serves a script on 127.0.0.1 while used as a context manager."""

    def __init__(self, script: Script, *, port: int = 0) -> None:
        self.player = Player(script)
        self.journal = Journal()
        self._server = _Server(("127.0.0.1", port), self.player, self.journal)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)

    @property
    def url(self) -> str:
        """The root: Claude Code's base URL, and the refusing proxy. Codex's base URL is `url + "/v1"`."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self) -> None:
        """Serve until interrupted."""
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A client may hold a connection open; closing the server does not wait for it.
    block_on_close = False

    def __init__(self, address: tuple[str, int], player: Player, journal: Journal) -> None:
        super().__init__(address, _Handler)
        self.player = player
        self.journal = journal
        self.reply_numbers = count(1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if urlsplit(self.path).netloc:
            self._refuse()
            return
        try:
            self._answer(json.loads(raw or b"{}"))
        except (KeyError, TypeError, ValueError) as error:
            self.server.player.problems.append(f"POST {self.path}: cannot read the request: {error!r}")
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", "cannot read the request")

    def _answer(self, body: Mapping[str, Any]) -> None:
        self.server.journal.requests.append(Received(self.path, dict(self.headers), body))
        path = urlsplit(self.path).path
        if path.endswith("/messages"):
            reply = self.server.player.answer(anthropic_messages.read_request(body))
            events = anthropic_messages.write_reply(reply, reply_id=self._reply_id("msg"), model=body["model"])
        elif path.endswith("/responses"):
            reply = self.server.player.answer(openai_responses.read_request(body))
            events = openai_responses.write_reply(reply, reply_id=self._reply_id("resp"))
        elif path.endswith("/count_tokens"):
            tokens = len(json.dumps(body)) // _CHARS_PER_TOKEN
            self._send(HTTPStatus.OK, "application/json", json.dumps({"input_tokens": tokens}))
            return
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "not served here")
            return
        time.sleep(reply.delay_s)
        self._stream(events)

    def do_GET(self) -> None:
        if urlsplit(self.path).netloc:
            self._refuse()
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "not served here")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_CONNECT(self) -> None:
        self._refuse()

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: the journal is the log."""

    def _reply_id(self, prefix: str) -> str:
        return f"{prefix}_scripted_{next(self.server.reply_numbers):04}"

    def _refuse(self) -> None:
        self.server.journal.refused.append(self.path)
        self.close_connection = True
        self._send(HTTPStatus.FORBIDDEN, "text/plain", "nothing outside is reachable")

    def _stream(self, events: Iterable[Mapping[str, Any]]) -> None:
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._send(HTTPStatus.OK, "text/event-stream", text)

    def _send(self, status: HTTPStatus, content_type: str, text: str) -> None:
        payload = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)


def main() -> None:
    """Serve one script until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.scripted_model", description="Serve a scripted model.")
    parser.add_argument("--script", type=Path, required=True, help="YAML or JSON file with the model's replies")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one")
    options = parser.parse_args()
    with ScriptedModel(Script.load(options.script), port=options.port) as model:
        print(f"listening on {model.url}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            model.wait()
    for problem in model.player.problems:
        print(f"problem: {problem}")


if __name__ == "__main__":
    main()
