"""What sessions of the real Codex showed, call by call. Expected by hand, from the scripts that the model followed.

Those in `tests/golden` are the recorded ones made small; `early` is written by hand in the form of version 0.116.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client_plugins.codex import PLUGIN
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
SHIPPED = ROOT / "tests" / "golden" / "codex"
SHARED = ROOT.parent / "shared" / "lab" / "transcripts" / "codex"

DEPLOYS, STAGING, FLAGS = (
    "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F",
    "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W",
    "mem_01J8ZQ6B3D5F7H9K1N3Q5S7V9X",
)
STORED = "mem_KYYXB8GYYFBRR4K01HKJK3JQ7B"


def _shows(*memory_ids: str) -> Shown:
    return Shown(ShownState.IDS, memory_ids=memory_ids)


ALL_THREE = _shows(DEPLOYS, STAGING, FLAGS)
REFUSED = Shown(ShownState.UNKNOWN, reason=UnknownReason.REFUSED)
A_ROUND = [("recall", ALL_THREE), ("recall", _shows(DEPLOYS))]
IN_PARALLEL = [("recall", ALL_THREE), ("recall", _shows(DEPLOYS)), ("build_context", ALL_THREE)]
# The ids stand at the beginning, and both cuts are in the middle.
A_LARGE_ONE = [("build_context", ALL_THREE)]
# Session: what its recalls showed, what its calls of `remember` stored, and its sub-agents.
EXPECTED: dict[str, tuple[list[tuple[str, Shown]], list[str], int]] = {
    "memory_round": (A_ROUND, [STORED], 0),
    "memory_round_search": (A_ROUND, [STORED], 0),
    "memory_round_direct": (A_ROUND, [STORED], 0),
    "terminal": (A_ROUND, [STORED], 0),
    "plugin": (A_ROUND, [STORED], 0),
    "forked": (A_ROUND, [STORED], 0),
    "shown_less_than_returned": ([("recall", _shows(DEPLOYS))], [], 0),
    "parallel_calls": (IN_PARALLEL, [], 0),
    "parallel_calls_direct": (IN_PARALLEL, [], 0),
    "large_and_failing": (A_LARGE_ONE, [], 0),
    "large_and_failing_direct": (A_LARGE_ONE, [], 0),
    "subagent": ([("recall", ALL_THREE)], [], 1),
    "subagent_direct": ([("recall", ALL_THREE)], [], 1),
    "compaction": ([("recall", ALL_THREE)] * 2, [], 0),
    "compaction_mid_turn": ([("recall", ALL_THREE)], [], 0),
    "hooks": (A_ROUND, [STORED], 0),
    "hooks_large_and_failing": (A_LARGE_ONE, [], 0),
    "hooks_subagent": ([("recall", ALL_THREE)], [], 1),
    "hooks_compaction": ([("recall", ALL_THREE)] * 2, [], 0),
}
EARLY: tuple[list[tuple[str, Shown]], list[str], int] = (
    [("recall", _shows(DEPLOYS, STAGING)), ("recall", REFUSED)],
    [],
    0,
)


def _events_of(path: Path) -> Iterator[EvidenceEvent]:
    context = PLUGIN.transcript_at(("2026", "11", "30", path.name))
    assert context is not None
    state = ""
    for line in path.read_bytes().splitlines(keepends=True):
        reading = PLUGIN.read_line(line, context, state, lambda cwd: Path(cwd).name)
        assert reading.recognised, reading.unrecognised
        state = reading.state
        yield from reading.events


def _check(session: Path, expected: tuple[list[tuple[str, Shown]], list[str], int], *, version: str) -> None:
    events = [event for path in sorted(session.glob("rollout-*.jsonl")) for event in _events_of(path)]
    keys = [(type(event.payload), event.event_id) for event in events]
    assert len(keys) == len(set(keys))
    payloads = [event.payload for event in events]
    answers = {payload.call_id: payload.shown for payload in payloads if isinstance(payload, ToolAnswered)}
    recalls = [(payload.tool, answers[payload.call_id]) for payload in payloads if isinstance(payload, RecallCalled)]
    stored = [answers[p.call_id].memory_ids[0] for p in payloads if isinstance(p, RememberCalled)]
    threads = {event.thread for event in events}
    assert (recalls, stored, len({thread.agent_id for thread in threads if thread.agent_id})) == expected
    assert len({thread.session for thread in threads}) == (2 if session.name == "forked" else 1)
    assert {(thread.project, thread.client_version) for thread in threads} == {("demo-project", version)}


@pytest.mark.parametrize("name", sorted(path.name for path in SHIPPED.iterdir() if path.name in EXPECTED))
def test_shipped_recordings_tell_what_was_shown(name: str) -> None:
    """What the real client writes is what the reader must understand."""
    _check(SHIPPED / name, EXPECTED[name], version="0.171.0")


def test_a_session_of_an_early_version_tells_what_was_shown() -> None:
    """Names in one piece, events of the old kind, no ids of messages, a turn that was interrupted."""
    _check(SHIPPED / "early", EARLY, version="0.116.0")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_all_recordings_tell_what_was_shown(name: str) -> None:
    """Also those that are not shipped, where they are at hand."""
    if not (SHARED / name).is_dir():
        pytest.skip("the recorded sessions in ../shared are not here")
    _check(SHARED / name, EXPECTED[name], version="0.171.0")


def test_all_recordings_are_looked_at() -> None:
    """None of them may be left out by oversight."""
    if not SHARED.is_dir():
        pytest.skip("the recorded sessions in ../shared are not here")
    assert {path.name for path in SHARED.iterdir() if path.is_dir()} == set(EXPECTED)
