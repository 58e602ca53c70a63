"""The watcher as a real process, sending over real gRPC to a server that collects."""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.e2e.evidence_server import CollectedEvidence, EvidenceServer

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "claude_code"
# gRPC's own remarks, such as that a server said goodbye; they do not pass through Python.
_GRPC_LINE = re.compile(rb"[IWE]\d{4} ")


@dataclass
class Place:
    """Where a test's client and sidecar keep their things."""

    home: Path
    client: Path

    @property
    def project(self) -> Path:
        """The folder of one project's transcripts."""
        return self.client / "projects" / "-home-dev-shop"

    def write(self, name: str, *texts: str) -> Path:
        """Append a transcript's worth of records that say these texts."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        transcript = ClaudeCodeTranscript(session=path.stem, seed=f"{name} {texts}")
        for text in texts:
            transcript.agent_text(text)
        with path.open("ab") as file:
            file.write(transcript.to_bytes())
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Folders that do not exist yet."""
    return Place(tmp_path / "home", tmp_path / "client")


class Watcher:
    """A watcher process and what it logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log: list[dict[str, object]] = []
        self._grown = asyncio.Condition()
        self._reading = asyncio.create_task(self._read_log())

    async def wait_for_log(self, message: str, *, count: int = 1, within_s: float = 30.0) -> None:
        """Return when a message has been logged so often."""
        async with asyncio.timeout(within_s), self._grown:
            await self._grown.wait_for(lambda: [line["message"] for line in self.log].count(message) >= count)

    async def end(self) -> int:
        """Close its stdin, as a sidecar that ends does; return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(30):
            code = await self.process.wait()
            await self._reading
        return code

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if _GRPC_LINE.match(line):
                continue
            self.log.append(json.loads(line))
            async with self._grown:
                self._grown.notify_all()


def _environment(place: Place, **more: str) -> dict[str, str]:
    return {**os.environ, "CLAUDE_CONFIG_DIR": str(place.client), "PYTHONPATH": str(ROOT), **more}


async def _spawn(place: Place, *arguments: str, prefix: tuple[str, ...] = (), **more: str) -> Watcher:
    process = await asyncio.create_subprocess_exec(
        *prefix,
        *(sys.executable, "-m", "client_plugins.kit.watcher", "--home", str(place.home), *arguments),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(place, **more),
        cwd=place.home.parent,
    )
    return Watcher(process)


@asynccontextmanager
async def _watching(place: Place, *arguments: str, prefix: tuple[str, ...] = (), **more: str) -> AsyncIterator[Watcher]:
    watcher = await _spawn(place, *arguments, prefix=prefix, **more)
    try:
        yield watcher
    finally:
        if watcher.process.returncode is None:
            watcher.process.kill()
            await watcher.process.wait()
        await watcher._reading


async def test_appends_are_seen_and_the_end_of_stdin_ends_it(place: Place) -> None:
    """What stood there before is read whole, what comes later as it comes; it ends with its parent."""
    evidence = CollectedEvidence()
    place.write("s1.jsonl", "old")
    async with EvidenceServer(place.home, evidence), _watching(place) as watcher:
        await evidence.wait_for_text("old")
        place.write("s1.jsonl", "new")
        place.write("s2.jsonl", "another session")
        place.write("s1/subagents/agent-a1.jsonl", "scout")
        await evidence.wait_for_text("new", "another session", "scout")
        assert await watcher.end() == 0
    assert evidence.repeated == 0
    assert {event.thread.session for event in evidence.events.values()} == {"s1", "s2", "agent-a1"}


async def test_a_real_session_arrives_whole(place: Place) -> None:
    """The recorded round: two recalls with exactly the memories that they showed."""
    evidence = CollectedEvidence()
    shutil.copytree(GOLDEN / "memory_round", place.project)
    async with EvidenceServer(place.home, evidence), _watching(place, "--once") as watcher:
        assert await asyncio.wait_for(watcher.process.wait(), 30) == 0
    shown = [
        list(event.tool_answered.shown.ids.memory_ids)
        for event in evidence.events.values()
        if event.event_id in {"toolu_scripted_0001:result", "toolu_scripted_0004:result"}
    ]
    assert [len(ids) for ids in shown] == [3, 1]
    assert len(evidence.events) == 14
    (cursor,) = evidence.cursors.values()
    assert cursor.skipped["recalls_called"] == 2
    assert cursor.offset == sum(path.stat().st_size for path in place.project.glob("*.jsonl"))


