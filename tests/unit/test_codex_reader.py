"""What one Codex transcript says: each shape of a call, and everything that only looks like one."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from client_plugins.codex import PLUGIN
from client_plugins.codex.locate import may_hold_transcripts, transcript_at, transcript_roots
from client_plugins.kit.plugin import LineReading, TranscriptContext
from sidecar.domain.evidence import (
    MAX_READER_STATE_BYTES,
    EvidenceEvent,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    SessionEnded,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
    UnknownReason,
)
from sidecar.testing.codex_transcripts import CodexTranscript, Json, codex_result, codex_text
from sidecar.testing.transcripts import sample_memory_id

CONTEXT = TranscriptContext("from-the-name")
ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))
NOTHING = Shown(ShownState.NOTHING)
OTHER_THREAD = "01a22da9-0000-7000-8000-000000000002"


@dataclass(frozen=True)
class Seen:
    """What was read of a transcript, as the ledger takes it: the first event of each id counts."""

    readings: tuple[LineReading, ...]
    events: tuple[EvidenceEvent, ...]

    @property
    def recalls(self) -> dict[str, Shown | None]:
        """What each recall showed; None without an answer."""
        calls = [event.payload for event in self.events if isinstance(event.payload, RecallCalled)]
        return {call.call_id: self.answers.get(call.call_id) for call in calls}

    @property
    def answers(self) -> dict[str, Shown]:
        """What each answer showed."""
        return {e.payload.call_id: e.payload.shown for e in self.events if isinstance(e.payload, ToolAnswered)}

    @property
    def outputs(self) -> dict[str, str]:
        """The text of each answer."""
        return {e.payload.call_id: e.payload.text for e in self.events if isinstance(e.payload, ToolAnswered)}

    @property
    def tools(self) -> list[str]:
        """The names of other tools that were called."""
        return [event.payload.name for event in self.events if isinstance(event.payload, ToolCalled)]

    @property
    def texts(self) -> list[tuple[SliceKind, str]]:
        """What was said."""
        return [(e.payload.kind, e.payload.text) for e in self.events if isinstance(e.payload, TextSpoken)]

    @property
    def unrecognised(self) -> list[str]:
        """Kinds of records that are not known."""
        return [reading.unrecognised for reading in self.readings if reading.unrecognised]


def read_lines(lines: Iterable[bytes], context: TranscriptContext = CONTEXT) -> Seen:
    """Read lines one by one, each with the state of the one before."""
    readings: list[LineReading] = []
    state = ""
    events: dict[tuple[str, str], EvidenceEvent] = {}
    for line in lines:
        readings.append(PLUGIN.read_line(line, context, state, lambda cwd: Path(cwd).name))
        state = readings[-1].state
        assert len(state.encode()) <= MAX_READER_STATE_BYTES
        for event in readings[-1].events:
            events.setdefault((type(event.payload).__name__, event.event_id), event)
    return Seen(tuple(readings), tuple(events.values()))


def read(*transcripts: CodexTranscript) -> Seen:
    """Read whole transcripts after each other, each from its beginning."""
    parts = [read_lines(transcript.lines()) for transcript in transcripts]
    events: dict[tuple[str, str], EvidenceEvent] = {}
    for event in (event for part in parts for event in part.events):
        events.setdefault((type(event.payload).__name__, event.event_id), event)
    return Seen(tuple(reading for part in parts for reading in part.readings), tuple(events.values()))


def shows(*memory_ids: str) -> Shown:
    """Return that these were shown."""
    return Shown(ShownState.IDS, memory_ids=memory_ids)


def unknown(reason: UnknownReason) -> Shown:
    """Return that it is not known what was shown."""
    return Shown(ShownState.UNKNOWN, reason=reason)


@pytest.fixture
def rollout() -> CodexTranscript:
    """A session whose first turn has begun."""
    transcript = CodexTranscript()
    transcript.head()
    transcript.begin_turn("When do we deploy?")
    return transcript


# --- direct calls ------------------------------------------------------------------------------------------------


def test_a_direct_call_is_reported_once_with_what_the_model_saw(rollout: CodexTranscript) -> None:
    """Call, event and output are one call; ids stand in JSON inside a JSON string."""
    call_id = rollout.direct_recall(ONE, TWO)
    seen = read(rollout)
    assert seen.recalls == {call_id: shows(ONE, TWO)}
    assert seen.unrecognised == []
    payloads = [event.payload for reading in seen.readings for event in reading.events]
    assert [type(payload) for payload in payloads] == [TextSpoken, RecallCalled, ToolAnswered]


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("recall", "mcp__memory"),
        ("recall", "mcp__memory__"),
        ("recall", "memory"),
        ("mcp__memory__recall", ""),
        ("memory__recall", ""),
        ("recall", "mcp__zero_memory"),
        ("memory_recall", "mcp__zero_memory"),
    ],
)
def test_a_recall_is_known_by_its_last_segment(rollout: CodexTranscript, name: str, namespace: str) -> None:
    """Versions put namespace and name together in different ways."""
    call_id = rollout.call(name, namespace=namespace)
    rollout.output(call_id, f"Wall time: 1 seconds\nOutput:\n{json.dumps({'id': ONE})}")
    assert read(rollout).recalls == {call_id: shows(ONE)}


@pytest.mark.parametrize("with_both_events", [False, True])
def test_events_of_a_direct_call_add_nothing(rollout: CodexTranscript, with_both_events: bool) -> None:
    """The event has three memories, but the model's text was cut behind the first; 0.146 wrote both events."""
    call_id = rollout.call("recall")
    rollout.mcp_end(call_id, {"Ok": codex_result(ONE, TWO, THREE)})
    if with_both_events:
        rollout.mcp_item(call_id, codex_result(ONE, TWO, THREE))
    rollout.output(call_id, f"Wall time: 1 seconds\nOutput:\n[{ONE}] and …20 tokens truncated… more")
    seen = read(rollout)
    assert seen.recalls == {call_id: shows(ONE)}


