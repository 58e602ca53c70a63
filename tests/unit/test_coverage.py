"""What is told of what could be read: figures by client, version and channel, and warnings when a format changes."""

from dataclasses import replace

from client_plugins.claude_code import PLUGIN
from client_plugins.kit.coverage import Coverage
from client_plugins.kit.plugin import LineReading, TranscriptContext
from sidecar.domain.coverage import (
    HOOK,
    TRANSCRIPT,
    CallTally,
    ClientCoverage,
    latest_version,
    summarise_coverage,
)
from sidecar.domain.evidence import ShownState, TranscriptCursor, UnknownReason
from sidecar.testing.transcripts import ClaudeCodeTranscript, sample_memory_id
from tests.store_builders import cursor_at

CONTEXT = TranscriptContext("s")


def _cursor(transcript: ClaudeCodeTranscript, *, path: str = "a.jsonl") -> TranscriptCursor:
    """Return the cursor of a transcript that was read to its end."""
    coverage = Coverage()
    lines = transcript.lines()
    for number, line in enumerate(lines, 1):
        coverage.add(PLUGIN.read_line(line, CONTEXT, "", str), line_number=number)
    return cursor_at(10 * len(lines), path=path, skipped=coverage.as_pairs())


def _tally(state: ShownState, count: int = 1, **fields: object) -> CallTally:
    values = {"client": "claude-code", "client_version": "2.1.197", "reason": None, "shown": 0, **fields}
    return CallTally(state=state, count=count, **values)  # type: ignore[arg-type]


def test_calls_of_the_ledger_and_counters_of_files_come_together() -> None:
    """Calls count once, records as often as they stand in a file; both under the client's version."""
    transcript = ClaudeCodeTranscript()
    transcript.user("When?")
    transcript.recall(sample_memory_id(1))
    transcript.call("Bash", {"command": "ls"})
    transcript.add("mode")
    calls = [
        _tally(ShownState.IDS, 3, shown=7),
        _tally(ShownState.NOTHING, 2),
        _tally(ShownState.UNKNOWN, 1, reason=UnknownReason.SPILLED),
        _tally(ShownState.UNKNOWN, 4, reason=UnknownReason.NO_RESULT),
    ]
    (part,) = summarise_coverage(calls, [_cursor(transcript), _cursor(transcript, path="b.jsonl")])
    assert part == ClientCoverage(
        client="claude-code",
        channel=TRANSCRIPT,
        client_version="2.1.197",
        files=2,
        lines=10,
        calls=4,
        results=2,
        recalls=10,
        with_memories=3,
        shown=7,
        nothing_shown=2,
        unknown=(("no_result", 4), ("spilled", 1)),
        skipped=(("silent", 2),),
    )
    assert not part.warnings


def test_channels_and_versions_are_kept_apart() -> None:
    """What a hook tells is another source than the transcript, and a new version another reader's matter."""
    calls = [_tally(ShownState.CANNOT_RECORD), _tally(ShownState.IDS, client="claude-code-hooks", shown=2)]
    cursors = [
        cursor_at(10, skipped=(("version.2.1.0", 3), ("version.2.2.0", 9))),
        cursor_at(10, client="claude-code-hooks"),
    ]
    parts = [
        (part.channel, part.client_version, part.recalls, part.files) for part in summarise_coverage(calls, cursors)
    ]
    assert parts == [
        (HOOK, "", 0, 1),
        (HOOK, "2.1.197", 1, 0),
        (TRANSCRIPT, "2.1.197", 1, 0),
        (TRANSCRIPT, "2.2.0", 0, 1),
    ]


def test_one_file_of_a_new_format_is_enough_for_a_warning() -> None:
    """Renamed records would otherwise look like sessions without recalls."""
    transcript = ClaudeCodeTranscript(version="3.0.0")
    transcript.add("assistant_turn_v2", {"content": "x"})
    (part,) = summarise_coverage([], [_cursor(transcript)])
    assert (part.client_version, part.unrecognised) == ("3.0.0", (("assistant_turn_v2", 1),))
    assert part.warnings == ("1 records of kinds that the reader does not know (assistant_turn_v2)",)


def test_everything_that_hints_at_a_fault_is_said() -> None:
    """A file in which nothing was understood, results of another form, a reader that fails, damage."""
    cursor = cursor_at(
        400,
        skipped=(
            *(("results_unknown.unreadable", 2), ("skipped.not_json", 3), ("skipped.reader_failed", 1)),
            *((f"unrecognised.kind{n}", n) for n in range(1, 8)),
        ),
    )
    (part,) = summarise_coverage([], [cursor])
    assert part.warnings == (
        "28 records of kinds that the reader does not know (kind7, kind6, kind5, kind4, kind3 and 2 more)",
        "1 files in which nothing was understood",
        "2 results of a form that is not understood",
        "1 lines on which the reader failed",
        "3 lines that are damaged or too large",
    )
    assert summarise_coverage([], [replace(cursor, lines_read=3)])[0].mute_files == 0


def test_a_file_counts_for_the_version_that_wrote_it_last() -> None:
    """A session that is resumed after an update names several; hostile names are not repeated, nor too many."""
    coverage = Coverage()
    for number, version in enumerate(("2.1.0", "2.2.0", "2.1.0", "a b"), 1):
        coverage.add(LineReading(client_version=version), line_number=number)
    assert latest_version(dict(coverage.as_pairs())) == "2.1.0"
    for number in range(100):
        coverage.add(LineReading(client_version=f"9.{number}"), line_number=number + 9)
    assert len(coverage.as_pairs()) == 8
    assert latest_version(dict(coverage.as_pairs())) == "9.99"
