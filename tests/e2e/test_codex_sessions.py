"""A Codex session that grows while the sidecar watches, stops and comes again: the ledger tells what was shown."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as pb
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as memories
from sidecar.client import Sidecar
from sidecar.testing.codex_transcripts import CodexTranscript, codex_result
from tests.e2e.running import running_sidecar

THREAD = "01a22da8-08e8-7561-841b-72e2a1f353aa"


@contextmanager
def _watching(folder: Path) -> Iterator[Sidecar]:
    with running_sidecar(
        folder / "home", watcher=True, watch_clients="codex", codex_home=str(folder / "codex"), embedder="none"
    ) as sidecar:
        yield sidecar


def _remember(sidecar: Sidecar, text: str) -> str:
    return sidecar.remember(memories.RememberRequest(content=text)).memory_id


def _session(sidecar: Sidecar) -> list[pb.SessionRecall]:
    return list(sidecar.get_session(pb.GetSessionRequest(client="codex", session=THREAD)).recalls)


def _await(sidecar: Sidecar, recalls: int, answered: int) -> list[pb.SessionRecall]:
    for _ in range(600):
        found = _session(sidecar)
        open_count = [one.shown.unknown.reason for one in found].count(pb.UNKNOWN_REASON_NO_RESULT)
        if (len(found), len(found) - open_count) == (recalls, answered):
            return found
        time.sleep(0.05)
    raise AssertionError(f"{_session(sidecar)}; {sidecar.get_status(admin.GetStatusRequest()).watcher}")


def test_a_growing_session_over_a_restart_of_the_sidecar(tmp_path: Path) -> None:
    """The sidecar stops between a script's recall and the script's output: what was carried is in the store."""
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    path = folder / f"rollout-2026-11-30T18-11-56-{THREAD}.jsonl"
    rollout = CodexTranscript(thread=THREAD)
    written = 0

    def write() -> None:
        nonlocal written
        for line in rollout.lines()[written:]:
            with path.open("ab") as file:
                file.write(line)
            written += 1

    with _watching(tmp_path) as sidecar:
        one, two, three = (_remember(sidecar, text) for text in ("Deploys on Tuesday.", "Staging.", "Flags."))
        rollout.head()
        rollout.begin_turn("When do we deploy?")
        direct = rollout.direct_recall(one, two)
        script = rollout.script()
        nested = rollout.mcp_item("", codex_result(one, two, three))
        write()
        _await(sidecar, recalls=2, answered=1)
    with _watching(tmp_path) as sidecar:
        rollout.script_output(script, f"only {three}")
        rollout.message("assistant", "On Tuesday.")
        rollout.end_turn()
        write()
        archived = tmp_path / "codex" / "archived_sessions"
        archived.mkdir()
        _await(sidecar, recalls=2, answered=2)
        path = path.rename(archived / path.name)
        rollout.begin_turn("And then?")
        empty = rollout.direct_recall()
        write()
        recalls = _await(sidecar, recalls=3, answered=3)
        (coverage,) = sidecar.list_sessions(pb.ListSessionsRequest()).sessions
        (cursor,) = [
            one
            for one in sidecar.list_cursors(pb.ListCursorsRequest(client="codex")).cursors
            if Path(one.path) == path.resolve()
        ]
    assert {one.call_id: list(one.shown.ids.memory_ids) for one in recalls} == {
        direct: [one, two],
        nested: [three],
        empty: [],
    }
    assert [one.shown.WhichOneof("state") for one in recalls] == ["ids", "ids", "nothing"]
    assert (coverage.recalls, coverage.shown, coverage.nothing_shown, dict(coverage.unknown)) == (3, 3, 1, {})
    assert (coverage.thread.project, coverage.thread.client_version) == ("shop", "0.171.0")
    assert (cursor.offset, cursor.generation, cursor.lines_read) == (path.stat().st_size, 0, len(rollout.lines()))


@pytest.mark.timeout(120)
def test_cited_memory_counts_at_once_and_the_end_of_the_session_has_the_rest_judged(tmp_path: Path) -> None:
    """A citation is proof under its own name; a program that ended is judged without an hour of quiet before."""
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    with running_sidecar(
        tmp_path / "home", watcher=True, watch_clients="codex", codex_home=str(tmp_path / "codex"), judge_idle_s=3600.0
    ) as sidecar:
        cited, shown = (_remember(sidecar, text) for text in ("Deploys go out on Tuesday.", "Staging is called Elm."))
        rollout = CodexTranscript(thread=THREAD)
        rollout.head()
        rollout.begin_turn("When do we deploy?")
        rollout.direct_recall(cited, shown)
        entry = f"{cited}:1-1|note=[day of deploys]"
        block = f"<oai-mem-citation>\n<citation_entries>\n{entry}\n</citation_entries>\n</oai-mem-citation>"
        rollout.message("assistant", f"On Tuesday.\n{block}")
        rollout.end_turn()
        (folder / f"rollout-2026-11-30T18-11-56-{THREAD}.jsonl").write_bytes(b"".join(rollout.lines()))
        (recall,) = _await(sidecar, recalls=1, answered=1)
        while (queue := sidecar.get_judge_queue(insights.GetJudgeQueueRequest())).done < 2:
            assert not queue.parked
            time.sleep(0.2)
        explained = [
            sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=memory_id)) for memory_id in (cited, shown)
        ]
        found = sidecar.get_memory(memories.GetMemoryRequest(memory_id=cited)).usage_events
    assert list(recall.used_memory_ids) == [cited]
    assert [len(one.verdicts) for one in explained] == [1, 1]
    assert [one.multiplier > 1 for one in explained] == [True, False]
    assert memories.USAGE_SOURCE_CITATION in {one.source for one in found}
