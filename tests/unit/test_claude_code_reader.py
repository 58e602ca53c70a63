"""What lines of Claude Code transcripts say. Synthetic lines; recorded sessions are in tests/golden."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client_plugins.claude_code import PLUGIN
from client_plugins.claude_code.locate import transcript_roots
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
    UnknownReason,
)
from sidecar.testing.transcripts import ClaudeCodeTranscript, sample_memory_id, text_block

ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))
CONTEXT = TranscriptContext(session="from-the-path")
SPILLED = (
    "Error: result (120,000 characters across 1,739 lines) exceeds maximum allowed tokens. Output has been saved to "
    f"/x/tool-results/mcp-memory-recall-1.txt. {ONE}"
)
PERSISTED = f"<persisted-output>\nOutput too large (57.9KB). Full output saved to: /x/a.txt\n\nPreview:\n{ONE}"


def _read(transcript: ClaudeCodeTranscript, context: TranscriptContext = CONTEXT) -> list[LineReading]:
    return [PLUGIN.read_line(line, context, "", str) for line in transcript.lines()]


def _events(transcript: ClaudeCodeTranscript, context: TranscriptContext = CONTEXT) -> list[EvidenceEvent]:
    return [event for reading in _read(transcript, context) for event in reading.events]


def _answers(transcript: ClaudeCodeTranscript) -> dict[str, Shown]:
    payloads = [event.payload for event in _events(transcript)]
    return {payload.call_id: payload.shown for payload in payloads if isinstance(payload, ToolAnswered)}


def _ids(*memory_ids: str) -> Shown:
    return Shown(ShownState.IDS, memory_ids=memory_ids)


def _unknown(reason: UnknownReason) -> Shown:
    return Shown(ShownState.UNKNOWN, reason=reason)


def test_a_session_becomes_events_in_the_order_of_the_file() -> None:
    """Everything that a ledger needs: who, when, under which id."""
    transcript = ClaudeCodeTranscript(cwd="shop")
    asked = transcript.user("When do we deploy?")
    transcript.agent({"type": "thinking", "thinking": "hm", "signature": "x"})
    call_id = transcript.recall(ONE)
    noted = transcript.call("mcp__memory__remember", {"content": "On Tuesday."})
    listed = transcript.call("Bash", {"command": "ls"})
    transcript.agent_text("On Tuesday.", message_id="msg_1")
    events = _events(transcript)
    assert [event.payload for event in events if not isinstance(event.payload, ToolAnswered)] == [
        TextSpoken(SliceKind.USER_TEXT, "When do we deploy?"),
        RecallCalled(call_id, "recall"),
        RememberCalled(noted),
        ToolCalled(listed, "Bash", "command: ls"),
        TextSpoken(SliceKind.AGENT_TEXT, "On Tuesday."),
    ]
    assert [event.event_id.partition(":")[0] for event in events] == [asked, call_id, call_id, noted, listed, "msg_1"]
    assert len({event.event_id for event in events}) == len(events)
    thread = events[0].thread
    assert (thread.client, thread.session, thread.agent_id) == ("claude-code", transcript.session, "")
    assert events[0].at == datetime(2026, 11, 30, 18, 0, tzinfo=UTC)


def test_parallel_recalls_are_told_apart() -> None:
    """Two calls of one message, results in reverse order: each result goes with its own call (hazard 1)."""
    transcript = ClaudeCodeTranscript()
    first = transcript.call("mcp__memory__recall")
    second = transcript.call("mcp__memory__recall")
    transcript.result(second, [text_block(TWO)])
    transcript.result(first, [text_block(ONE)])
    assert _answers(transcript) == {second: _ids(TWO), first: _ids(ONE)}


def test_a_result_of_several_blocks_is_read_whole() -> None:
    """Taking only the first block loses memories; images and references say nothing (hazard 2)."""
    transcript = ClaudeCodeTranscript()
    call_id = transcript.call("mcp__memory__recall")
    image = {"type": "image", "source": {"type": "base64", "data": TWO}}
    transcript.result(call_id, [text_block(f"a {ONE}"), image, text_block(f"b {THREE}"), {"type": "tool_reference"}])
    assert _answers(transcript) == {call_id: _ids(ONE, THREE)}


@pytest.mark.parametrize(
    ("content", "is_error", "shown"),
    [
        (f"Error executing tool: no {ONE}", True, _unknown(UnknownReason.ERRORED)),
        ([text_block(f"failed {ONE}")], True, _unknown(UnknownReason.ERRORED)),
        ("MCP error -32000: Connection closed", True, _unknown(UnknownReason.ERRORED)),
        ("PreToolUse:mcp__memory__recall hook error: no", True, _unknown(UnknownReason.REFUSED)),
        ("The user doesn't want to proceed with this tool use.", True, _unknown(UnknownReason.REFUSED)),
        ("[Request interrupted by user for tool use]", True, _unknown(UnknownReason.REFUSED)),
        ("Claude requested permissions to use it, but you haven't", True, _unknown(UnknownReason.REFUSED)),
        (SPILLED, False, _unknown(UnknownReason.SPILLED)),
        (SPILLED, True, _unknown(UnknownReason.SPILLED)),
        ([text_block(SPILLED)], False, _unknown(UnknownReason.SPILLED)),
        (PERSISTED, False, _unknown(UnknownReason.SPILLED)),
        ("[Old tool result content cleared]", False, _unknown(UnknownReason.TRUNCATED)),
        ([{"type": "image"}], False, _unknown(UnknownReason.UNREADABLE)),
        (7, False, _unknown(UnknownReason.UNREADABLE)),
        ({"result": [{"id": ONE}]}, False, _unknown(UnknownReason.UNREADABLE)),
        ("", False, Shown(ShownState.NOTHING)),
        ([], False, Shown(ShownState.NOTHING)),
        ("(mcp__memory__recall completed with no output)", False, Shown(ShownState.NOTHING)),
        ('{"result":[]}', False, Shown(ShownState.NOTHING)),
        (f"{ONE} says: exceeds maximum allowed tokens. Output has been saved", False, _ids(ONE)),
        (json.dumps({"text": f"<persisted-output>\n{ONE}"}), False, _ids(ONE)),
    ],
)
def test_a_result_tells_what_the_model_saw(content: object, is_error: bool, shown: Shown) -> None:
    """Errors, refusals and spilled results are not known, never zero, even if they quote an id (hazards 3, 12)."""
    transcript = ClaudeCodeTranscript()
    call_id = transcript.call("mcp__memory__recall")
    transcript.result(call_id, content, is_error=is_error)
    assert _answers(transcript) == {call_id: shown}


def test_copies_elsewhere_in_a_record_do_not_count() -> None:
    """The model received `content` alone (fact 7)."""
    transcript = ClaudeCodeTranscript()
    call_id = transcript.call("mcp__memory__recall")
    transcript.result(call_id, "nothing", mcpMeta={"structuredContent": {"id": ONE}}, wireToolInputs=[TWO])
    transcript.records[-1]["toolUseResult"] = [text_block(THREE)]
    transcript.agent_text("ok", attributionMcpTool="recall", toolUseResult=ONE)
    assert _answers(transcript) == {call_id: Shown(ShownState.NOTHING)}


def test_what_the_client_wrote_is_left_out() -> None:
    """Summaries, meta prompts, synthetic answers, command echoes and reminders are nobody's words."""
    transcript = ClaudeCodeTranscript()
    inner = {"message": {"content": [{"type": "tool_use", "id": "t", "name": "mcp__memory__recall", "input": {}}]}}
    transcript.user(f"Summary: {ONE}", isCompactSummary=True)
    transcript.user([text_block("Continue from where you left off.")], isMeta=True)
    transcript.user("<command-name>/compact</command-name>")
    transcript.user("<local-command-stdout>Compacted </local-command-stdout>")
    transcript.user("<system-reminder>x</system-reminder>")
    transcript.user("[Request interrupted by user]")
    transcript.user("done", origin={"kind": "task-notification"})
    transcript.agent_text("No response requested.")
    message = transcript.records[-1]["message"]
    assert isinstance(message, dict)
    message["model"] = "<synthetic>"
    transcript.agent_text("API Error: 500", isApiErrorMessage=True)
    transcript.add("progress", data={"message": inner})
    transcript.add("attachment", attachment={"type": "hook_success", "content": ONE})
    transcript.add("summary", summary=ONE)
    transcript.add("system", subtype="compact_boundary", content=ONE)
    readings = _read(transcript)
    assert not [reading.events for reading in readings if reading.events]
    assert all(reading.skipped and reading.recognised for reading in readings)


