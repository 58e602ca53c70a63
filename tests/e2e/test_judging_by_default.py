"""The loop with nothing but defaults: a session is read from its transcript, judged locally, and seen in the rank."""

import time
from pathlib import Path

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import Sidecar
from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.e2e.running import running_sidecar, wait_until_embedded

USED = "Integration tests of the harbour service need `docker compose up -d ledger-db` and PGPORT=6543, or they hang."
UNUSED = "Release notes of the harbour service are written in British English and signed by the release captain."


def session(used_id: str, unused_id: str) -> ClaudeCodeTranscript:
    """A session that does what one memory says, without a word about it."""
    transcript = ClaudeCodeTranscript(cwd="/home/dev/harbour")
    transcript.user("The integration tests hang on my machine. Please get them to run.")
    transcript.recall(used_id, unused_id)
    transcript.agent_text("They need the ledger database on its own port. I start it and set PGPORT.")
    start = transcript.call("Bash", {"command": "docker compose up -d ledger-db"})
    transcript.result(start, "Container ledger-db started")
    run = transcript.call("Bash", {"command": "PGPORT=6543 pytest tests/integration -q"})
    transcript.result(run, "48 passed in 31.20s")
    transcript.agent_text("All 48 pass: ledger-db has to be up, and PGPORT=6543 has to be set.")
    return transcript


@pytest.mark.timeout(120)
def test_used_memory_rises_by_the_local_judge_and_the_other_stays(tmp_path: Path) -> None:
    """What was followed silently counts as used; what was only shown keeps its rank; reading a copy adds nothing."""
    folder = tmp_path / "claude" / "projects" / "-home-dev-harbour"
    folder.mkdir(parents=True)
    with running_sidecar(
        tmp_path / "home",
        watcher=True,
        watch_clients="claude-code",
        claude_config_dir=str(tmp_path / "claude"),
        judge_idle_s=0.5,
    ) as sidecar:
        ids = [sidecar.remember(pb.RememberRequest(content=text)).memory_id for text in (USED, UNUSED)]
        wait_until_embedded(sidecar)
        transcript = session(*ids)
        (folder / f"{transcript.session}.jsonl").write_bytes(transcript.to_bytes())
        _await_judged(sidecar, files=1)
        query = "how do I run the integration tests of the harbour service"
        used, unused = (
            sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=memory_id, query=query)) for memory_id in ids
        )
        copy = transcript.fork("7d1c0f52-0f4e-4b57-9d0a-3f2d8f6f9a11")
        (folder / f"{copy.session}.jsonl").write_bytes(copy.to_bytes())
        _await_judged(sidecar, files=2)
        again = sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=ids[0], query=query))
    assert [verdict.judge for verdict in used.verdicts] == ["local-2"]
    assert used.verdicts[0].used >= 0.6
    assert used.multiplier > 1
    assert used.rank_change.rank == 1
    assert unused.verdicts[0].used < 0.6
    assert unused.multiplier == 1
    assert (again.multiplier, len(again.events)) == (used.multiplier, len(used.events))


def _await_judged(sidecar: Sidecar, *, files: int) -> None:
    """Return when so many transcripts are read to their end, and what both memories wait for is judged."""
    ends_at = time.monotonic() + 60
    while True:
        read = sidecar.list_cursors(evidence.ListCursorsRequest()).cursors
        queue = sidecar.get_judge_queue(insights.GetJudgeQueueRequest())
        if len(read) == files and (queue.done, queue.waiting, queue.parked) == (2, 0, 0):
            return
        assert time.monotonic() < ends_at, (read, queue)
        time.sleep(0.1)
