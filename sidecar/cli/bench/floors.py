"""What the machine itself needs, measured in the same run: one embedding, one empty RPC, one commit that is synced."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import grpc

from sidecar.cli.bench.figures import Percentiles, percentiles
from sidecar.ports import Embedder

SAMPLES: Final = 300
WARM_UP: Final = 20
_ROW_BYTES: Final = 400
EMPTY_METHOD: Final = "/bench.Floor/Empty"
_START_S: Final = 20.0
_CALLS_TOGETHER: Final = 3_200


def timed(call: Callable[[int], object], count: int = SAMPLES) -> Percentiles:
    """Time `call(number)` after a warm-up; numbers start at 0 and go on rising."""
    for number in range(WARM_UP):
        call(number)
    durations: list[float] = []
    for number in range(WARM_UP, WARM_UP + count):
        started = time.perf_counter()
        call(number)
        durations.append((time.perf_counter() - started) * 1000)
    return percentiles(durations)


def embedding_floor(embedder: Embedder, queries: list[str]) -> Percentiles:
    """Time the bare model on queries, one after the other."""
    return timed(lambda number: embedder.embed_query(queries[number % len(queries)]))


def commit_floor(folder: Path) -> Percentiles:
    """Time one inserted row with its own synced commit, in a database beside the real one."""
    path = folder / "floor.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE row_of_floor (content TEXT NOT NULL) STRICT")
    content = "x" * _ROW_BYTES
    found = timed(lambda _: connection.execute("INSERT INTO row_of_floor VALUES (?)", (content,)))
    connection.close()
    path.unlink()
    return found


@dataclass(frozen=True, slots=True)
class RpcFloor:
    """An empty call: how long one caller waits for it, and how many many callers get a second."""

    alone: Percentiles
    rate: float


def rpc_floor(folder: Path, options: list[tuple[str, int]], *, callers: int) -> RpcFloor:
    """Time empty calls to a server that does nothing, over a Unix socket where there are any."""
    target = f"unix:{folder / 'floor.sock'}" if sys.platform != "win32" else "127.0.0.1:0"
    server = subprocess.Popen(  # noqa: S603 - our own command, no shell
        [sys.executable, "-m", "sidecar.cli.bench.empty_server", target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if server.stdin is None or server.stdout is None:
            raise AssertionError("pipes were asked for")
        address = server.stdout.readline().strip()
        with grpc.insecure_channel(address, options=options) as channel:
            grpc.channel_ready_future(channel).result(timeout=_START_S)
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(EMPTY_METHOD)
            alone = timed(lambda _: call(b""))
        rate = asyncio.run(_rate_together(address, options, callers))
        server.stdin.close()
        server.wait(_START_S)
        return RpcFloor(alone, rate)
    finally:
        server.kill()
        server.wait()


async def _rate_together(address: str, options: list[tuple[str, int]], callers: int) -> float:
    """Return how many empty calls a second so many callers of one process get answered."""
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(EMPTY_METHOD)

        async def caller() -> None:
            for _ in range(_CALLS_TOGETHER // callers):
                await call(b"")

        await caller()
        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return _CALLS_TOGETHER / (time.perf_counter() - started)