def test_parallel_direct_calls_keep_apart(rollout: CodexTranscript) -> None:
    """Calls come first, then event and output of each."""
    calls = [rollout.call("recall"), rollout.call("recall"), rollout.call("build_context")]
    for call_id, ids in zip(reversed(calls), [(ONE,), (TWO, THREE), ()], strict=True):
        rollout.mcp_item(call_id, codex_result(*ids))
        rollout.output(call_id, [codex_text("Wall time: 1 s\nOutput:"), codex_text(" ".join(ids))])
    assert read(rollout).recalls == {calls[2]: shows(ONE), calls[1]: shows(TWO, THREE), calls[0]: NOTHING}


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("Wall time: 0.1 seconds\nOutput:\n{}", NOTHING),
        ([], NOTHING),
        ([{"type": "input_image", "image_url": "data:"}], NOTHING),
        ({"content": f"{ONE}", "success": True}, shows(ONE)),
        ({"content": f"{ONE}", "success": False}, unknown(UnknownReason.ERRORED)),
        (None, unknown(UnknownReason.UNREADABLE)),
        (7, unknown(UnknownReason.UNREADABLE)),
        ("aborted by user after 2.5s", unknown(UnknownReason.REFUSED)),
        ("user rejected MCP tool call", unknown(UnknownReason.REFUSED)),
        ("MCP tool call requires approval, but approval policy is never", unknown(UnknownReason.REFUSED)),
        ("Tool call blocked by PreToolUse hook: no. Tool: mcp__memory__recall", unknown(UnknownReason.REFUSED)),
        (f"tool call error: tool call failed for `memory/recall`: {ONE}", unknown(UnknownReason.ERRORED)),
        (f"Wall time: 1 s\nOutput:\nError executing tool recall: {ONE}", unknown(UnknownReason.ERRORED)),
        ("# deploys\n…108033 chars truncated… only", unknown(UnknownReason.TRUNCATED)),
        ("Warning: truncated output (original token count: 9)\n\n# deploys", unknown(UnknownReason.TRUNCATED)),
        (f"# deploys [{ONE}]\n…108033 chars truncated… only", shows(ONE)),
        (f"[{ONE}] says: the notice is 'user rejected MCP tool call'", shows(ONE)),
    ],
)
def test_outputs_of_all_forms(rollout: CodexTranscript, output: object, shown: Shown) -> None:
    """Not knowing is never passed off as nothing, and a quoted notice is no notice."""
    call_id = rollout.call("recall")
    rollout.output(call_id, output)
    assert read(rollout).recalls == {call_id: shown}


@pytest.mark.parametrize(
    ("result", "fields", "reason"),
    [
        (codex_result(is_error=True), {}, UnknownReason.ERRORED),
        (None, {"error": {"message": "transport closed"}}, UnknownReason.ERRORED),
        (None, {"error": {"message": "user rejected MCP tool call"}}, UnknownReason.REFUSED),
    ],
)
def test_the_event_tells_why_a_direct_call_failed(
    rollout: CodexTranscript, result: Json | None, fields: dict[str, Json], reason: UnknownReason
) -> None:
    """The output alone looks like any text, and may quote an id."""
    call_id = rollout.call("recall")
    rollout.mcp_item(call_id, result, tool="recall", **fields)
    rollout.output(call_id, f"Wall time: 1 s\nOutput:\nno luck with {ONE}")
    assert read(rollout).recalls == {call_id: unknown(reason)}


def test_call_without_result_and_result_without_call(rollout: CodexTranscript) -> None:
    """Interrupted, or the file was cut: half is reported, the ledger waits for the other."""
    call_id = rollout.call("recall")
    rollout.output("call_of_which_the_beginning_is_gone", f"{ONE}")
    seen = read(rollout)
    assert seen.recalls == {call_id: None}
    assert seen.answers == {"call_of_which_the_beginning_is_gone": shows(ONE)}


def test_a_name_that_was_cut_is_known_by_the_event(rollout: CodexTranscript) -> None:
    """Names over 64 bytes end in a hash; the event has the whole one. Without it, nobody can know."""
    hashed = f"mcp__{'a_very_long_server_name_' * 2}rec_0123456789ab"
    known, lost = rollout.call(hashed, namespace=""), rollout.call(hashed, namespace="")
    rollout.mcp_end(known, {"Ok": codex_result(ONE)})
    rollout.output(known, f"{ONE}")
    rollout.output(lost, f"{TWO}")
    seen = read(rollout)
    assert seen.recalls == {known: shows(ONE)}
    assert seen.tools == [hashed]
    assert seen.unrecognised == ["cut_tool_name"]


def test_other_tools_are_told_with_input_and_output(rollout: CodexTranscript) -> None:
    """A judge reads what the agent did next."""
    shell = rollout.call("shell", namespace="", arguments={"command": ["make", "test"]})
    rollout.output(shell, "Exit code: 0\nOutput:\n3 passed")
    rollout.item({"type": "local_shell_call", "call_id": "call_local_shell_1", "action": {"command": ["ls"]}})
    rollout.item({"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_patch_0001", "input": "*** x"})
    rollout.item({"type": "custom_tool_call_output", "call_id": "call_patch_0001", "output": "Done"})
    seen = read(rollout)
    assert seen.tools == ["shell", "local_shell", "apply_patch"]
    assert seen.outputs == {shell: "Exit code: 0\nOutput:\n3 passed", "call_patch_0001": "Done"}