async def test_roots_that_come_late_go_and_come_again_are_followed(place: Place) -> None:
    """Before the client's first start there is no folder; and users delete it."""
    evidence = CollectedEvidence()
    async with EvidenceServer(place.home, evidence), _watching(place) as watcher:
        await watcher.wait_for_log("watching")
        place.write("s1.jsonl", "late")
        await evidence.wait_for_text("late")
        shutil.rmtree(place.client)
        place.write("s2.jsonl", "again")
        await evidence.wait_for_text("again")
        place.write("s2.jsonl", "still seen")
        await evidence.wait_for_text("still seen")
        assert await watcher.end() == 0
    assert evidence.repeated == 0


async def test_kills_lose_and_double_nothing(place: Place) -> None:
    """Killed again and again while a session is written, the next watcher goes on where the cursors stand (B45)."""
    evidence = CollectedEvidence()
    said: list[str] = []
    async with EvidenceServer(place.home, evidence):
        for turn in range(4):
            async with _watching(place) as watcher:
                for part in range(5):
                    said.append(f"turn {turn} part {part}")
                    place.write("s1.jsonl", said[-1])
                await evidence.wait_for_batches(turn + 1)
                watcher.process.kill()
        async with _watching(place, "--once") as watcher:
            assert await asyncio.wait_for(watcher.process.wait(), 30) == 0
    assert evidence.texts() == set(said)


async def test_it_reconnects_to_a_sidecar_that_was_replaced(place: Place) -> None:
    """What was said while no sidecar was there is read when the next one is."""
    evidence = CollectedEvidence()
    async with _watching(place) as watcher:
        await watcher.wait_for_log("sidecar lost; connecting again")
        async with EvidenceServer(place.home, evidence, instance_id="one"):
            place.write("s1.jsonl", "first")
            await evidence.wait_for_text("first")
        place.write("s1.jsonl", "meanwhile")
        async with EvidenceServer(place.home, evidence, instance_id="two"):
            place.write("s1.jsonl", "second")
            await evidence.wait_for_text("meanwhile", "second")
            assert await watcher.end() == 0
    assert len(evidence.events) == 3


async def test_a_file_that_the_sidecar_refuses_does_not_hold_up_others(place: Place) -> None:
    """One bad file is left alone for a while."""
    evidence = CollectedEvidence()
    evidence.refused_names.add("bad.jsonl")
    place.write("bad.jsonl", "refused")
    place.write("good.jsonl", "taken")
    async with EvidenceServer(place.home, evidence), _watching(place) as watcher:
        await evidence.wait_for_text("taken")
        await watcher.wait_for_log("transcript left alone for a while")
        place.write("good.jsonl", "taken too")
        await evidence.wait_for_text("taken too")
        assert await watcher.end() == 0
    assert "refused" not in evidence.texts()


async def test_a_moved_transcript_keeps_its_place(place: Place) -> None:
    """Changing the folder of a session moves its file to another project."""
    evidence = CollectedEvidence()
    path = place.write("s1.jsonl", "before")
    async with EvidenceServer(place.home, evidence), _watching(place) as watcher:
        await evidence.wait_for_text("before")
        moved = place.client / "projects" / "-home-dev-other" / path.name
        moved.parent.mkdir()
        path.rename(moved)
        with moved.open("ab") as file:
            file.write(place.write("x/unseen", "after").read_bytes())
        await evidence.wait_for_text("after")
        assert await watcher.end() == 0
    assert evidence.repeated == 0
    assert evidence.cursors["claude-code", str(moved)].generation == 0


async def test_roots_by_link_links_and_odd_files_are_handled(place: Place, tmp_path: Path) -> None:
    """A linked root is read once, links out of it not at all, and nothing odd stops the rest (B62, T11)."""
    evidence = CollectedEvidence()
    real = tmp_path / "dotfiles"
    (real / "projects").mkdir(parents=True)
    place.client.symlink_to(real)
    place.write("s1.jsonl", "inside")
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(place.write("s1.jsonl", "outside").read_bytes())
    os.mkfifo(place.project / "pipe.jsonl")
    (place.project / "link.jsonl").symlink_to(secret)
    (place.project / "loop.jsonl").symlink_to("loop.jsonl")
    (place.project.parent / "linked").symlink_to(tmp_path)
    async with EvidenceServer(place.home, evidence), _watching(place, "--once") as watcher:
        assert await asyncio.wait_for(watcher.process.wait(), 30) == 0
    assert {path for _, path in evidence.cursors} == {str((place.project / "s1.jsonl").resolve())}


