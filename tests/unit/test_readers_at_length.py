"""Every reader at length: every cut, a hundred thousand damaged lines, files of gigabytes, thousands of old files."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from client_plugins.kit.tailer import TailLimits
from sidecar.testing.conformance import ClientCase
from sidecar.testing.conformance.checks import damage_costs_only_its_line, every_cut_ends_the_same
from tests.client_cases import CASES
from tests.e2e.evidence_server import CollectedEvidence, EvidenceServer

ROOT = Path(__file__).parents[2]
DAMAGED_LINES = 100_000
# Whatever is longer is cut in places only, by the quick test.
_MAX_CUT_BYTES = 6_000
_FILE_BYTES = 2 << 30
_LINE_OVER_LIMIT_BYTES = 512 << 20
# Just below the limit, and with a letter that makes Python take four bytes for each.
_LINE_WITHIN_LIMIT_BYTES = 31 << 20
_OLD_FILES = 15_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]


def _name(case: ClientCase) -> str:
    return f"{case.plugin.name}-{case.samples[0].name}"


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_every_single_cut_ends_the_same(case: ClientCase) -> None:
    """The quick test cuts long samples in places only."""
    for sample in case.samples:
        if len(sample.file.content) <= _MAX_CUT_BYTES:
            every_cut_ends_the_same(sample, case.plugin, count=_MAX_CUT_BYTES)


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_hundred_thousand_damaged_lines_do_no_harm(case: ClientCase) -> None:
    """None fails, and their neighbours stay whole."""
    damage_costs_only_its_line(case, count=DAMAGED_LINES)


_READ_WHOLE = """
import sys, time
from pathlib import Path
from client_plugins.kit.tailer import TranscriptFile, TranscriptTail
from tests.client_cases import CASES
case = next(case for case in CASES if f"{case.plugin.name}-{case.samples[0].name}" == sys.argv[2])
path = Path(sys.argv[1])
context = case.plugin.transcript_at(case.samples[0].file.parts)
tail = TranscriptTail(TranscriptFile(path, path.parent.resolve(), context), case.plugin, project_of=str)
begun, events, counts = time.process_time(), 0, {}
while (batch := tail.next_batch()) is not None:
    events += len(batch.events)
    counts = dict(batch.cursor.skipped)
    tail.acknowledge()
status = Path("/proc/self/status").read_text()
peak_kib = int(status.split("VmHWM:")[1].split()[0])
seconds = time.process_time() - begun
print(f"{sys.argv[2]}: {events} events, peak {peak_kib // 1024} MiB, {seconds:.0f} s", file=sys.stderr)
assert tail.offset == path.stat().st_size
assert events > 1000
assert counts.get("skipped.too_long") == 1, counts
sys.exit(0 if peak_kib * 1024 < 400_000_000 else f"peak {peak_kib} KiB")
"""


def _giant(case: ClientCase) -> Iterator[bytes]:
    """Give 2 GiB of lines as the client writes them, with one that is too long and one that is just within."""
    yield b"".join(sample.file.content for sample in case.samples)
    yield b'{"type":"user","message":{"content":"'
    for _ in range(_LINE_OVER_LIMIT_BYTES >> 20):
        yield b"x" * (1 << 20)
    yield b'"}}\n'
    long = case.quote("\U0001f680" + "y" * _LINE_WITHIN_LIMIT_BYTES).splitlines(keepends=True)
    yield max((line for line in long if len(line) <= TailLimits().line_bytes), key=len)
    piece = case.quote("A long result, as of a file that was read. " * 2_000) + case.samples[0].file.content
    size = _LINE_OVER_LIMIT_BYTES
    while size < _FILE_BYTES:
        yield piece
        size += len(piece)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_giant_file_is_read_in_bounded_memory(case: ClientCase, tmp_path: Path) -> None:
    """Two gigabytes with a line of half a gigabyte take less than 400 MB, and everything else in them counts."""
    path = tmp_path / "giant"
    with path.open("wb") as file:
        file.writelines(_giant(case))
    done = subprocess.run(
        [sys.executable, "-c", _READ_WHOLE, str(path), _name(case)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    path.unlink()
    sys.stderr.write(done.stderr)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", [case for case in CASES if case.unheard_of], ids=_name)
async def test_thousands_of_old_transcripts_cost_nothing_while_idle(case: ClientCase, tmp_path: Path) -> None:
    """The watcher looks at their names and sizes now and then: below one per cent of a core."""
    variables = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    root = _root_below(case, tmp_path, variables)
    parts = case.samples[0].file.parts
    for number in range(_OLD_FILES):
        path = root.joinpath(*(part.replace(_stem(parts), f"{number:08x}{_stem(parts)[8:]}") for part in parts))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
        os.utime(path, (1_600_000_000, 1_600_000_000))
    home = tmp_path / "data"
    arguments = ("-m", "client_plugins.kit.watcher", "--home", str(home), "--clients", case.plugin.name)
    evidence = CollectedEvidence()
    async with EvidenceServer(home, evidence):
        watcher = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        )
        try:
            share = await _idle_share(psutil.Process(watcher.pid), root, case, evidence)
        finally:
            watcher.kill()
            watcher.wait()
            if watcher.stdin is not None:
                watcher.stdin.close()
    sys.stderr.write(f"{_name(case)}: {share:.2%} of a core with {_OLD_FILES} old files\n")
    assert share < 0.01


async def _idle_share(process: psutil.Process, root: Path, case: ClientCase, evidence: CollectedEvidence) -> float:
    """Return which part of a core is used over two intervals between scans, once a new file has been read."""
    fresh = root.joinpath(*case.samples[0].file.parts)
    fresh.parent.mkdir(parents=True, exist_ok=True)
    fresh.write_bytes(case.samples[0].file.content)
    await evidence.wait_for_batches(1, within_s=120)
    await asyncio.sleep(5)
    before, begun = process.cpu_times(), time.monotonic()
    await asyncio.sleep(65)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / (time.monotonic() - begun)


def _root_below(case: ClientCase, folder: Path, variables: dict[str, str]) -> Path:
    """Return the client's first root as the watcher will see it, whose home is the test's folder."""
    root = case.plugin.roots(variables)[0]
    return folder / root.relative_to(Path.home()) if root.is_relative_to(Path.home()) else Path(root)


def _stem(parts: tuple[str, ...]) -> str:
    """Return the session's id in a path."""
    return parts[-1].removesuffix(".jsonl")[-36:]