def test_remember_is_reported_in_every_mode(rollout: CodexTranscript) -> None:
    """The ledger joins it by the id that it answered."""
    direct = rollout.call("remember")
    rollout.mcp_item(direct, codex_result(ONE), tool="remember")
    rollout.output(direct, f'Wall time: 1 s\nOutput:\n{{"id":"{ONE}"}}')
    script = rollout.script("await tools.mcp__memory__remember({})")
    nested = rollout.mcp_item("", codex_result(TWO), tool="remember")
    rollout.script_output(script)
    seen = read(rollout)
    calls = [event.payload.call_id for event in seen.events if isinstance(event.payload, RememberCalled)]
    assert calls == [direct, nested]
    assert [seen.answers[call].memory_ids for call in calls] == [(ONE,), (TWO,)]


# --- scripts -----------------------------------------------------------------------------------------------------


def test_a_script_shows_what_it_prints(rollout: CodexTranscript) -> None:
    """Three came back, the model was given two of them, in its own order."""
    call_id = rollout.scripted_recall(ONE, TWO, THREE, printed=f"{THREE}, {ONE}")
    rollout.end_turn()
    assert read(rollout).recalls == {call_id: shows(THREE, ONE)}


def test_a_script_without_output_leaves_it_unknown(rollout: CodexTranscript) -> None:
    """What was returned is not what was shown."""
    script = rollout.script()
    call_id = rollout.mcp_item("", codex_result(ONE, TWO))
    rollout.end_turn()
    rollout.begin_turn("Go on")
    rollout.scripted_recall(ONE)
    seen = read(rollout)
    assert seen.recalls[call_id] is None
    assert script not in seen.answers


def test_a_script_that_prints_nothing_shows_nothing(rollout: CodexTranscript) -> None:
    """Known once the turn has ended: until then another script may print what this one kept."""
    call_id = rollout.scripted_recall(ONE, printed="done")
    assert read(rollout).recalls == {call_id: None}
    rollout.end_turn()
    assert read(rollout).recalls == {call_id: NOTHING}


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("- Deploys go out on Tuesday at 10:00 UTC.", unknown(UnknownReason.UNREADABLE)),
        ('["Deploys go out on Tuesday at"]', unknown(UnknownReason.UNREADABLE)),
        (f"{TWO}: Deploys go out on Tuesday at 10:00 UTC.", shows(TWO)),
        ("It says when deploys go out.", NOTHING),
    ],
)
def test_a_script_that_prints_the_words_without_the_ids(rollout: CodexTranscript, printed: str, shown: Shown) -> None:
    """The model was shown something, and nobody can say which: that is not nothing."""
    texts = ["Deploys go out on Tuesday at 10:00 UTC.", "Deploys go out on Tuesday at noon."]
    found = [{"id": one, "text": text} for one, text in zip((ONE, TWO), texts, strict=True)]
    script = rollout.script()
    call_id = rollout.mcp_item("", {"content": [], "structuredContent": {"result": found}})
    rollout.script_output(script, printed)
    rollout.end_turn()
    assert read(rollout).recalls == {call_id: shown}


def test_what_a_later_script_of_the_turn_prints_counts(rollout: CodexTranscript) -> None:
    """Scripts can store a value, and another one prints it."""
    call_id = rollout.scripted_recall(ONE, TWO, printed="stored")
    later = rollout.script('text(load("r"))')
    rollout.script_output(later, f"{TWO}")
    rollout.end_turn()
    (event,) = [e for e in read(rollout).events if isinstance(e.payload, ToolAnswered) and e.payload.call_id == call_id]
    assert isinstance(event.payload, ToolAnswered)
    assert event.payload.shown == shows(TWO)
    assert event.at == datetime.fromisoformat(str(rollout.records[-2]["timestamp"]))


def test_what_a_later_script_recalled_itself_was_not_kept_for_it(rollout: CodexTranscript) -> None:
    """The first script printed nothing, the second recalls the same and prints it."""
    silent = rollout.scripted_recall(ONE, TWO, printed="")
    spoken = rollout.scripted_recall(ONE, TWO)
    rollout.end_turn()
    assert read(rollout).recalls == {silent: NOTHING, spoken: shows(ONE, TWO)}


def test_a_script_that_printed_nothing_at_all_has_a_text_for_an_output(rollout: CodexTranscript) -> None:
    """Its output is a list of items only if there are any."""
    script = rollout.script()
    call_id = rollout.mcp_item("", codex_result(ONE))
    output = "Script completed\nWall time 0.0 seconds\nOutput:\n"
    rollout.item({"type": "custom_tool_call_output", "call_id": script, "output": output})
    rollout.end_turn()
    assert read(rollout).recalls == {call_id: NOTHING}


def test_a_script_that_goes_on_is_waited_for(rollout: CodexTranscript) -> None:
    """Its first output has no ids; the one of `wait` prints them, perhaps only in the next turn."""
    script = rollout.script()
    rollout.script_output(script, head="Script running with cell ID 7")
    call_id = rollout.mcp_item("", codex_result(ONE, TWO))
    rollout.end_turn()
    rollout.begin_turn("And?")
    wait = rollout.call("wait", namespace="", arguments={"cell_id": "7"})
    rollout.output(wait, [codex_text("Script completed\nWall time 9 seconds\nOutput:\n"), codex_text(f"{TWO}")])
    seen = read(rollout)
    assert seen.recalls == {call_id: shows(TWO)}
    assert seen.outputs[wait] == ""


