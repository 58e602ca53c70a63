"""Real child processes: kept running, given up, ended with their parent however that ended."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from sidecar.server.children import ChildReport, ChildState, RestartPolicy, SupervisedChild

QUICK = RestartPolicy(crashes=3, backoff_s=0.01, stop_wait_s=5.0)
# Ends when its stdin does, as the watcher does.
PATIENT = """
import threading
from sidecar.client.parent import call_when_parent_ends
ended = threading.Event()
call_when_parent_ends(ended.set)
ended.wait()
"""
STUBBORN = "import signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)"
PARENT = """
import asyncio, sys
from pathlib import Path
from sidecar.server.children import SupervisedChild
async def main():
    child = SupervisedChild("watcher", (sys.executable, "-c", sys.argv[1]), log_path=Path(sys.argv[2]))
    child.start()
    while not child.report.pid:
        await asyncio.sleep(0.01)
    sys.stdout.write(f"{child.report.pid}\\n")
    sys.stdout.flush()
    await asyncio.sleep(600)
asyncio.run(main())
"""


def command(program: str) -> tuple[str, ...]:
    """Run a small program."""
    return (sys.executable, "-c", program)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it is so."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_child_that_ends_is_started_again(tmp_path: Path) -> None:
    """A transcript that kills the watcher costs one restart, and the status tells of it."""
    seen: list[ChildReport] = []
    child = SupervisedChild("watcher", command(PATIENT), log_path=tmp_path / "log", policy=QUICK, on_change=seen.append)
    assert child.report == ChildReport(ChildState.OFF)
    child.start()
    await until(lambda: child.report.state is ChildState.RUNNING)
    first = child.report.pid
    os.kill(first, signal.SIGKILL)
    await until(lambda: child.report.state is ChildState.RUNNING and child.report.pid != first)
    assert child.report.restarts == 1
    last = child.report.pid
    await child.stop()
    assert child.report.state is ChildState.OFF
    assert not psutil.pid_exists(last)
    states = [report.state for report in seen]
    assert states[:3] == [ChildState.STARTING, ChildState.RUNNING, ChildState.STARTING]


async def test_child_that_keeps_ending_is_given_up(tmp_path: Path) -> None:
    """It must not burn a core for ever; the problem says why and what to do."""
    program = command("import sys; sys.stderr.write('cannot go on\\n'); sys.exit(7)")
    child = SupervisedChild("watcher", program, log_path=tmp_path / "log", policy=QUICK)
    child.start()
    await until(lambda: child.report.state is ChildState.FAILED)
    assert "3 times" in child.report.problem
    assert "with 7" in child.report.problem
    assert "sidecar restart" in child.report.problem
    assert (tmp_path / "log").read_text().count("cannot go on") == 3
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0
    await child.stop()


async def test_missing_program_is_told(tmp_path: Path) -> None:
    """Nothing to start again."""
    child = SupervisedChild("watcher", ("/no/such/program",), log_path=tmp_path / "log", policy=QUICK)
    child.start()
    await until(lambda: child.report.state is ChildState.FAILED)
    assert "/no/such/program cannot be run" in child.report.problem
    await child.stop()


async def test_child_that_does_not_listen_is_made_to_end(tmp_path: Path) -> None:
    """The sidecar's own end must not wait for it."""
    policy = RestartPolicy(stop_wait_s=0.2)
    child = SupervisedChild("watcher", command(STUBBORN), log_path=tmp_path / "log", policy=policy)
    child.start()
    await until(lambda: child.report.state is ChildState.RUNNING)
    pid = child.report.pid
    await child.stop()
    assert not psutil.pid_exists(pid)


def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """Nobody tells it; the end of stdin does."""
    arguments = (sys.executable, "-c", PARENT, PATIENT, str(tmp_path / "log"))
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 20
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert (tmp_path / "log").read_text() == ""