def test_quoted_transcripts_are_not_calls() -> None:
    """A file that was read, or a user who pastes, may hold whole records of ours (hazard 18)."""
    inner = ClaudeCodeTranscript(seed="quoted")
    inner.recall(ONE)
    transcript = ClaudeCodeTranscript()
    transcript.user(inner.to_bytes().decode())
    call_id = transcript.call("Read", {"file_path": "old.jsonl"})
    transcript.result(call_id, inner.to_bytes().decode())
    payloads = [event.payload for event in _events(transcript)]
    assert [type(payload) for payload in payloads] == [TextSpoken, ToolCalled, ToolAnswered]


def test_calls_and_results_in_the_wrong_role_do_not_count() -> None:
    """A `tool_use` of the user's or a `tool_result` of the model's is not what happened, but a text someone wrote."""
    transcript = ClaudeCodeTranscript()
    transcript.user([{"type": "tool_use", "id": "t", "name": "recall", "input": {}}])
    transcript.agent({"type": "tool_result", "tool_use_id": "t", "content": ONE})
    assert not _events(transcript)


def test_mixed_blocks_of_one_record_are_all_read() -> None:
    """Some records hold a result and a text beside it."""
    transcript = ClaudeCodeTranscript()
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": ONE}
    transcript.user([result, text_block("and hurry"), "please", 7, None, {"type": "novel"}])
    (reading,) = _read(transcript)
    assert [type(event.payload) for event in reading.events] == [ToolAnswered, TextSpoken, TextSpoken]
    assert reading.unrecognised == "block:novel"