def test_a_script_that_yields_after_its_call_is_waited_for(rollout: CodexTranscript) -> None:
    """The recall came before the script was put into the background."""
    script = rollout.script()
    call_id = rollout.mcp_item("", codex_result(ONE, TWO))
    rollout.script_output(script, f"{ONE}", head="Script running with cell ID 7")
    wait = rollout.call("wait", namespace="functions", arguments={"cell_id": "7"})
    rollout.output(wait, [codex_text("Script running with cell ID 7\nOutput:\n")])
    wait = rollout.call("wait", namespace="functions", arguments={"cell_id": "7"})
    rollout.output(wait, [codex_text("Script completed\nOutput:\n"), codex_text(f"{TWO}")])
    assert read(rollout).recalls == {call_id: shows(ONE, TWO)}


def test_what_a_script_notifies_counts_and_its_end_is_not_lost(rollout: CodexTranscript) -> None:
    """`notify` injects an output of its own for the same call."""
    script = rollout.script()
    call_id = rollout.mcp_item("", codex_result(ONE, TWO))
    rollout.item({"type": "custom_tool_call_output", "call_id": script, "output": f"found {ONE}"})
    rollout.script_output(script, f"and {TWO}")
    assert read(rollout).recalls == {call_id: shows(ONE, TWO)}


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("# deploys …28057 tokens truncated… end", unknown(UnknownReason.TRUNCATED)),
        (f"# deploys {ONE} …28057 tokens truncated… end", shows(ONE)),
        (f"# deploys {ONE} …28057 tokens truncated… {TWO}", shows(ONE, TWO)),
    ],
)
def test_a_script_whose_output_was_cut(rollout: CodexTranscript, printed: str, shown: Shown) -> None:
    """What is left counts; where nothing is left it is not known."""
    call_id = rollout.scripted_recall(ONE, TWO, printed=printed)
    rollout.end_turn()
    assert read(rollout).recalls == {call_id: shown}


def test_parallel_calls_of_one_script(rollout: CodexTranscript) -> None:
    """Each shows what it returned; a memory that two of them returned was shown by both."""
    script = rollout.script("await Promise.all([])")
    results = [codex_result(ONE, TWO), codex_result(ONE), codex_result()]
    calls = [rollout.mcp_item("", result) for result in results]
    rollout.script_output(script, *map(json.dumps, results))
    assert read(rollout).recalls == dict(zip(calls, [shows(ONE, TWO), shows(ONE), NOTHING], strict=True))


def test_failures_inside_a_script(rollout: CodexTranscript) -> None:
    """Known at once, whatever the script prints about them."""
    script = rollout.script()
    failed = rollout.mcp_item("", codex_result(ONE, is_error=True))
    refused = rollout.mcp_item("", None, error={"message": "user cancelled MCP tool call"})
    rollout.script_output(script, f"sorry, {ONE}")
    assert read(rollout).recalls == {
        failed: unknown(UnknownReason.ERRORED),
        refused: unknown(UnknownReason.REFUSED),
    }


def test_a_script_that_is_aborted(rollout: CodexTranscript) -> None:
    """The recall came back, but nothing of it reached the model."""
    script = rollout.script()
    call_id = rollout.mcp_item("", codex_result(ONE))
    rollout.item({"type": "custom_tool_call_output", "call_id": script, "output": "aborted by user after 3.1s"})
    assert read(rollout).recalls == {call_id: unknown(UnknownReason.REFUSED)}


def test_what_a_script_quotes_of_a_recall_is_no_output_of_a_tool(rollout: CodexTranscript) -> None:
    """The memories' own words after a recall must not look like the agent's use of them; other output stays."""
    first = rollout.script("text(await tools.shell('make test'))")
    rollout.script_output(first, "3 passed")
    rollout.scripted_recall(ONE)
    second = rollout.script("text(await tools.shell('make test'))")
    rollout.script_output(second, "4 passed")
    outputs = read(rollout).outputs
    assert "3 passed" in outputs[first]
    assert "4 passed" in outputs[second]
    assert not any(ONE in text or "Note" in text for text in outputs.values())


def test_both_events_of_a_nested_call_are_one(rollout: CodexTranscript) -> None:
    """0.146 to 0.149 wrote the old and the new one."""
    script = rollout.script()
    rollout.mcp_end("exec-6150ea86-0001", {"Ok": codex_result(ONE)})
    rollout.mcp_item("exec-6150ea86-0001", codex_result(ONE))
    rollout.script_output(script, f"{ONE}")
    seen = read(rollout)
    assert seen.recalls == {"exec-6150ea86-0001": shows(ONE)}
    assert sum(isinstance(e.payload, RecallCalled) for reading in seen.readings for e in reading.events) == 1


# --- events alone ------------------------------------------------------------------------------------------------


def test_an_event_alone_is_a_call(rollout: CodexTranscript) -> None:
    """Some versions kept no call and no output; then what came back is what was shown."""
    rollout.mcp_end("call_alone_00001", {"Ok": codex_result(ONE, TWO)})
    rollout.mcp_end("call_alone_00002", {"Err": f"tool call failed, near {ONE}"})
    assert read(rollout).recalls == {
        "call_alone_00001": shows(ONE, TWO),
        "call_alone_00002": unknown(UnknownReason.ERRORED),
    }


# --- whose it is -------------------------------------------------------------------------------------------------


def test_session_project_and_version_come_from_the_head_and_the_folder_from_each_turn(rollout: CodexTranscript) -> None:
    """Lines name none of it."""
    rollout.message("assistant", "Tuesday.")
    rollout.cwd = "/home/dev/harbour"
    rollout.begin_turn("And there?")
    threads = [event.thread for event in read(rollout).events]
    assert {(one.session, one.agent_id, one.client_version) for one in threads} == {(rollout.thread, "", "0.171.0")}
    assert [one.project for one in threads] == ["shop", "shop", "harbour"]


