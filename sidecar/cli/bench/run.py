"""One run of the bench: floors first, then every figure, in a data folder of its own that is removed afterwards."""

import asyncio
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.cli.bench import corpus, floors, rounds
from sidecar.cli.bench.figures import Amount, Figure, Percentiles, Report
from sidecar.cli.bench.seed import seed
from sidecar.client import DataFolder, Sidecar, stop

DEFAULT_SIZES: Final = (1_000, 10_000, 100_000)
_CALLERS: Final = (16, 64)
_QUERIES: Final = 220
_WRITES: Final = 320
_TOGETHER: Final = 1_280
_EMBEDDED: Final = 256
_WRITE_BUDGET: Final = 1.5
_RECALL_BUDGET: Final = 1.3


class Progress(Protocol):
    """Is told how far the run is."""

    def step(self, what: str) -> None:
        """Take the next of `step_count` steps."""
        ...

    def within(self, share: float) -> None:
        """Tell how much of the present step is done, 0 to 1."""
        ...


def step_count(sizes: Sequence[int]) -> int:
    """Return how many steps a run takes."""
    return 3 + len(_CALLERS) + 3 * len(sizes)


@dataclass(frozen=True, slots=True)
class Floors:
    """What the machine itself needs at p50, ms."""

    embedding: Percentiles
    rpc: Percentiles
    commit: Percentiles


def run_bench(sizes: Sequence[int], progress: Progress) -> Report:
    """Measure everything and return it. Takes about two minutes for the default sizes on two cores."""
    report = Report(machine=_machine())
    embedder = OnnxMiniLmEmbedder()
    with _folder() as folder:
        progress.step("the floors: one embedding, one empty call, one synced commit")
        rpc = floors.rpc_floor(folder, [("grpc.enable_http_proxy", 0)], callers=max(_CALLERS))
        measured = Floors(
            embedding=floors.embedding_floor(embedder, corpus.queries(_QUERIES, seed=5)),
            rpc=rpc.alone,
            commit=floors.commit_floor(folder),
        )
        report.amounts.append(Amount(f"floor: empty RPC, {max(_CALLERS)} callers", rpc.rate, "calls/s"))
        report.figures += [
            Figure("floor: bare query embedding", measured.embedding),
            Figure("floor: empty RPC", measured.rpc),
            Figure("floor: synced commit", measured.commit),
        ]
        _measure_writes(folder / "writes", measured, report, progress)
        for size in sizes:
            _measure_size(
                folder / f"recall-{size}",
                size=size,
                embedder=embedder,
                measured=measured,
                report=report,
                progress=progress,
            )
        progress.step("embedding throughput")
        report.amounts.append(
            Amount("embedding throughput", rounds.embedding_throughput(embedder, _EMBEDDED), "memories/s")
        )
    return report


def _measure_writes(home: Path, measured: Floors, report: Report, progress: Progress) -> None:
    floor = measured.commit.p50 + measured.rpc.p50
    with _sidecar(home) as sidecar:
        progress.step(f"remember: {_WRITES} by one caller")
        alone = rounds.remember_alone(sidecar, list(corpus.texts(_WRITES, seed=1)))
        report.figures.append(
            Figure("remember, acknowledged, 1 caller", alone, floor, "empty RPC + synced commit", _WRITE_BUDGET)
        )
        rounds.wait_until_embedded(sidecar)
        for callers in _CALLERS:
            progress.step(f"remember: {_TOGETHER} by {callers} callers")
            texts = list(corpus.texts(_TOGETHER, seed=callers))
            together, rate = asyncio.run(rounds.remember_together(home, texts, callers))
            report.figures.append(Figure(f"remember, acknowledged, {callers} callers", together))
            report.amounts.append(Amount(f"remember, {callers} callers", rate, "acknowledged/s"))
            rounds.wait_until_embedded(sidecar)


def _measure_size(
    home: Path, *, size: int, embedder: OnnxMiniLmEmbedder, measured: Floors, report: Report, progress: Progress
) -> None:
    _write_settings(home)
    folder = DataFolder.at(home)
    progress.step(f"{size:,} memories: storing")
    asyncio.run(
        seed(folder.database_path, size, embedder.fingerprint, progress=lambda done: progress.within(done / size))
    )
    progress.step(f"{size:,} memories: cold start")
    start = rounds.cold_start(home)
    label = f"at {size:,}"
    with _sidecar(home) as sidecar:
        progress.step(f"{size:,} memories: recall")
        rounds.wait_until_at_rest(sidecar)
        new = rounds.recall_new_queries(sidecar, corpus.queries(_QUERIES, seed=size))
        known = rounds.recall_known_query(sidecar)
        resident = rounds.resident_mb(sidecar)
    parts = asyncio.run(rounds.recall_parts(folder.database_path, embedder, corpus.queries(_QUERIES, seed=size + 1)))
    report.figures += [
        Figure(f"recall {label}, new query", new, measured.embedding.p50, "bare query embedding", _RECALL_BUDGET),
        Figure(f"recall {label}, known query", known, measured.rpc.p50, "empty RPC"),
        Figure(f"  vector search alone {label}", parts.vectors),
        Figure(f"  word search alone {label}", parts.words),
    ]
    report.amounts += [
        Amount(f"cold start {label}, first answer", start.first_answer, "ms"),
        Amount(f"cold start {label}, meaning takes part", start.with_meaning, "ms"),
        Amount(f"resident memory {label}", resident, "MB"),
        Amount(f"disk {label}", rounds.disk_bytes(folder) / size, "bytes/memory"),
    ]
    shutil.rmtree(home)


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sidecar-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _sidecar(home: Path) -> Iterator[Sidecar]:
    """Give the sidecar of a data folder, and stop it afterwards."""
    _write_settings(home)
    try:
        with Sidecar.connect(home, context=rounds.CONTEXT) as sidecar:
            yield sidecar
    finally:
        stop(home, force=True)


def _write_settings(home: Path) -> None:
    """Keep the bench away from the user's own transcripts."""
    folder = DataFolder.at(home)
    folder.prepare()
    (home / "config.toml").write_text("watcher = false\n")


def _machine() -> dict[str, str]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "cores": str(os.cpu_count()),
        "load": f"{load:.1f}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