def test_a_result_without_its_call_and_a_call_without_result_are_reported_as_they_are() -> None:
    """Files are cut and sessions interrupted; pairing is the ledger's job (hazard 13)."""
    transcript = ClaudeCodeTranscript()
    transcript.result("toolu_lost", [text_block(ONE)])
    call_id = transcript.call("mcp__memory__recall")
    assert [event.payload for event in _events(transcript)] == [
        ToolAnswered("toolu_lost", _ids(ONE), ONE),
        RecallCalled(call_id, "recall"),
    ]


def test_a_fork_repeats_the_same_events() -> None:
    """A fork copies every record under another session; the ids say that nothing is new (hazard 11)."""
    transcript = ClaudeCodeTranscript()
    transcript.user("When?")
    transcript.recall(ONE)
    transcript.agent_text("On Tuesday.")
    fork = transcript.fork("another-session")
    fork.agent_text("Anything else?")
    ids = [event.event_id for event in _events(transcript)]
    assert [event.event_id for event in _events(fork)][:-1] == ids
    assert {event.thread.session for event in _events(fork)} == {"another-session"}


def test_rows_of_one_message_count_once_and_keep_its_final_text() -> None:
    """A message written again as it grows, or copied with fresh uuids, adds only what is new (B59)."""
    transcript = ClaudeCodeTranscript()
    call: dict[str, object] = {"type": "tool_use", "id": "toolu_1", "name": "mcp__memory__recall", "input": {}}
    transcript.agent(text_block("Let me see."), message_id="msg_1")
    transcript.agent(text_block("Let me see."), call, message_id="msg_1")
    transcript.agent(text_block("Let me see."), call, text_block("There."), message_id="msg_1")
    transcript.agent(text_block("Let me see."), message_id="msg_2")
    events = {event.event_id: event.payload for event in _events(transcript)}
    assert list(events.values()) == [
        TextSpoken(SliceKind.AGENT_TEXT, "Let me see."),
        RecallCalled("toolu_1", "recall"),
        TextSpoken(SliceKind.AGENT_TEXT, "There."),
        TextSpoken(SliceKind.AGENT_TEXT, "Let me see."),
    ]