def test_the_first_head_is_the_files_own(rollout: CodexTranscript) -> None:
    """The desktop client writes it again and again; a fork puts its parent's behind its own."""
    for _ in range(29):
        rollout.head()
    rollout.head(id=OTHER_THREAD, session_id=OTHER_THREAD, cwd="/elsewhere", cli_version="0.1")
    rollout.direct_recall(ONE)
    thread = read(rollout).events[-1].thread
    assert (thread.session, thread.project, thread.client_version) == (rollout.thread, "shop", "0.171.0")


def test_a_file_without_its_head_goes_by_its_name(rollout: CodexTranscript) -> None:
    """Its beginning was cut off."""
    del rollout.records[0]
    assert {event.thread.session for event in read(rollout).events} == {"from-the-name"}


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": "root", "parent_thread_id": "root", "thread_source": "subagent"},
        {"session_id": "root", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "between"}}}},
        {"session_id": None, "source": {"subagent": {"thread_spawn": {"parent_thread_id": "root", "depth": 1}}}},
    ],
)
def test_a_sub_agent_belongs_to_the_session_of_its_root(fields: Json) -> None:
    """It has a rollout of its own; earlier versions name only its parent."""
    rollout = CodexTranscript(thread="scout")
    rollout.head(**fields)
    rollout.scripted_recall(ONE)
    assert {(event.thread.session, event.thread.agent_id) for event in read(rollout).events} == {("root", "scout")}


def test_a_review_without_a_parent_is_an_agent_of_its_own_session() -> None:
    """`source` may name just the kind of sub-agent."""
    rollout = CodexTranscript(thread="review-thread")
    rollout.head(source={"subagent": "review"})
    rollout.message("assistant", "Fine.")
    (event,) = read(rollout).events
    assert (event.thread.session, event.thread.agent_id) == ("review-thread", "review-thread")


# --- copies ------------------------------------------------------------------------------------------------------


def test_a_legacy_fork_adds_only_what_is_new(rollout: CodexTranscript) -> None:
    """All records are copied with new times; calls and words count once, of forks of forks too."""
    rollout.direct_recall(ONE, TWO)
    rollout.scripted_recall(THREE)
    rollout.message("assistant", "Tuesday.")
    whole = read(rollout)
    fork = rollout.legacy_fork(OTHER_THREAD)
    assert read(rollout, fork).events == whole.events
    grandchild = fork.legacy_fork("01a22da9-0000-7000-8000-000000000003")
    grandchild.begin_turn("Something new")
    grandchild.message("assistant", "Tuesday.")
    added = read(rollout, fork, grandchild).events[len(whole.events) :]
    assert [event.payload.text for event in added if isinstance(event.payload, TextSpoken)] == [
        "Something new",
        "Tuesday.",
    ]
    assert {event.thread.session for event in added} == {grandchild.thread}


def test_a_paginated_fork_has_only_its_own(rollout: CodexTranscript) -> None:
    """Nothing is copied; ordinals go on from the parent's."""
    rollout.direct_recall(ONE)
    fork = CodexTranscript(thread=OTHER_THREAD, seed="fork")
    fork.head(forked_from_id=rollout.thread, history_base={"thread_id": rollout.thread, "end_ordinal_exclusive": 7})
    fork.begin_turn("When do we deploy?")
    call_id = fork.scripted_recall(TWO)
    events = read(rollout, fork).events
    assert len(events) == len(read(rollout).events) + len(read(fork).events)
    assert read(fork).recalls == {call_id: shows(TWO)}


def test_a_migrated_file_says_the_same(rollout: CodexTranscript) -> None:
    """The client rewrites old files: other times, ordinals and ids of messages, events of another kind."""
    call_id = rollout.call("recall")
    rollout.mcp_end(call_id, {"Ok": codex_result(ONE)})
    rollout.output(call_id, f"{ONE}")
    rollout.event("agent_message", message="Tuesday.")
    rollout.message("assistant", "Tuesday.")
    migrated = CodexTranscript(turn=rollout.turn, begin=datetime(2027, 1, 1, tzinfo=UTC))
    for record in rollout.records:
        payload = dict(record["payload"])  # type: ignore[call-overload] # payloads are objects
        if payload.get("type") == "mcp_tool_call_end":
            migrated.mcp_item(call_id, codex_result(ONE))
        elif payload.get("type") != "agent_message":
            migrated.add(str(record["type"]), {**payload, "id": payload.get("id", "msg_new")})
    assert read(rollout, migrated).events == read(rollout).events


def test_compaction_and_rollback_add_nothing(rollout: CodexTranscript) -> None:
    """The replaced history repeats recalls and words; what was rolled back was shown all the same."""
    call_id = rollout.direct_recall(ONE)
    history = [record["payload"] for record in rollout.records if record["type"] == "response_item"]
    before = read(rollout)
    rollout.message("assistant", f"A summary with {TWO}", metadata={"compaction_output": True})
    rollout.add("compacted", {"message": f"{TWO}", "replacement_history": history})
    rollout.event("item_completed", turn_id=rollout.turn, item={"type": "ContextCompaction", "id": "c"})
    rollout.event("context_compacted")
    rollout.event("thread_rolled_back", num_turns=1)
    seen = read(rollout)
    assert seen.events == before.events
    assert seen.recalls == {call_id: shows(ONE)}
    assert seen.unrecognised == []


def test_calls_that_are_counted_anew_in_each_session_keep_apart() -> None:
    """Some models name them `functions.recall:0`; a fork's copy of one is still a copy."""
    first, second = CodexTranscript(), CodexTranscript(thread=OTHER_THREAD, seed="second")
    for rollout, memory_id in ((first, ONE), (second, TWO)):
        rollout.head()
        rollout.begin_turn("When?")
        rollout.output(rollout.call("recall", call_id="functions.recall:0"), memory_id)
    fork = first.legacy_fork("01a22da9-0000-7000-8000-000000000003")
    assert list(read(first, second, fork).recalls.values()) == [shows(ONE), shows(TWO)]


