"""What recorded sessions of the real Claude Code showed, call by call. Expected by hand, from looking at the files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client_plugins.claude_code import PLUGIN
from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    RememberCalled,
    Shown,
    ShownState,
    ToolAnswered,
    UnknownReason,
)

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "tests" / "golden" / "claude_code"
SHARED = ROOT.parent / "shared" / "lab" / "transcripts" / "claude_code"

DEPLOYS, STAGING, FLAGS = (
    "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F",
    "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W",
    "mem_01J8ZQ6B3D5F7H9K1N3Q5S7V9X",
)
ALL_THREE = Shown(ShownState.IDS, memory_ids=(DEPLOYS, STAGING, FLAGS))
ONLY_DEPLOYS = Shown(ShownState.IDS, memory_ids=(DEPLOYS,))
SPILLED = Shown(ShownState.UNKNOWN, reason=UnknownReason.SPILLED)

A_ROUND = [("recall", ALL_THREE), ("recall", ONLY_DEPLOYS)]
A_COMPACTION = [("recall", ALL_THREE), ("recall", ALL_THREE)]
# Session: what its recalls showed, how often it called `remember`, and its sub-agents.
EXPECTED = {
    "memory_round": (A_ROUND, 1, 0),
    "terminal": (A_ROUND, 1, 0),
    "tool_search": (A_ROUND, 1, 0),
    "plugin": (A_ROUND, 1, 0),
    # The fork's copy of the first recall has the same id, so both files together hold the two of one session.
    "forked": (A_ROUND, 1, 0),
    "parallel_calls": (
        [("recall", ALL_THREE), ("recall", ONLY_DEPLOYS), ("build_context", ALL_THREE)],
        0,
        0,
    ),
    "large_and_failing": ([("build_context", SPILLED)], 0, 0),
    "subagent": ([("recall", ALL_THREE)], 0, 1),
    "compaction_auto": (A_COMPACTION, 0, 0),
    "compaction_manual": (A_COMPACTION, 0, 0),
    "hooks": (A_ROUND, 1, 0),
    "hooks_large_and_failing": ([("build_context", SPILLED)], 0, 0),
    "hooks_subagent": ([("recall", ALL_THREE)], 0, 1),
    "hooks_compaction": (A_COMPACTION, 0, 0),
}


def _events(session: Path) -> Iterator[EvidenceEvent]:
    for path in sorted(session.rglob("*.jsonl")):
        context = PLUGIN.transcript_at(("project", *path.relative_to(session).parts))
        # Beside the transcripts lie recordings of what hooks got.
        if context is not None and path.name != "hooks.jsonl":
            for line in path.read_bytes().splitlines(keepends=True):
                reading = PLUGIN.read_line(line, context, "", lambda cwd: Path(cwd).name)
                assert reading.recognised, reading.unrecognised
                yield from reading.events


def _check(session: Path) -> None:
    events = {event.event_id: event for event in _events(session)}
    payloads = [event.payload for event in events.values()]
    answers = {payload.call_id: payload.shown for payload in payloads if isinstance(payload, ToolAnswered)}
    recalls = [(payload.tool, answers[payload.call_id]) for payload in payloads if isinstance(payload, RecallCalled)]
    expected_recalls, remember_count, agent_count = EXPECTED[session.name]
    assert recalls == expected_recalls
    assert len([payload for payload in payloads if isinstance(payload, RememberCalled)]) == remember_count
    threads = {event.thread for event in events.values()}
    assert len({thread.agent_id for thread in threads if thread.agent_id}) == agent_count
    assert len({thread.session for thread in threads}) == (2 if session.name == "forked" else 1)
    assert {thread.project for thread in threads} == {"demo-project"}
    assert {thread.client_version for thread in threads} == {"2.1.197"}


@pytest.mark.parametrize("name", sorted(path.name for path in SHIPPED.iterdir() if path.is_dir()))
def test_shipped_recordings_tell_what_was_shown(name: str) -> None:
    """What the real client writes is what the reader must understand."""
    _check(SHIPPED / name)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_all_recordings_tell_what_was_shown(name: str) -> None:
    """Also those that are not shipped, where they are at hand."""
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded sessions in ../shared are not here")
    _check(SHARED / name)


def test_a_fork_adds_nothing_to_its_source() -> None:
    """Of a copied recall there is one, however many files it stands in."""
    first, second = sorted((SHIPPED / "forked").glob("*.jsonl"))
    ids = [{event.event_id for event in _events_of(path)} for path in (first, second)]
    assert ids[0] > ids[1] or ids[1] > ids[0]


def _events_of(path: Path) -> Iterator[EvidenceEvent]:
    context = PLUGIN.transcript_at(("project", path.name))
    assert context is not None
    for line in path.read_bytes().splitlines(keepends=True):
        yield from PLUGIN.read_line(line, context, "", str).events