async def test_it_works_without_any_watches(place: Place) -> None:
    """Where the system has no watches left it says so, and polls."""
    probe = await asyncio.create_subprocess_exec(
        *("unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_watches"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    if await probe.wait() != 0:
        pytest.skip("no user namespaces here")
    evidence = CollectedEvidence()
    place.write("s1.jsonl", "old")
    limited = ("unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_watches; exec "$@"', "sh")
    async with EvidenceServer(place.home, evidence), _watching(place, prefix=limited) as watcher:
        await evidence.wait_for_text("old")
        await watcher.wait_for_log("folders cannot be watched; polling")
        place.write("s1.jsonl", "new")
        await evidence.wait_for_text("new")
        assert await watcher.end() == 0


async def test_folders_beyond_the_watch_limit_are_still_read(place: Place) -> None:
    """The system drops watches without a word; changes that came without events give it away."""
    evidence = CollectedEvidence()
    for number in range(8):
        place.write(f"../-p{number}/s{number}.jsonl", f"old {number}")
    limited = ("unshare", "-Ur", "sh", "-c", 'echo 3 > /proc/sys/user/max_inotify_watches; exec "$@"', "sh")
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    async with (
        EvidenceServer(place.home, evidence),
        _watching(place, "--scan-interval-s", "0.5", prefix=limited) as watcher,
    ):
        await evidence.wait_for_text("old 7")
        for turn in range(40):
            for number in range(8):
                place.write(f"../-p{number}/s{number}.jsonl", f"new {turn} {number}")
            await evidence.wait_for_text(*(f"new {turn} {number}" for number in range(8)))
            if any(line.get("is_polling") for line in watcher.log):
                break
        assert any(line.get("is_polling") for line in watcher.log)
        assert await watcher.end() == 0


async def test_old_transcripts_are_left_unread_until_they_change(place: Place) -> None:
    """A first start must not go through years of sessions."""
    evidence = CollectedEvidence()
    old = place.write("old.jsonl", "long ago")
    os.utime(old, (1_600_000_000, 1_600_000_000))
    place.write("new.jsonl", "today")
    async with EvidenceServer(place.home, evidence), _watching(place) as watcher:
        await evidence.wait_for_text("today")
        place.write("old.jsonl", "resumed")
        await evidence.wait_for_text("long ago", "resumed")
        assert await watcher.end() == 0


async def test_the_locale_does_not_matter(place: Place) -> None:
    """Transcripts are UTF-8 whatever the system's own encoding is (B58)."""
    evidence = CollectedEvidence()
    place.write("s1.jsonl", "火曜日 🚀")
    async with (
        EvidenceServer(place.home, evidence),
        _watching(place, "--once", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0") as watcher,
    ):
        assert await asyncio.wait_for(watcher.process.wait(), 30) == 0
    assert evidence.texts() == {"火曜日 🚀"}


async def test_logs_hold_no_words_of_transcripts(place: Place) -> None:
    """Logs are kept and shared more freely than what was said."""
    evidence = CollectedEvidence()
    evidence.refused_names.add("s1.jsonl")
    path = place.write("s1.jsonl", "a secret word")
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":"secret damage\n')
    async with EvidenceServer(place.home, evidence), _watching(place, "--once") as watcher:
        assert await asyncio.wait_for(watcher.process.wait(), 30) == 0
    assert watcher.log
    assert "secret" not in json.dumps(watcher.log)
    assert "-home-dev-shop" not in json.dumps(watcher.log)


@pytest.mark.parametrize(("arguments", "code"), [(("--clients", "no-such"), 2), (("--once",), 3)])
async def test_exit_codes_tell_what_was_wrong(place: Place, arguments: tuple[str, ...], code: int) -> None:
    """Whoever runs it by hand, or in a script, can tell a wrong name from a sidecar that is not there."""
    async with _watching(place, *arguments) as watcher:
        assert await asyncio.wait_for(watcher.process.wait(), 30) == code