# --- what is none ------------------------------------------------------------------------------------------------


def test_foreign_text_is_no_call(rollout: CodexTranscript) -> None:
    """Transcripts, tool lists and instructions quote our tools and ids."""
    quoted = json.dumps({"type": "function_call", "name": "mcp__memory__recall", "output": ONE})
    shell = rollout.call("shell", namespace="", arguments={"command": ["cat", "rollout.jsonl"]})
    rollout.output(shell, quoted)
    rollout.item({"type": "tool_search_call", "call_id": "call_search_0001", "arguments": {"query": "recall"}})
    rollout.item({"type": "tool_search_output", "call_id": "call_search_0001", "tools": [{"name": "recall"}]})
    rollout.item({"type": "additional_tools", "role": "developer", "tools": [{"name": "recall"}]})
    rollout.item({"type": "agent_message", "author": "scout", "content": [codex_text(f"Tuesday ({ONE})")]})
    rollout.item({"type": "reasoning", "summary": [{"type": "summary_text", "text": ONE}]})
    rollout.message("developer", f"hook context {ONE}")
    rollout.message("user", f"# AGENTS.md instructions for /home\n{ONE}")
    rollout.message("user", f"<environment_context>{ONE}</environment_context>")
    rollout.message("user", f"<subagent_notification>\n{ONE}\n</subagent_notification>")
    rollout.event("user_message", message="When do we deploy?")
    rollout.event("agent_message", message="Tuesday.")
    rollout.event("item_completed", item={"type": "AgentMessage", "content": [{"type": "Text", "text": "Tuesday."}]})
    rollout.add("world_state", {"state": quoted})
    seen = read(rollout)
    assert seen.recalls == {}
    assert seen.tools == ["shell"]
    assert seen.texts == [(SliceKind.USER_TEXT, "When do we deploy?")]
    assert seen.unrecognised == []


def test_what_the_client_added_to_a_users_message_is_left_out(rollout: CodexTranscript) -> None:
    """Newer versions say of each part whose it is."""
    kinds = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text", "hooks.context"]}}
    parts = [codex_text("Mine."), codex_text("Not mine.")]
    rollout.add("response_item", {"type": "message", "role": "user", "content": parts, **kinds})
    assert read(rollout).texts[-1] == (SliceKind.USER_TEXT, "Mine.")


def test_the_same_words_of_two_turns_or_speakers_are_told_twice(rollout: CodexTranscript) -> None:
    """Repeating is not copying."""
    rollout.message("assistant", "Done.")
    rollout.begin_turn("Done.")
    rollout.message("assistant", "Done.")
    assert [text for _, text in read(rollout).texts] == ["When do we deploy?", "Done.", "Done.", "Done."]


def test_unknown_kinds_are_named(rollout: CodexTranscript) -> None:
    """A change of the format shows within one file, not as zero."""
    rollout.add("new_record", {})
    rollout.item({"type": "new_item"})
    rollout.event("new_event")
    rollout.event("item_completed", item={"type": "NewItem"})
    rollout.item({"type": "function_call", "name": "recall"})
    rollout.records.append({"payload": {}})
    assert read(rollout).unrecognised == [
        *("new_record", "item:new_item", "event:new_event", "item:NewItem", "item:function_call", "untyped")
    ]


# --- time --------------------------------------------------------------------------------------------------------


def test_times_may_run_backwards_or_be_missing(rollout: CodexTranscript) -> None:
    """The order of the file counts; a line without a time is of 1970, at every reading."""
    call_id = rollout.call("recall")
    rollout.output(call_id, f"{ONE}")
    rollout.records[-1]["timestamp"] = "2020-01-01T00:00:00Z"
    del rollout.records[-2]["timestamp"]
    seen = read(rollout)
    assert seen.recalls == {call_id: shows(ONE)}
    assert [event.at.year for event in seen.events[-2:]] == [1970, 2020]


def test_a_nested_call_began_before_its_event(rollout: CodexTranscript) -> None:
    """The event is written at the end of the call; a `remember` is found by the time between."""
    rollout.script()
    rollout.mcp_item("", codex_result(ONE), tool="remember", duration={"secs": 9, "nanos": 0})
    called, answered = read(rollout).events[-2:]
    assert (answered.at - called.at).total_seconds() == 9


@pytest.mark.parametrize("duration", [None, 3, {"secs": "x"}, {"secs": 10**300, "nanos": -1}, {"secs": True}])
def test_odd_durations_do_no_harm(rollout: CodexTranscript, duration: object) -> None:
    """Numbers of others may be anything."""
    call_id = rollout.mcp_item("exec-0000000000001", codex_result(), duration=duration)
    assert read(rollout).recalls == {call_id: NOTHING}


# --- the state ---------------------------------------------------------------------------------------------------


def test_the_state_stays_small(rollout: CodexTranscript) -> None:
    """Whoever leaves thousands of calls open, with thousands of memories, loses the oldest; the newest still count."""
    many = [sample_memory_id(number) for number in range(1_000)]
    for number in range(300):
        rollout.call("recall", call_id=f"call_{'x' * 180}_{number}")
    script = rollout.script()
    for begin in range(0, 1_000, 20):
        rollout.mcp_item("", codex_result(*many[begin : begin + 20]))
    last = rollout.mcp_item("", codex_result(*many))
    rollout.cwd = "/" + "x" * 5_000
    rollout.begin_turn("Go on")
    rollout.mcp_item("", codex_result(ONE))
    rollout.script_output(script, " ".join(many))
    rollout.end_turn()
    assert last in read(rollout).recalls


