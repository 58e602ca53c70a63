"""The door for hooks, where a caller does not do what a hook does. Real hooks come to it in `tests/e2e`."""

import asyncio
import socket

import grpc.aio
import pytest

from sidecar.server import hook_door

LINES = 64


async def test_caller_who_reads_no_answers_is_shown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not keep its place: sixty-four of them would close the door for good."""
    monkeypatch.setattr(hook_door, "_READ_WITHIN_S", 0.05)
    ours, theirs = socket.socketpair()
    # As small as the system allows, so that a few answers fill it.
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        writer.transport.set_write_buffer_limits(high=0)
        theirs.sendall(b"no call\n" * LINES)
        async with grpc.aio.insecure_channel("127.0.0.1:9") as channel, asyncio.timeout(20):
            await hook_door._Door(channel).receive(reader, writer)
        assert writer.is_closing()
        theirs.setblocking(False)
        assert theirs.recv(65_536).count(b"\n") < LINES


async def test_who_says_nothing_more_is_shown_out_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that keeps its connection open must not keep the sidecar from stopping."""
    monkeypatch.setattr(hook_door, "_LEAVE_WITHIN_S", 0.05)
    ours, theirs = socket.socketpair()
    with theirs:
        reader, writer = await asyncio.open_connection(sock=ours)
        async with grpc.aio.insecure_channel("127.0.0.1:9") as channel, asyncio.timeout(20):
            door = hook_door._Door(channel)
            guest = asyncio.create_task(door.receive(reader, writer))
            theirs.sendall(b"no call\n")
            assert b"NOT_JSON" in await asyncio.to_thread(theirs.recv, 100)
            await door.see_off()
        assert guest.cancelled()
        assert writer.is_closing()
