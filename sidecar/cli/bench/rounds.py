"""What is measured: rounds of calls against a real sidecar, and the parts of a recall apart."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.cli.bench import corpus, floors
from sidecar.cli.bench.figures import Percentiles, percentiles
from sidecar.cli.bench.seed import NAMESPACE, OWNER
from sidecar.client import AsyncSidecar, DataFolder, Sidecar
from sidecar.domain.namespace import NamespaceScope
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.words import tokenise
from sidecar.ports import Embedder

CONTEXT: Final = CallContext(client="bench", project=NAMESPACE.removeprefix("project:"))
RESULTS: Final = 5
_CANDIDATES: Final = 100
_READY_S: Final = 120.0
_POLL_S: Final = 0.01
_REST_S: Final = 3_600.0
_REST_LOOK_S: Final = 0.5
_REST_PERCENT: Final = 5.0

_BATCH: Final = 32


@dataclass(frozen=True, slots=True)
class ColdStart:
    """From starting the process: until any recall was answered, and until meaning took part. Milliseconds."""

    first_answer: float
    with_meaning: float


@dataclass(frozen=True, slots=True)
class RecallParts:
    """The parts of a recall at one size, each measured alone."""

    vectors: Percentiles
    words: Percentiles


def cold_start(home: Path) -> ColdStart:
    """Start the sidecar of a data folder and recall at once."""
    started = time.perf_counter()
    first = 0.0
    with Sidecar.connect(home, context=CONTEXT) as sidecar:
        for number in range(int(_READY_S / _POLL_S)):
            answer = sidecar.recall(pb.RecallRequest(query=f"cold start {number}"))
            first = first or time.perf_counter() - started
            if not answer.degraded:
                return ColdStart(first * 1000, (time.perf_counter() - started) * 1000)
            time.sleep(_POLL_S)
    raise TimeoutError(f"meaning took no part within {_READY_S:g} s")


def remember_alone(sidecar: Sidecar, texts: list[str]) -> Percentiles:
    """Time acknowledged writes, one after the other."""
    return floors.timed(
        lambda number: sidecar.remember(pb.RememberRequest(content=texts[number])), len(texts) - floors.WARM_UP
    )


async def remember_together(home: Path, texts: list[str], callers: int) -> tuple[Percentiles, float]:
    """Time acknowledged writes of several callers at once; return their durations and how many a second."""
    durations: list[float] = []
    async with await AsyncSidecar.connect(home, context=CONTEXT) as sidecar:

        async def caller(own: list[str]) -> None:
            for text in own:
                started = time.perf_counter()
                await sidecar.remember(pb.RememberRequest(content=text))
                durations.append((time.perf_counter() - started) * 1000)

        began = time.perf_counter()
        await asyncio.gather(*(caller(texts[number::callers]) for number in range(callers)))
        elapsed = time.perf_counter() - began
    return percentiles(durations), len(texts) / elapsed


def recall_new_queries(sidecar: Sidecar, queries: list[str]) -> Percentiles:
    """Time recalls whose queries were never asked before."""
    return floors.timed(
        lambda number: sidecar.recall(pb.RecallRequest(query=queries[number], n_results=RESULTS)),
        len(queries) - floors.WARM_UP,
    )


def recall_known_query(sidecar: Sidecar) -> Percentiles:
    """Time one recall again and again: the query's embedding is cached."""
    request = pb.RecallRequest(query=corpus.queries(1)[0], n_results=RESULTS)
    return floors.timed(lambda _: sidecar.recall(request))


async def recall_parts(database: Path, embedder: Embedder, queries: list[str]) -> RecallParts:
    """Time the two searches alone, on the same data with the same adapters."""
    store = SqliteStore.open(database, clock=SystemClock())
    try:
        index = LayeredVectorIndex(embedder.fingerprint.dim)
        keys = await store.embedded_keys(embedder.fingerprint.id)
        for start in range(0, len(keys), 4096):
            rows = await store.embeddings(embedder.fingerprint.id, [int(k) for k in keys[start : start + 4096]])
            index.upsert(np.asarray([k for k, _ in rows], np.int64), np.concatenate([windows for _, windows in rows]))
        # As in the sidecar, where a graph takes the place of a large exact segment after a while.
        index.settle()
        vectors = [embedder.embed_query(query) for query in queries]
        searched = floors.timed(
            lambda number: index.search(vectors[number % len(vectors)], limit=_CANDIDATES), len(vectors)
        )
        return RecallParts(searched, await _word_search(store, queries))
    finally:
        await store.close()


async def _word_search(store: SqliteStore, queries: list[str]) -> Percentiles:
    selection = MemoryFilter(owner=OWNER, scope=NamespaceScope((NAMESPACE,)))
    durations: list[float] = []
    for query in queries:
        started = time.perf_counter()
        weighed = await store.word_query(tokenise(query))
        await store.search_words(weighed, selection, limit=_CANDIDATES)
        durations.append((time.perf_counter() - started) * 1000)
    return percentiles(durations[floors.WARM_UP :])


def embedding_throughput(embedder: Embedder, count: int) -> float:
    """Return how many memories are embedded a second, in batches."""
    texts = list(corpus.texts(count, seed=3))
    started = time.perf_counter()
    for start in range(0, count, _BATCH):
        embedder.embed_documents(texts[start : start + _BATCH])
    return count / (time.perf_counter() - started)


def wait_until_embedded(sidecar: Sidecar) -> None:
    """Return when nothing waits to be embedded."""
    while not sidecar.wait_for_index(admin.WaitForIndexRequest()).done:
        continue


def wait_until_at_rest(sidecar: Sidecar) -> None:
    """Return when the sidecar does nothing any more: building the graph of a large store goes on after it is ready.

    Raises:
        TimeoutError: It still works after an hour.
    """
    process = psutil.Process(sidecar.get_status(admin.GetStatusRequest()).pid)
    for _ in range(int(_REST_S / _REST_LOOK_S)):
        if process.cpu_percent(interval=_REST_LOOK_S) < _REST_PERCENT:
            return
    raise TimeoutError(f"the sidecar is still at work after {_REST_S:g} s")


def resident_mb(sidecar: Sidecar) -> float:
    """Return the resident memory of the sidecar's process, MB."""
    pid = sidecar.get_status(admin.GetStatusRequest()).pid
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def disk_bytes(folder: DataFolder) -> int:
    """Return how much the data folder takes."""
    return sum(path.stat().st_size for path in folder.home.rglob("*") if path.is_file() and not path.is_symlink())