@pytest.mark.parametrize("state", ["x", "[]", "{}", '{"head": [1]}', '{"nested": 3, "head": []}', '{"direct": []}'])
def test_a_state_that_cannot_be_read_is_the_beginning(rollout: CodexTranscript, state: str) -> None:
    """It comes from our own store, yet perhaps from another version."""
    line = rollout.lines()[-1]
    expected = PLUGIN.read_line(line, CONTEXT, "", str)
    assert PLUGIN.read_line(line, CONTEXT, state, str) == expected


def test_ids_outside_of_our_shape_are_no_state(rollout: CodexTranscript) -> None:
    """No words of the conversation are carried, only ids."""
    rollout.script("text('a secret word')")
    rollout.mcp_item("", {"content": [{"type": "text", "text": f"a secret word {ONE}"}]})
    rollout.message("assistant", "a secret word")
    assert all("secret" not in reading.state for reading in read(rollout).readings)


# --- where -------------------------------------------------------------------------------------------------------


def test_transcripts_lie_in_the_folders_of_open_and_archived_sessions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of CODEX_HOME, else of the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert transcript_roots({}) == [tmp_path / ".codex" / "sessions", tmp_path / ".codex" / "archived_sessions"]
    assert transcript_roots({"CODEX_HOME": "/x"}) == [Path("/x/sessions"), Path("/x/archived_sessions")]
    assert transcript_roots({"CODEX_HOME": "x"}) == []
    assert transcript_roots({"CODEX_HOME": "~/c"})[0] == tmp_path / "c" / "sessions"


@pytest.mark.parametrize(
    ("path", "session"),
    [
        (
            "2026/11/30/rollout-2026-11-30T18-11-56-01a22da8-08e8-7561-841b-72e2a1f353aa.jsonl",
            "01a22da8-08e8-7561-841b",
        ),
        ("rollout-2026-11-30T18-11-56-01a22da8-08e8-7561-841b-72e2a1f353aa.jsonl", "01a22da8-08e8-7561-841b"),
        ("rollout-2026-11-30T18-11-56-01a22da8-08e8-7561-841b-72e2a1f353aa.jsonl.zst", "01a22da8-08e8-7561-841b"),
        ("rollout-odd.jsonl", "rollout-odd"),
        ("2026/11/rollout-2026-11-30T18-11-56-01a22da8-08e8-7561-841b-72e2a1f353aa.jsonl", None),
        ("2026/11/30/history.jsonl", None),
        ("2026/11/30/rollout-compress-1.tmp", None),
        ("2026/11/30/rollout-2025-05-07-5973b6c0.json", None),
        ("a/b/c/rollout-x.jsonl", None),
    ],
)
def test_a_transcript_is_known_by_its_path(path: str, session: str | None) -> None:
    """Nothing else in these folders is read."""
    context = transcript_at(path.split("/"))
    assert (context is None) == (session is None)
    assert context is None or context.session.startswith(str(session))


def test_only_days_are_looked_into() -> None:
    """Folders of years, months and days, and no deeper."""
    assert may_hold_transcripts(["2026", "11", "30"])
    assert not may_hold_transcripts(["2026", "11", "30", "1"])
    assert not may_hold_transcripts(["backup"])


# --- hostile lines -----------------------------------------------------------------------------------------------


def _all_shapes() -> CodexTranscript:
    rollout = CodexTranscript()
    rollout.head()
    for turn in range(3):
        rollout.begin_turn(f"Frage {turn}: wann, 何時, 😀?")
        rollout.direct_recall(ONE, TWO)
        rollout.scripted_recall(THREE, ONE, printed=f"{ONE}")
        rollout.mcp_end(f"call_alone_{turn:06}", {"Ok": codex_result(TWO)})
        rollout.message("assistant", "Antwort — 火曜日 🚀")
        rollout.end_turn()
    return rollout


def _mutated(line: bytes, others: Sequence[bytes], choose: random.Random) -> bytes:
    data = bytearray(line)
    for _ in range(choose.randint(1, 5)):
        place, length = choose.randrange(len(data) + 1), choose.randint(1, 30)
        match choose.randrange(5):
            case 0:
                del data[place : place + length]
            case 1:
                data[place:place] = choose.randbytes(length)
            case 2:
                data[place : place + length] = choose.choice([b"null", b"[]", b"{}", b"1e999", b'"', b"\xff", b"\0"])
            case 3:
                data[place:place] = data[place : place + length]
            case _:
                other = choose.choice(others)
                begin = choose.randrange(len(other))
                data[place : place + length] = other[begin : begin + length]
    return bytes(data).replace(b"\n", b" ")


# --- citations and the end ---------------------------------------------------------------------------------------


def block(*lines: str) -> str:
    """A citation block as Codex asks its models for it."""
    entries = "\n".join(lines)
    return (
        f"<oai-mem-citation>\n<citation_entries>\n{entries}\n</citation_entries>\n"
        "<rollout_ids>\n019c6e27-e55b-73d1-87d8-4e01f1f75043\n</rollout_ids>\n</oai-mem-citation>"
    )


def cited(seen: Seen) -> list[str]:
    return [event.payload.memory_id for event in seen.events if isinstance(event.payload, MemoryCited)]


def test_ids_in_a_citation_block_are_cited_and_the_words_come_without_it(rollout: CodexTranscript) -> None:
    """In a line's place or its note, each once a turn; Codex's own files name nothing of ours."""
    lines = (f"{ONE}:1-1|note=[day of deploys]", f"MEMORY.md:3-9|note=[as {TWO} says, and {ONE}]")
    rollout.message("assistant", f"On Tuesday.\n\n{block(*lines)}")
    seen = read(rollout)
    assert cited(seen) == [ONE, TWO]
    assert seen.texts[-1] == (SliceKind.AGENT_TEXT, "On Tuesday.")
    assert seen.unrecognised == []


