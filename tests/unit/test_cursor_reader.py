"""What lines of Cursor's transcripts say, and that a file which is rewritten in place is read once."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from client_plugins.cursor import PLUGIN
from client_plugins.cursor.locate import transcript_roots
from client_plugins.cursor.turns import Turns, prompt_time, tool_name
from client_plugins.kit.coverage import Coverage
from client_plugins.kit.plugin import LineReading, TranscriptContext
from sidecar.domain.evidence import (
    EvidenceEvent,
    RecallCalled,
    RememberCalled,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
)
from sidecar.testing.conformance.folding import TailedFile, by_key, fold, found_in
from sidecar.testing.cursor_transcripts import CursorTranscript

WRITTEN_AT = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
CONTEXT = TranscriptContext("session-1", form="jsonl", written_at=WRITTEN_AT)
CANNOT_RECORD = Shown(ShownState.CANNOT_RECORD)


def _read(transcript: CursorTranscript, context: TranscriptContext = CONTEXT) -> list[LineReading]:
    return list(fold(PLUGIN, transcript.lines(), context))


def _events(transcript: CursorTranscript, context: TranscriptContext = CONTEXT) -> list[EvidenceEvent]:
    return [event for reading in _read(transcript, context) for event in reading.events]


def _tailed(folder: Path) -> TailedFile:
    return TailedFile(PLUGIN, folder / "s.jsonl", TranscriptContext("s", form="jsonl"))


def test_a_turn_becomes_events() -> None:
    """Prompt, call, answer; what the call showed is absent, which is not the same as nothing."""
    transcript = CursorTranscript().user("When do we deploy?").mcp_call("recall", {"query": "deploy"})
    transcript.agent("On Tuesday.").end_turn()
    events = _events(transcript)
    call, answer = events[1].payload, events[2].payload
    assert isinstance(call, RecallCalled)
    assert [event.payload for event in events] == [
        TextSpoken(SliceKind.USER_TEXT, "When do we deploy?"),
        RecallCalled(call.call_id, "recall"),
        ToolAnswered(call.call_id, CANNOT_RECORD, ""),
        TextSpoken(SliceKind.AGENT_TEXT, "On Tuesday."),
    ]
    assert isinstance(answer, ToolAnswered)
    assert {(event.thread.client, event.thread.session, event.thread.project) for event in events} == {
        ("cursor", "session-1", "")
    }
    assert [reading.skipped for reading in _read(transcript)] == [None, None, None, "silent"]


@pytest.mark.parametrize(
    ("name", "passed", "payload"),
    [
        ("CallMcpTool", {"arguments": {"query": "x"}, "toolName": "recall", "server": "user-m"}, RecallCalled),
        ("CallMcpTool", {"toolName": "build_context"}, RecallCalled),
        ("CallMcpTool", {"server": "user-m", "toolName": "remember", "arguments": None}, RememberCalled),
        ("CallDynamicTool", {"namespace": "m", "toolName": "recall", "mcpDetails": {}, "arguments": {}}, RecallCalled),
        ("CallMcpTool", {}, ToolCalled),
        ("CallMcpTool", {"server": "user-m"}, ToolCalled),
        ("CallMcpTool", {"toolName": 7}, ToolCalled),
        ("CallMcpTool", None, ToolCalled),
        ("GetMcpTools", {"toolName": "recall"}, ToolCalled),
        ("Shell", {"command": "recall", "toolName": "recall"}, ToolCalled),
    ],
)
def test_calls_are_told_by_the_name_of_their_tool(name: str, passed: object, payload: type) -> None:
    """Keys come in any order and may be missing; lists of tools and other tools' inputs are no calls (hazard 19)."""
    found = _events(CursorTranscript().call(name, passed))
    assert isinstance(found[0].payload, payload)
    assert len(found) == (1 if payload is ToolCalled else 2)


def test_the_same_call_twice_is_two_calls_and_a_text_twice_is_one() -> None:
    """An agent may ask again for the same; what it says again says nothing new."""
    transcript = CursorTranscript().user("Go on").mcp_call("recall").mcp_call("recall").agent("Done.").agent("Done.")
    transcript.user("Go on").mcp_call("recall").agent("Done.")
    found = found_in(_events(transcript))
    assert len(found.recalls) == 3
    assert found.texts == ("Go on", "Done.", "Go on", "Done.")