def test_sub_agents_belong_to_their_parents_session() -> None:
    """Otherwise they would be sessions that nobody had (B53)."""
    context = PLUGIN.transcript_at(("-shop", "parent", "subagents", "agent-a1b2.jsonl"))
    assert context == TranscriptContext(session="parent", agent_id="a1b2")
    transcript = ClaudeCodeTranscript(session="parent", agent_id="a1b2")
    transcript.recall(ONE)
    threads = {event.thread for event in _events(transcript, context)}
    assert {(thread.session, thread.agent_id) for thread in threads} == {("parent", "a1b2")}


def test_inline_sub_agents_are_kept_apart_from_the_main_one() -> None:
    """Up to 1.0 their turns stood in the main file, with a mark and no id."""
    transcript = ClaudeCodeTranscript()
    transcript.agent_text("main")
    transcript.agent_text("side", isSidechain=True)
    assert [event.thread.agent_id for event in _events(transcript)] == ["", "sidechain"]


@pytest.mark.parametrize("session", [None, 7, "", "../../etc/passwd", "a b", "x" * 300, "\ud800"])
def test_a_session_id_that_is_none_gives_way_to_the_files_name(session: object) -> None:
    """What is in a record may be anything, and session ids become keys."""
    transcript = ClaudeCodeTranscript()
    transcript.agent_text("hello", sessionId=session)
    assert [event.thread.session for event in _events(transcript)] == ["from-the-path"]