@pytest.mark.parametrize("kind", ["item_completed", "agent_message"])
@pytest.mark.parametrize("name", ["memory_citation", "memoryCitation"])
def test_event_about_an_answer_says_the_same_once(rollout: CodexTranscript, kind: str, name: str) -> None:
    """Before or behind the words, under either spelling; without the words, it is enough."""
    entry: Json = {"path": f"notes/{ONE}.md", "line_start": 1, "line_end": 2, "note": f"and {TWO}"}
    citation: Json = {name: {"entries": [entry], "rollout_ids": [THREE]}}
    fields = {"item": {"type": "AgentMessage", **citation}} if kind == "item_completed" else citation
    rollout.event(kind, **fields)
    assert cited(read(rollout)) == [ONE, TWO]
    rollout.message("assistant", f"So be it. {block(f'{TWO}:1-1|note=[x]', f'{ONE}:1-1|note=[x]')}")
    rollout.event(kind, **fields)
    assert cited(read(rollout)) == [ONE, TWO]
    rollout.begin_turn("Again?")
    rollout.event(kind, **fields)
    assert cited(read(rollout)) == [ONE, TWO, ONE, TWO]


@pytest.mark.parametrize(
    ("said", "expected", "left"),
    [
        (f"I used {ONE}.", [], f"I used {ONE}."),
        (f"a<oai-mem-citation>{ONE}", [ONE], "a"),
        (f"a{block(ONE)} b{block(TWO)} c", [ONE, TWO], "a b c"),
        (f"a</oai-mem-citation>{ONE}", [], f"a</oai-mem-citation>{ONE}"),
        ("a" + block("MEMORY.md:1-2|note=[x]"), [], "a"),
    ],
)
def test_only_what_stands_in_a_block_is_cited(
    rollout: CodexTranscript, said: str, expected: list[str], left: str
) -> None:
    """An id in the words of an answer is for the judge; a block without an end goes to the end."""
    rollout.message("assistant", said)
    seen = read(rollout)
    assert (cited(seen), seen.texts[-1][1]) == (expected, left)


def test_nobody_but_the_agent_cites(rollout: CodexTranscript) -> None:
    """A block that the user pastes, or that a tool returns, is none; and there is an end to how many it names."""
    rollout.message("user", block(ONE))
    rollout.direct_recall(TWO)
    assert cited(read(rollout)) == []
    rollout.message("assistant", block(*(sample_memory_id(number) for number in range(100, 300))))
    assert len(cited(read(rollout))) == 50


def test_program_that_takes_one_prompt_ends_its_session_with_the_turn() -> None:
    """`codex exec` does; in a terminal the turn's end says nothing, nor does a sub-agent's."""

    def ends(**head: object) -> list[SessionEnded]:
        transcript = CodexTranscript()
        transcript.head(**head)
        for _ in range(2):
            transcript.begin_turn("When?")
            transcript.end_turn()
            transcript.end_turn()
        return [event.payload for event in read(transcript).events if isinstance(event.payload, SessionEnded)]

    assert len(ends()) == 2
    assert ends(originator="codex-tui") == []
    assert ends(session_id=OTHER_THREAD) == []


def _check_mutations(count: int, *, seed: int) -> None:
    choose = random.Random(seed)
    lines = _all_shapes().lines()
    mark = CodexTranscript(seed="neighbour")
    mark.head()
    state = ""
    for number in range(count):
        reading = PLUGIN.read_line(_mutated(choose.choice(lines), lines, choose), CONTEXT, state, str)
        state = reading.state
        assert len(state.encode()) <= MAX_READER_STATE_BYTES
        if number % 50 == 0:
            neighbour = CodexTranscript(seed=f"neighbour {number}")
            call_id = neighbour.direct_recall(ONE)
            events: list[EvidenceEvent] = []
            for line in neighbour.lines():
                reading = PLUGIN.read_line(line, CONTEXT, state, str)
                state = reading.state
                events += reading.events
            answers = [
                e.payload.shown for e in events if isinstance(e.payload, ToolAnswered) and e.payload.call_id == call_id
            ]
            assert answers == [shows(ONE)]


def test_mutated_lines_never_fail_and_spare_their_neighbours() -> None:
    """Bytes changed, taken out, doubled, moved or replaced, in 5,000 lines."""
    _check_mutations(5_000, seed=5)


@pytest.mark.slow
def test_very_many_mutated_lines_never_fail() -> None:
    """The same with 100,000."""
    _check_mutations(100_000, seed=6)


def test_nonsense_of_every_type_in_every_place(rollout: CodexTranscript) -> None:
    """Every field of every record is replaced by a value of each other type."""
    odd: list[object] = [None, True, -1, 1.5, "", "x", [], ["x"], {}, {"type": "text"}, [[]], [None]]
    for record in _all_shapes().records[:12]:
        for path in _paths(record):
            for value in odd:
                line = json.dumps(_replaced(record, path, value)).encode()
                for state in ("", read(rollout).readings[-1].state):
                    PLUGIN.read_line(line, CONTEXT, state, str)


def _paths(value: object, before: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in entries for path in ((*before, key), *_paths(one, (*before, key)))]


def _replaced(record: object, path: tuple[object, ...], value: object) -> object:
    copy = json.loads(json.dumps(record))
    inner = copy
    for key, _ in pairwise(path):
        inner = inner[key]
    inner[path[-1]] = value
    return copy
