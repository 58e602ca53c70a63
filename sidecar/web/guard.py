"""Refuses what no page of ours would ask for, before anything is routed, and marks every answer. Pure ASGI.

The dangers are other pages in the same browser: they can make it send requests here, and can give their own name our
address (DNS rebinding). So the name must be ours, the request must come from a page of ours, and its path must be so
plain that every reading of it is the same. Sessions and tokens are checked after this, by `sidecar.web.app`.
"""

import asyncio
import logging
import re
import secrets
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 256 * 1024
REQUEST_WITHIN_S: Final = 20.0
_MAX_QUERY_BYTES: Final = 16 * 1024
# No percent signs, so that nothing can hide in them; no empty, `.` or `..` segments.
_PLAIN_PATH: Final = re.compile(rb"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9_.~-]+)+/?|/")

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_RAW_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass(frozen=True, slots=True)
class _Refusal(Exception):  # noqa: N818 - it is an answer
    """Why a request is not answered."""

    status: HTTPStatus
    reason: str


class Guard:
    """Stands before the application."""

    def __init__(self, app: ASGIApp, *, port: int, link_path: str) -> None:
        """Take what is behind it.

        Args:
            app: Answers what is let through.
            port: Of 127.0.0.1, where this listens.
            link_path: The one path that another site or program may send a browser to.
        """
        self._app = app
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._link_path = link_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        answer = _Answer(send)
        try:
            self._check(scope)
            body = _Body(receive)
            async with asyncio.timeout(REQUEST_WITHIN_S):
                await self._app(scope, body, answer.send)
        except _Refusal as refusal:
            await answer.refuse(refusal)
        except TimeoutError:
            await answer.refuse(_Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the answer took too long"))
        except Exception:
            # The traceback goes to the log, whose formatter leaves out the error's text: it may quote a memory.
            incident = secrets.token_hex(4)
            log.exception("page failed", extra={"incident": incident})
            reason = f"something went wrong; the sidecar's log has more under {incident}"
            await answer.refuse(_Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, reason))

    def _check(self, scope: Scope) -> None:
        headers = _Headers(scope)
        if headers.only(b"host") not in self._hosts:
            raise _Refusal(HTTPStatus.FORBIDDEN, "only requests for 127.0.0.1 and localhost are answered")
        if scope["method"] not in {"GET", "POST"}:
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are answered")
        path: bytes = scope["raw_path"]
        if _PLAIN_PATH.fullmatch(path) is None or len(scope["query_string"]) > _MAX_QUERY_BYTES:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "there is no such address")
        self._check_origin(scope["method"], path, headers)
        length = headers.only(b"content-length") or b"0"
        if not length.isdigit() or int(length) > MAX_BODY_BYTES:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")

    def _check_origin(self, method: str, path: bytes, headers: "_Headers") -> None:
        """Refuse what another site made the browser ask for. Browsers set these headers themselves; pages cannot."""
        origin, site = headers.only(b"origin"), headers.only(b"sec-fetch-site")
        own_origins = {b"http://" + host for host in self._hosts if host == headers.only(b"host")}
        # Without a referrer, which we ask for, browsers send `null` with a POST; the other header decides then.
        is_foreign = origin not in {None, b"null", *own_origins}
        if method == "POST":
            is_ours = site == b"same-origin" or (site is None and origin in own_origins)
        else:
            # `none`: typed, or opened by a program. Old browsers send no such header, but no cookie either.
            is_ours = site in {None, b"same-origin", b"none"} and (origin != b"null" or site == b"same-origin")
            is_followed = headers.only(b"sec-fetch-mode") == b"navigate" and (
                headers.only(b"sec-fetch-dest") == b"document"
            )
            is_ours = is_ours or (path == self._link_path and is_followed and origin is None)
        if is_foreign or not is_ours:
            raise _Refusal(HTTPStatus.FORBIDDEN, "requests from other sites are not answered")


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[bytes, bytes]] = scope["headers"]

    def only(self, name: bytes) -> bytes | None:
        """Return a header's value; None if it is missing.

        Raises:
            _Refusal: It is there twice, so that two readers might take different ones.
        """
        values = [value for key, value in self._pairs if key == name]
        if len(values) > 1:
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"there are several {name.decode()} headers")
        return values[0] if values else None


class _Body:
    """Counts what comes in."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._taken = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > MAX_BODY_BYTES:
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        return message


class _Answer:
    """Adds our headers to what goes out."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = False

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self._has_begun = True
            ours = {name for name, _ in _RAW_HEADERS}
            kept = [(name, value) for name, value in message["headers"] if name.lower() not in ours]
            message = {**message, "headers": kept + _RAW_HEADERS}
        await self._send(message)

    async def refuse(self, refusal: _Refusal) -> None:
        """Answer in one plain sentence, unless an answer is under way, which then just ends."""
        if self._has_begun:
            return
        body = f"{refusal.reason}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        # What was sent with it is not read any more, so that the connection cannot go on.
        headers.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": int(refusal.status), "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
