"""Requests as no browser would make them, byte by byte."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

Headers = Iterable[tuple[str, str]]

SAME_ORIGIN = ("Sec-Fetch-Site", "same-origin")


@dataclass(frozen=True)
class Answer:
    """What came back; `status` is 0 if the connection was just closed."""

    status: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Door:
    """A dashboard that listens, and a link to it."""

    port: int
    prefix: str
    link_path: str

    @classmethod
    def of(cls, url: str) -> "Door":
        """Return where a link leads."""
        parts = urlsplit(url)
        assert parts.hostname == "127.0.0.1"
        assert parts.port is not None
        assert len(parse_qs(parts.query)["token"][0]) >= 43
        return cls(parts.port, parts.path.removesuffix("/open"), f"{parts.path}?{parts.query}")

    @property
    def host(self) -> tuple[str, str]:
        """The header that is right."""
        return ("Host", f"127.0.0.1:{self.port}")

    def ask(self, target: str, headers: Headers | None = None, *, method: str = "GET", body: bytes = b"") -> Answer:
        """Send one request with exactly these headers; the right host if none are given."""
        given = list([self.host] if headers is None else headers)
        if body:
            given.append(("Content-Length", str(len(body))))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given), "Connection: close"]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return self.send(head + body)

    def send(self, raw: bytes) -> Answer:
        """Send these bytes and return the answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(raw)
            received = b""
            try:
                while chunk := connection.recv(65536):
                    received += chunk
            except ConnectionResetError:
                pass
        head, _, content = received.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1]) if lines[0] else 0
        pairs = (line.partition(":") for line in lines[1:])
        return Answer(status, {name.lower(): value.strip() for name, _, value in pairs}, content.decode("utf-8"))

    def log_in(self) -> tuple[str, str]:
        """Follow the link and return the header with the cookie that came of it."""
        answer = self.ask(self.link_path)
        assert answer.status == 200, answer.body
        return ("Cookie", answer.headers["set-cookie"].partition(";")[0])