@pytest.mark.parametrize("is_timed", [True, False])
def test_prompts_that_a_compaction_writes_again_add_nothing(is_timed: bool) -> None:
    """They have no mark; and what the agent does afterwards still counts."""
    transcript = CursorTranscript(is_timed).user("First").mcp_call("recall").user("Second").mcp_call("recall")
    before = by_key(_events(transcript))
    transcript.records += [transcript.records[0], transcript.records[2]] * 2
    assert by_key(_events(transcript)) == before
    transcript.mcp_call("recall").agent("Go on.")
    found = found_in(_events(transcript))
    assert len(found.recalls) == 3
    assert found.texts == ("First", "Second", "Go on.")


def test_what_cursor_writes_for_the_user_is_left_out() -> None:
    """Lists of tools, rules and open files are no words of the user's, and begin no turn."""
    transcript = CursorTranscript()
    transcript.add("user", {"type": "text", "text": "<dynamic_tools>\nrecall, remember\n</dynamic_tools>"})
    wrapped = "<open_files>a.py</open_files>\n<user_query>\nHelp me\n</user_query>"
    transcript.add("user", {"type": "text", "text": wrapped}, {"type": "image"})
    transcript.records.append({"role": "user", "message": {"content": "bare words"}})
    assert found_in(_events(transcript)).texts == ("Help me", "bare words")
    assert _read(transcript)[0].skipped == "client_text"


def test_thoughts_are_left_out() -> None:
    """Cursor puts a mark in their place, alone or behind a text."""
    transcript = CursorTranscript().agent("[REDACTED]").agent("I see.\n\n[REDACTED]").agent("")
    assert found_in(_events(transcript)).texts == ("I see.",)


def test_the_time_is_that_of_the_prompt_else_of_the_file() -> None:
    """Lines have no time; a session must not seem to be from 1970 nor from when it was read."""
    assert {event.at for event in _events(CursorTranscript().user("a").agent("b"))} == {
        datetime(2026, 11, 30, 17, 0, tzinfo=UTC)
    }
    untimed = CursorTranscript(is_timed=False).user("a").agent("b")
    assert {event.at for event in _events(untimed)} == {WRITTEN_AT}
    assert _events(untimed)[1].event_id == _events(untimed, TranscriptContext("session-1", form="jsonl"))[1].event_id


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Wednesday, Aug 5, 2026, 4:09 PM (UTC+7)", datetime(2026, 8, 5, 9, 9, tzinfo=UTC)),
        ("Wednesday, Aug 5, 2026, 12:09 AM (UTC-3:30)", datetime(2026, 8, 5, 3, 39, tzinfo=UTC)),
        ("Aug 5, 2026, 16:09 (UTC)", datetime(2026, 8, 5, 16, 9, tzinfo=UTC)),
        ("Wednesday, Xyz 5, 2026, 4:09 PM (UTC+7)", None),
        ("Wednesday, Feb 31, 2026, 4:09 PM (UTC+7)", None),
        ("Wednesday, Jan 1, 0001, 1:09 AM (UTC+14)", None),
        ("2026-08-05", None),
    ],
)
def test_times_of_prompts_are_read_as_utc(text: str, at: datetime | None) -> None:
    """What is no time is none, rather than a wrong one."""
    assert prompt_time(f"<timestamp>{text}</timestamp>\n<user_query>x</user_query>") == at


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_last_line_that_is_replaced_in_place_is_read_once(tmp_path: Path, is_restarted: bool) -> None:
    """With each turn the end of the last one is overwritten, by a longer line, then a shorter one (hazard 15)."""
    transcript = CursorTranscript().user("First").mcp_call("recall").agent("One.").end_turn()
    tailed = _tailed(tmp_path)
    expected = ["First", "One."]
    for prompt, answer in (("A much longer prompt " * 40, "Two."), ("x", "Three."), ("y", "z")):
        tailed.write(transcript.to_bytes())
        tailed.read()
        if is_restarted:
            tailed.restart()
        assert found_in(tailed.events.values()).texts == tuple(expected)
        transcript = transcript.copy().user(prompt.strip()).agent(answer).end_turn()
        expected += [prompt.strip(), answer]
    tailed.write(transcript.to_bytes())
    tailed.read()
    found = found_in(tailed.events.values())
    assert (found.texts, len(found.recalls)) == (tuple(expected), 1)
    assert by_key(tailed.events.values()) == by_key(_all_events(transcript, tailed.context))


def _all_events(transcript: CursorTranscript, context: TranscriptContext) -> list[EvidenceEvent]:
    return [event for reading in fold(PLUGIN, transcript.lines(), context) for event in reading.events]


