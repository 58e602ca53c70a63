"""Measures how long hooks take, interpreter start included: `python -m tests.bench.measure_hooks [--runs 50]`.

Each is a process of its own, before a real sidecar with memories in it. The first three of each are left out: what is
measured is the hook of a user at work, not the first one of the day.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Final

from client_plugins.hooks.registration import REGISTRATIONS, hook_command
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1.memory_pb2 import CallContext
from tests.e2e.running import running_sidecar, wait_until_embedded
from tests.hook_payloads import MAKERS, Payload

_WARMING: Final = 3
_MEMORIES: Final = 200


def main() -> int:
    """Print a table; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure how long hooks take.")
    parser.add_argument("--runs", type=int, default=50, help="of each hook (50)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder) / "home", Path(folder) / "work" / "harbour"
        project.mkdir(parents=True)
        with running_sidecar(home, context=CallContext(client="bench", project="harbour")) as sidecar:
            for number in range(_MEMORIES):
                kind = memory_pb2.MEMORY_TYPE_GOLDEN_RULE if number < 3 else memory_pb2.MEMORY_TYPE_SESSION
                content = f"Service {number} deploys on Tuesday from branch release-{number}."
                sidecar.remember(memory.RememberRequest(content=content, memory_type=kind))
            wait_until_embedded(sidecar)
            sys.stdout.write(f"{'client':12} {'event':18} {'p50 ms':>7} {'p95 ms':>7}\n")
            _tell("nothing", "(bare interpreter)", _measure([sys.executable, "-I", "-S", "-c", ""], {}, runs=runs))
            for client, registrations in REGISTRATIONS.items():
                for event in (one.event for one in registrations):
                    where = {"workspace_roots": [str(project)]} if client == "cursor" else {"cwd": str(project)}
                    payload = {**MAKERS[client](event), **where}
                    _tell(client, event, _measure(hook_command(client, home), payload, runs=runs))
    return 0


def _tell(client: str, event: str, taken_ms: Sequence[float]) -> None:
    parts = quantiles(taken_ms, n=20)
    sys.stdout.write(f"{client:12} {event:18} {parts[9]:7.0f} {parts[18]:7.0f}\n")


def _measure(command: Sequence[str], payload: Payload, *, runs: int) -> list[float]:
    taken_ms: list[float] = []
    for number in range(runs + _WARMING):
        # Each of a session of its own: one that was briefed gets no second briefing.
        session = {"session_id": f"session-{number}", "conversation_id": f"session-{number}"}
        content = json.dumps({**payload, **session}).encode()
        begun = time.perf_counter()
        subprocess.run(command, input=content, capture_output=True, check=True)
        taken_ms.append((time.perf_counter() - begun) * 1000)
    return taken_ms[_WARMING:]


if __name__ == "__main__":
    sys.exit(main())
