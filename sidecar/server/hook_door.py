"""A second way in, for hooks: a few calls of the contract as lines of JSON over a Unix socket beside gRPC's.

A hook has to be over before its user notices it, and importing gRPC alone takes longer than that. This is no second
interface: each line becomes the call that it names and is made over gRPC, with the token that came with it, so that
authentication, limits and the log are the same. Where there are no Unix sockets there is no door.

A line is `{"token": …, "method": …, "request": {…}}`, the request as protobuf writes it in JSON, and is answered by
`{"answer": {…}}` or `{"error": "<status>"}`. With `"quiet": true` it is not answered, and done all the same if the
caller has gone by then.
"""

import asyncio
import contextlib
import json
import logging
import selectors
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf import json_format
from google.protobuf.message import Message

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.client.channel import bearer, open_async_channel
from sidecar.client.endpoint import Endpoint
from sidecar.client.methods import (
    ACKNOWLEDGE_CONTEXT,
    ADD_FILE_ACTIVITY,
    BUILD_CONTEXT,
    END_SESSION,
    REQUEST_READING,
    Method,
)

DOOR_NAME: Final = "hooks"
"""Name of the socket, in the folder of the sidecar's own."""

MAX_LINE_BYTES: Final = 256 * 1024
_MAX_LINES: Final = 64
_MAX_GUESTS: Final = 64
_LINE_WITHIN_S: Final = 5.0
_READ_WITHIN_S: Final = 5.0
_CALL_WITHIN_S: Final = 10.0
_LEAVE_WITHIN_S: Final = 2.0
_SETTLES_WITHIN_S: Final = 0.05
_MAX_TURNS: Final = 1_000
# One batch on a stream of its own.
_STREAM_EVIDENCE: Final = Method("EvidenceService", evidence.StreamEvidenceRequest, evidence.StreamEvidenceResponse)
_METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method
    for method in (
        BUILD_CONTEXT,
        ACKNOWLEDGE_CONTEXT,
        ADD_FILE_ACTIVITY,
        REQUEST_READING,
        END_SESSION,
        _STREAM_EVIDENCE,
    )
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one line asks for."""

    token: str
    method: Method[Any, Any]
    request: Message
    is_quiet: bool


class _NotACallError(Exception):
    """A line that is no call; the argument is what a caller is told."""


@contextlib.asynccontextmanager
async def hook_door(endpoint: Endpoint) -> AsyncIterator[None]:
    """Keep the door open for the block. Hooks do without where it cannot be opened."""
    socket_path = endpoint.socket_path
    if socket_path is None:
        yield
        return
    path = socket_path.with_name(DOOR_NAME)
    listening = _bound(path)
    if listening is None:
        yield
        return
    async with open_async_channel(endpoint) as channel:
        door = _Door(channel)
        server = await asyncio.start_unix_server(door.receive, sock=listening, limit=MAX_LINE_BYTES)
        try:
            yield
        finally:
            # In this order: nobody new finds the door, those before it come in, and what they have said is heard.
            _remove(path)
            await _let_in(listening)
            server.close()
            await door.see_off()


def _bound(path: Path) -> socket.socket | None:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # We hold the lock on the data folder, so whatever lies here is a dead run's.
        _remove(path)
        bound.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        log.warning("hooks find no door", extra={"errno": error.errno or 0})
        bound.close()
        return None
    return bound


async def _let_in(listening: socket.socket) -> None:
    """Return once nobody waits to be let in, and those who were are being listened to."""
    with selectors.DefaultSelector() as selector:
        selector.register(listening, selectors.EVENT_READ)
        for _ in range(_MAX_TURNS):
            if not selector.select(0):
                break
            await asyncio.sleep(0)
    # What was accepted is listened to some turns of the loop later.
    await asyncio.sleep(_SETTLES_WITHIN_S)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


class _Door:
    """Answers whoever comes."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._room = asyncio.Semaphore(_MAX_GUESTS)
        self._guests: set[asyncio.Task[None]] = set()

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one caller's lines in their order."""
        guest = asyncio.current_task()
        assert guest is not None, "every connection has a task of its own"
        self._guests.add(guest)
        guest.add_done_callback(self._guests.discard)
        await self._serve(reader, writer)

    async def see_off(self) -> None:
        """Hear what callers have said, up to their last line; whoever says nothing more is shown out."""
        if not self._guests:
            return
        _, left = await asyncio.wait(self._guests, timeout=_LEAVE_WITHIN_S)
        for guest in left:
            guest.cancel()
        if left:
            log.warning("hooks were shown out when the sidecar stopped", extra={"hook_count": len(left)})
            await asyncio.wait(left)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever goes before the answer comes needs none.
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, TimeoutError):
            async with self._room:
                for _ in range(_MAX_LINES):
                    line = await self._next_line(reader)
                    if not line:
                        return
                    answer = await self._answer(line)
                    if answer is not None:
                        writer.write(json.dumps(answer).encode() + b"\n")
                        # Whoever does not read its answers must not keep a place.
                        async with asyncio.timeout(_READ_WITHIN_S):
                            await writer.drain()

    async def _next_line(self, reader: asyncio.StreamReader) -> bytes:
        async with asyncio.timeout(_LINE_WITHIN_S):
            try:
                return await reader.readline()
            except ValueError:
                log.warning("line of a hook is too long", extra={"limit": MAX_LINE_BYTES})
                return b""

    async def _answer(self, line: bytes) -> Mapping[str, object] | None:
        """Return what a caller is told; None if it does not want to be."""
        try:
            wanted = _read(line)
        except _NotACallError as error:
            log.warning("line of a hook is no call", extra={"reason": str(error)})
            return {"error": str(error)}
        told = await self._outcome(wanted)
        # Written to a caller that has gone, an answer would take the lines with it that are still to be read.
        return None if wanted.is_quiet else told

    async def _outcome(self, wanted: _Wanted) -> Mapping[str, object]:
        try:
            return {"answer": json_format.MessageToDict(await self._call(wanted), preserving_proto_field_name=True)}
        except grpc.RpcError as failure:
            # The call's own line in the log says more.
            code = failure.code() if isinstance(failure, grpc.aio.AioRpcError) else None
            return {"error": code.name if code is not None else "UNKNOWN"}

    async def _call(self, wanted: _Wanted) -> Message:
        method, token = wanted.method, bearer(wanted.token)
        answer: Message
        if method is not _STREAM_EVIDENCE:
            unary = self._channel.unary_unary(
                method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
            )
            answer = await unary(wanted.request, timeout=_CALL_WITHIN_S, metadata=token)
            return answer
        stream = self._channel.stream_stream(
            method.path, request_serializer=method.serialize, response_deserializer=method.deserialize
        )
        async for answer in stream(iter((wanted.request,)), timeout=_CALL_WITHIN_S, metadata=token):
            return answer
        raise RuntimeError(f"{method.name} ended without an answer")


def _read(line: bytes) -> _Wanted:
    try:
        said = json.loads(line)
    # A RecursionError comes from thousands of brackets.
    except (ValueError, RecursionError) as error:
        raise _NotACallError("NOT_JSON") from error
    token = said.get("token") if isinstance(said, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise _NotACallError("NO_TOKEN")
    method = _METHODS.get(str(said.get("method")))
    if method is None:
        raise _NotACallError("UNKNOWN_METHOD")
    content = said.get("request")
    if not isinstance(content, dict):
        raise _NotACallError("NO_REQUEST")
    # Lone surrogates, among other things, are a ValueError.
    try:
        request = json_format.ParseDict(content, method.request(), ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _NotACallError("UNREADABLE_REQUEST") from error
    return _Wanted(token, method, request, is_quiet=said.get("quiet") is True)