def test_a_file_that_shrinks_is_read_from_where_it_still_stands(tmp_path: Path) -> None:
    """A turn that is taken back leaves a shorter file behind."""
    transcript = CursorTranscript().user("First").agent("One.").user("Second").agent("Two.").end_turn()
    tailed = _tailed(tmp_path)
    tailed.write(transcript.to_bytes())
    tailed.read()
    shorter = CursorTranscript(records=transcript.records[:2]).user("Other").end_turn()
    tailed.write(shorter.to_bytes())
    tailed.read()
    assert found_in(tailed.events.values()).texts == ("First", "One.", "Second", "Two.", "Other")


def test_calls_are_counted_and_no_result_is_claimed() -> None:
    """The coverage must not say that results were read."""
    coverage = Coverage()
    for number, reading in enumerate(_read(CursorTranscript().user("a").mcp_call("recall").call("Shell", {})), 1):
        coverage.add(reading, line_number=number)
    assert dict(coverage.as_pairs()) == {"recalls_called": 1, "texts": 1, "tools_called": 1}


def test_unknown_roles_types_and_blocks_are_named() -> None:
    """Should Cursor begin to write results, the coverage says so within one file."""
    transcript = CursorTranscript().add("tool").add("assistant", {"type": "tool_result", "content": "x"})
    transcript.add("user", {"type": "audio"})
    transcript.records += [{"type": "turn_started"}, {"type": "error"}, {}, {"role": "user", "message": {"content": 1}}]
    assert [reading.unrecognised for reading in _read(transcript)] == [
        *("tool", "block:tool_result", "block:audio", "turn_started", "", "untyped", "user:no_content"),
    ]


def test_a_state_of_another_form_begins_anew() -> None:
    """It may come from an older version."""
    turns = Turns().prompted("x")
    _, turns = turns.numbered_call()
    assert Turns.from_state(turns.to_state()) == turns
    for state in ("", "{}", "[1,2,3,4,5]", '["a",1e400,{},"",false]', '["a",null,{"b":"c"},"",false]', "[" * 10_000):
        assert Turns.from_state(state) == Turns()


def test_only_so_many_turns_are_remembered() -> None:
    """A session may have thousands, and a state 16 KiB."""
    turns = Turns()
    for number in range(2_000):
        _, turns = turns.prompted(str(number)).numbered_call()
    assert len(turns.to_state().encode()) < 12_000
    assert turns.numbered_call()[0] == 1


@pytest.mark.parametrize(
    ("path", "context"),
    [
        ("slug/agent-transcripts/a/a.jsonl", TranscriptContext("a", form="jsonl")),
        ("slug/agent-transcripts/a.jsonl", TranscriptContext("a", form="jsonl")),
        ("slug/agent-transcripts/a.txt", TranscriptContext("a", form="txt")),
        ("slug/agent-transcripts/a/subagents/b.jsonl", TranscriptContext("a", "b", form="jsonl")),
        ("slug/agent-transcripts/a/b.jsonl", None),
        ("slug/agent-transcripts/a/a.txt", None),
        ("slug/agent-tools/a.txt", None),
        ("slug/terminals/a.txt", None),
        ("slug/agent-transcripts/.jsonl", None),
        ("a.jsonl", None),
    ],
)
def test_transcripts_are_told_from_other_files_by_their_path(path: str, context: TranscriptContext | None) -> None:
    """Results that were moved to files, terminals and tool lists lie beside them."""
    assert PLUGIN.transcript_at(path.split("/")) == context


def test_folders_without_transcripts_are_not_looked_into() -> None:
    """Databases and caches of Cursor's are none of our business."""
    looked_into = [("s",), ("s", "agent-transcripts"), ("s", "agent-transcripts", "a")]
    assert all(map(PLUGIN.may_hold_transcripts, [*looked_into, ("s", "agent-transcripts", "a", "subagents")]))
    assert not any(map(PLUGIN.may_hold_transcripts, [("s", "agent-tools"), ("s", "agent-transcripts", "a", "b")]))
    assert transcript_roots({}) == [Path.home() / ".cursor" / "projects"]


def test_names_of_other_servers_tools_say_their_server() -> None:
    """The judge reads which tool it was."""
    assert tool_name("CallMcpTool", {"server": "user-gh", "toolName": "search"}) == "mcp__user-gh__search"
    (event,) = _events(CursorTranscript().call("CallMcpTool", json.loads('{"server":"gh","toolName":"s"}')))
    assert isinstance(event.payload, ToolCalled)
    assert event.payload.name == "mcp__gh__s"
