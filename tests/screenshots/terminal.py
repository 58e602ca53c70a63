"""Pictures of commands in a terminal of 80 columns: `python -m tests.screenshots.terminal docs/pictures`.

Runs the real commands under a pseudo terminal before a real sidecar, whose memories and session are made up, and draws
what they print as SVG. Ids and times are those of the run, so the pictures differ a little each time.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

import pexpect
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.e2e.running import running_sidecar

COLUMNS: Final = 80
_ROWS: Final = 60
_SHOWN_HOME: Final = "/home/dev"
_PROJECT: Final = "harbour"
# The font would be loaded from another host; without it the reader's own monospaced one is taken.
_FONT_FACES: Final = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_CURSOR: Final = re.compile(r"\x1b\[\?\d+[hl]")
_UP: Final = "\x1b[1A"
_ERASE: Final = "\x1b[2K"
_MEMORIES: Final = (
    (
        memory_pb2.MEMORY_TYPE_GOTCHA,
        "Integration tests need `docker compose up -d ledger-db` and PGPORT=6543, or they hang.",
    ),
    (
        memory_pb2.MEMORY_TYPE_CONVENTION,
        "Release notes are written in British English and signed by the release captain.",
    ),
    (memory_pb2.MEMORY_TYPE_CONVENTION, "Deploys go out on Tuesday at 10:00 UTC, never on Friday."),
    (memory_pb2.MEMORY_TYPE_DECISION, "Redis was chosen over Memcached for the berth cache: it survives restarts."),
    (
        memory_pb2.MEMORY_TYPE_GOTCHA,
        "Staging is restored from production every night; what you put there by hand is gone.",
    ),
)
_QUESTION: Final = "how do I run the integration tests"


@dataclass(frozen=True)
class Scene:
    """One picture: commands as they are typed, below each other."""

    name: str
    lines: Sequence[str]


def scenes(memory_id: str, session: str) -> list[Scene]:
    """Return the pictures.

    Args:
        memory_id: One that was used in the session.
        session: The beginning of its id.
    """
    return [
        Scene("overview", ["sidecar"]),
        Scene("recall", [f"sidecar recall {_QUESTION} --explain"]),
        Scene("sessions", ["sidecar sessions", f"sidecar sessions {session}"]),
        Scene("why", [f"sidecar why {memory_id} -q 'integration tests'"]),
        Scene("insights", ["sidecar insights --days 7"]),
    ]


def main(arguments: Sequence[str]) -> int:
    """Draw every scene into the folder that is named."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m tests.screenshots.terminal OUTDIR\n")
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, _place(Path(scratch)) as (terminal, memory_id, session):
        for scene in scenes(memory_id, session):
            path = folder / f"terminal-{scene.name}.svg"
            path.write_text(picture(scene, [terminal.run(line) for line in scene.lines]), encoding="utf-8")
            sys.stdout.write(f"{path}\n")
    return 0


