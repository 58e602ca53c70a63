"""Every reader that ships passes the suite that authors of other plugins use; and the suite finds what is wrong."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from client_plugins.claude_code import PLUGIN
from client_plugins.kit.plugin import ClientPlugin, LineReading, TranscriptContext
from client_plugins.kit.project import ProjectFinder
from sidecar.domain.evidence import RecallCalled, TextSpoken, ToolAnswered
from sidecar.errors import InvalidInputError
from sidecar.testing.conformance import Check, ClientCase, conformance_checks
from tests.client_cases import CASES, claude_code


@pytest.mark.parametrize("check", [check for case in CASES for check in conformance_checks(case)], ids=str)
def test_conformance(check: Check) -> None:
    """Each check says itself what must hold."""
    check.run()


Spoil = Callable[[LineReading, bytes, str], LineReading]
"""Makes a fault out of a reading, the line and the state before it."""


class FaultyPlugin:
    """Claude Code's plugin with a fault in its reader."""

    name = PLUGIN.name
    parser_version = PLUGIN.parser_version

    def __init__(self, spoil: Spoil) -> None:
        self._spoil = spoil

    def roots(self, environment: Mapping[str, str]) -> Sequence[Path]:
        return PLUGIN.roots(environment)

    def transcript_at(self, parts: Sequence[str]) -> TranscriptContext | None:
        return PLUGIN.transcript_at(parts)

    def may_hold_transcripts(self, parts: Sequence[str]) -> bool:
        return PLUGIN.may_hold_transcripts(parts)

    def read_line(self, line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
        return self._spoil(PLUGIN.read_line(line, context, state, project_of), line, state)


def _failed(plugin: ClientPlugin, *names: str) -> set[str]:
    """Return which of these checks fail, all of them if none is named."""
    case = ClientCase(plugin, claude_code.CASE.samples[:1], claude_code.CASE.quote, claude_code.CASE.unheard_of)
    failed: set[str] = set()
    for check in conformance_checks(case):
        if names and check.name.rpartition("-")[2] not in names:
            continue
        try:
            check.run()
        except (AssertionError, ValueError):
            failed.add(check.name.rpartition("-")[2])
    return failed


def _without_ids(reading: LineReading, line: bytes, state: str) -> LineReading:
    return replace(reading, events=tuple(replace(event, event_id="") for event in reading.events))


def _ids_by_line(reading: LineReading, line: bytes, state: str) -> LineReading:
    """Name texts by how many lines stand before them, which a copy keeps and a repetition does not."""
    number = int(state or 0)
    events = tuple(
        replace(event, event_id=f"{number}") if isinstance(event.payload, TextSpoken) else event
        for event in reading.events
    )
    return replace(reading, events=events, state=str(number + 1))


def _grows(reading: LineReading, line: bytes, state: str) -> LineReading:
    return replace(reading, state=state + "x" * 400)


def _scans(reading: LineReading, line: bytes, state: str) -> LineReading:
    """Take every mention of a call for one."""
    found = re.search(rb"mcp__memory__recall\W", line)
    if found is None or not reading.events:
        return reading
    thing = reading.events[0]
    return replace(reading, events=(*reading.events, replace(thing, payload=RecallCalled(thing.event_id, "recall"))))


def _fails(reading: LineReading, line: bytes, state: str) -> LineReading:
    if reading.skipped == "not_json":
        raise ValueError
    return reading


def _hushes(reading: LineReading, line: bytes, state: str) -> LineReading:
    return replace(reading, unrecognised="", skipped=reading.skipped or None)


def _drops_results(reading: LineReading, line: bytes, state: str) -> LineReading:
    kept = tuple(event for event in reading.events if not isinstance(event.payload, ToolAnswered))
    return replace(reading, events=kept, skipped="dropped")


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (_without_ids, "ids_are_sound"),
        (_ids_by_line, "repetitions_add_nothing"),
        (_grows, "any_state_does_no_harm"),
        (_scans, "quotations_are_no_calls"),
        (_fails, "damage_costs_only_its_line"),
        (_hushes, "unheard_of_records_are_counted"),
        (_drops_results, "reads_what_is_there"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).strip("_"),
)
def test_faults_are_found(spoil: Spoil, check: str) -> None:
    """A suite that nothing fails says nothing."""
    assert check in _failed(FaultyPlugin(spoil), check)


def test_a_reader_that_remembers_is_found() -> None:
    """What it keeps in itself is gone with the next restart."""
    seen: list[bytes] = []

    def remember(reading: LineReading, line: bytes, state: str) -> LineReading:
        seen.append(line)
        return replace(reading, skipped=f"line_{len(seen)}")

    checks = {"reading_is_pure", "every_cut_ends_the_same"}
    assert _failed(FaultyPlugin(remember), *checks) == checks


def test_the_plugin_itself_has_no_faults() -> None:
    """Otherwise the tests above would prove nothing."""
    assert not _failed(FaultyPlugin(lambda reading, line, state: reading))
    with pytest.raises(InvalidInputError, match="one sample"):
        conformance_checks(replace(claude_code.CASE, samples=()))