def test_odd_call_ids_still_bring_call_and_result_together() -> None:
    """Other models behind the client make ids with newlines or of any length."""
    transcript = ClaudeCodeTranscript()
    odd = "call 1\nfc_" + "x" * 500
    transcript.call("mcp__memory__recall", call_id=odd)
    transcript.result(odd, ONE)
    call, answer = (event.payload for event in _events(transcript))
    assert isinstance(call, RecallCalled)
    assert isinstance(answer, ToolAnswered)
    assert call.call_id == answer.call_id
    assert len(call.call_id) < 30


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-11-30T18:09:40.540Z", datetime(2026, 11, 30, 18, 9, 40, 540_000, tzinfo=UTC)),
        ("2026-11-30T20:09:40+02:00", datetime(2026, 11, 30, 18, 9, 40, tzinfo=UTC)),
        ("2026-11-30T18:09:40", datetime(2026, 11, 30, 18, 9, 40, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", datetime(1970, 1, 1, tzinfo=UTC)),
        ("soon", datetime(1970, 1, 1, tzinfo=UTC)),
        (None, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_764_525_600, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_times_are_utc_and_the_same_at_every_reading(timestamp: object, expected: datetime) -> None:
    """A missing time is 1970 rather than now, which would change with each reading (hazard 17)."""
    transcript = ClaudeCodeTranscript()
    transcript.agent_text("hello", timestamp=timestamp)
    assert [event.at for event in _events(transcript)] == [expected]


def test_unknown_kinds_of_records_are_named() -> None:
    """When the client renames its records, the counters must tell within one file (B51)."""
    transcript = ClaudeCodeTranscript()
    transcript.add("assistant_turn_v2", {"content": "x"})
    transcript.add("mode")
    transcript.add("")
    transcript.add("assistant")
    transcript.user(7)
    kinds = [reading.unrecognised for reading in _read(transcript)]
    assert kinds == ["assistant_turn_v2", "", "untyped", "assistant:no_content", "user:no_content"]


def test_unicode_of_every_kind_survives() -> None:
    """Half a surrogate pair and NUL would break the message; whole letters stay as they are (B56, B57)."""
    transcript = ClaudeCodeTranscript()
    transcript.user("x")
    line = transcript.lines()[0].replace(b'"x"', b'"\\ud83d\\ude00 \\ud83d a\\u0000b \xe6\x97\xa5"')
    (event,) = PLUGIN.read_line(line, CONTEXT, "", str).events
    assert event.payload == TextSpoken(SliceKind.USER_TEXT, "😀 \ufffd a b 日")


def test_a_cut_text_names_the_memories_that_stand_behind_the_cut() -> None:
    """What is kept of a result is short, but all of it was shown."""
    transcript = ClaudeCodeTranscript()
    call_id = transcript.call("mcp__memory__recall")
    transcript.result(call_id, "x" * 50_000 + f" {ONE}")
    assert _answers(transcript) == {call_id: _ids(ONE)}


@pytest.mark.parametrize(
    ("path", "context"),
    [
        ("-shop/0b0e7a54.jsonl", TranscriptContext("0b0e7a54")),
        ("-shop/s/subagents/agent-a1.jsonl", TranscriptContext("s", "a1")),
        ("-shop/s/subagents/workflows/wf_1/agent-a1.jsonl", TranscriptContext("s", "a1")),
        ("-shop/s/subagents/workflows/wf_1/journal.jsonl", None),
        ("-shop/s/subagents/agent-acompact-1.jsonl", None),
        ("-shop/s/subagents/agent-a1.meta.json", None),
        ("-shop/s/tool-results/x.jsonl", None),
        ("-shop/s/x.jsonl", None),
        ("x.jsonl", None),
        ("-shop/a/b/c/d/e/agent-a1.jsonl", None),
    ],
)
def test_transcripts_are_told_from_other_files_by_their_path(path: str, context: TranscriptContext | None) -> None:
    """Spilled results, journals and the copies of a compacting agent are not read."""
    assert PLUGIN.transcript_at(path.split("/")) == context


def test_folders_without_transcripts_are_not_looked_into() -> None:
    """Results that were moved to files may be many."""
    looked_into = [(), ("-shop",), ("-shop", "s"), ("-shop", "s", "subagents"), ("-shop", "s", "subagents", "w")]
    assert all(map(PLUGIN.may_hold_transcripts, looked_into))
    assert not PLUGIN.may_hold_transcripts(("-shop", "s", "tool-results"))


def test_the_configuration_folder_can_be_set(tmp_path: Path) -> None:
    """A relative setting would depend on where the watcher was started, so it is ignored."""
    assert transcript_roots({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == [tmp_path / "projects"]
    assert transcript_roots({}) == [Path.home() / ".claude" / "projects"]
    assert transcript_roots({"CLAUDE_CONFIG_DIR": "here"}) == []


_KEYS = st.sampled_from(
    [
        *(
            "type",
            "message",
            "content",
            "text",
            "id",
            "name",
            "input",
            "tool_use_id",
            "is_error",
            "role",
            "model",
            "uuid",
        ),
        *("sessionId", "cwd", "isMeta", "timestamp", "agentId", "isSidechain", "origin", "version"),
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(ONE),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    record=st.fixed_dictionaries(
        {"type": st.sampled_from(["assistant", "user", "system", 7])},
        optional={"message": st.fixed_dictionaries({"content": _JSON}) | _JSON, "cwd": _JSON, "timestamp": _JSON},
    )
)
def test_records_of_any_shape_do_no_harm(record: dict[str, object]) -> None:
    """Every field may be missing or of another type; the reader never fails."""
    reading = PLUGIN.read_line(json.dumps(record).encode(), CONTEXT, "", str)
    assert reading.events or reading.skipped


@settings(max_examples=300, deadline=None)
@given(line=st.binary(max_size=200))
def test_bytes_of_any_kind_do_no_harm(line: bytes) -> None:
    """A transcript may be damaged, or not be one."""
    assert not PLUGIN.read_line(line, CONTEXT, "", str).events