def picture(scene: Scene, printed: Sequence[str]) -> str:
    """Return the SVG of a scene."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for place, (line, output) in enumerate(zip(scene.lines, printed, strict=True)):
        if place:
            console.print()
        console.print(Text.assemble(("$ ", "green"), (line, "bold")), soft_wrap=True)
        console.print(Text.from_ansi(output.rstrip("\n")))
    return console.export_svg(
        title="memory-sidecar",
        theme=MONOKAI,
        code_format=_FONT_FACES.sub("", CONSOLE_SVG_FORMAT),
        unique_id=f"terminal-{scene.name}",
    )


def settled(output: str) -> str:
    """Return what stays on the screen: without spinners, which are erased and written over."""
    lines: list[str] = []
    for line in _CURSOR.sub("", output).replace("\r\n", "\n").split("\n"):
        for _ in range(line.count(_UP)):
            if lines:
                lines.pop()
        lines.append(line.rpartition(_ERASE)[2].replace(_UP, "").rpartition("\r")[2])
    return "\n".join(lines)


@dataclass(frozen=True)
class _Terminal:
    """Where the commands are typed."""

    home: Path
    variables: Mapping[str, str]
    project: Path

    def run(self, line: str) -> str:
        """Return what a line leaves on the screen, paths of this machine replaced."""
        child = pexpect.spawn(
            "/bin/sh",
            ["-c", line],
            env={**self.variables},
            cwd=str(self.project),
            dimensions=(_ROWS, COLUMNS),
            encoding="utf-8",
            timeout=120,
        )
        output = str(child.read())
        child.wait()
        if child.exitstatus:
            raise RuntimeError(f"{line} ended with {child.exitstatus}: {output}")
        return settled(output).replace(str(self.home), _SHOWN_HOME)


@contextmanager
def _place(scratch: Path) -> Iterator[tuple[_Terminal, str, str]]:
    """Give a terminal before a sidecar that judged a session, a memory that was used, and the session."""
    home = scratch / "home"
    project = home / _PROJECT
    transcripts = home / ".claude" / "projects" / "-home-dev-harbour"
    for folder in (project, transcripts, home / ".codex", scratch / "bin"):
        folder.mkdir(parents=True)
    program = scratch / "bin" / "sidecar"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sidecar "$@"\n')
    program.chmod(0o755)
    data = home / ".local" / "share" / "memory-sidecar"
    variables = {
        "HOME": str(home),
        "SIDECAR_HOME": str(data),
        "PATH": f"{scratch / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    context = CallContext(client="claude-code", project=_PROJECT)
    watching = {"watch_clients": "claude-code", "claude_config_dir": str(home / ".claude")}
    with running_sidecar(data, context=context, watcher=True, judge_idle_s=0.5, **watching) as sidecar:
        ids = [
            sidecar.remember(pb.RememberRequest(content=text, memory_type=kind, wait_for_index=True)).memory_id
            for kind, text in _MEMORIES
        ]
        transcript = _session(ids)
        asking = CallContext(client="claude-code", session=transcript.session, project=_PROJECT)
        for query in (_QUESTION, "when do we deploy", "berth cache"):
            sidecar.recall(pb.RecallRequest(query=query, context=asking))
        (transcripts / f"{transcript.session}.jsonl").write_bytes(transcript.to_bytes())
        _await_judged(sidecar, count=len(ids))
        sidecar.challenge_memory(
            validation.ChallengeMemoryRequest(memory_id=ids[2], reason="Deploys moved to Wednesday")
        )
        subprocess.run(
            [str(program), "connect", "claude-code"], env=variables, cwd=project, check=True, capture_output=True
        )
        sidecar.wait_for_index(admin.WaitForIndexRequest())
        yield _Terminal(home, variables, project), ids[0], transcript.session[:8]


def _session(ids: Sequence[str]) -> ClaudeCodeTranscript:
    """Return a session that does what one memory says."""
    transcript = ClaudeCodeTranscript(cwd=f"{_SHOWN_HOME}/{_PROJECT}")
    transcript.user("The integration tests hang on my machine. Please get them to run.")
    transcript.recall(*ids)
    transcript.agent_text("They need the ledger database on its own port. I start it and set PGPORT.")
    start = transcript.call("Bash", {"command": "docker compose up -d ledger-db"})
    transcript.result(start, "Container ledger-db started")
    run = transcript.call("Bash", {"command": "PGPORT=6543 pytest tests/integration -q"})
    transcript.result(run, "48 passed in 31.20s")
    transcript.agent_text("All 48 pass: ledger-db has to be up, and PGPORT=6543 has to be set.")
    return transcript


def _await_judged(sidecar: Sidecar, *, count: int) -> None:
    ends_at = time.monotonic() + 120
    while True:
        queue = sidecar.get_judge_queue()
        if (queue.done, queue.waiting) == (count, 0) and sidecar.list_sessions(evidence.ListSessionsRequest()).sessions:
            return
        if time.monotonic() > ends_at:
            raise TimeoutError(f"the session was not judged: {queue}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
