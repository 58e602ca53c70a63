"""What hooks take from each client's payloads, and what becomes of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from client_plugins.hooks import calls, claude_code, codex, cursor, program
from client_plugins.hooks.door import Address
from client_plugins.hooks.payload import decode_object
from client_plugins.hooks.registration import HOOK_TIMEOUT_S, REGISTRATIONS, hook_command
from client_plugins.hooks.wishes import (
    AgentSaid,
    Briefing,
    FileTouched,
    Hook,
    HookClient,
    OwnToolAnswered,
    ReadTranscript,
    SessionEnded,
    Wish,
)
from client_plugins.kit.recognition import is_remembering_tool, recalling_tool
from sidecar.client.isolation import OWN_PROCESS
from sidecar.server.hook_door import DOOR_NAME
from tests import hook_payloads
from tests.hook_payloads import MAKERS, MEMORY_ID, OTHER_ID, SECRET, SESSION

ROOT: Final = Path(__file__).parents[2]
CLIENTS: Final = {"claude-code": claude_code.HOOKS, "codex": codex.HOOKS, "cursor": cursor.HOOKS}
EVENTS: Final = [
    (name, registration.event) for name, registrations in REGISTRATIONS.items() for registration in registrations
]


def _wishes(client: HookClient, payload: hook_payloads.Payload) -> tuple[Wish, ...]:
    hook = client.read(payload)
    return hook.wishes if hook is not None else ()


# --- all clients ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "event"), EVENTS)
def test_every_registered_event_is_understood(name: str, event: str) -> None:
    """A hook that is run for nothing costs the user time."""
    hook = CLIENTS[name].read(MAKERS[name](event))
    assert hook is not None
    assert hook.session.session == SESSION
    assert hook.wishes


@pytest.mark.parametrize(("name", "event"), EVENTS)
def test_nothing_from_inside_files_is_sent(name: str, event: str) -> None:
    """Of an edit, the path and the action; what was written is nobody's business."""
    hook = CLIENTS[name].read(MAKERS[name](event))
    assert hook is not None
    assert SECRET not in json.dumps(calls.report(hook.session, hook.wishes))


@pytest.mark.parametrize(("name", "event"), EVENTS)
@pytest.mark.parametrize(
    "value",
    [None, 7, True, [], {}, [[]], {"a": {}}, "", "\0", "\ud800", "x" * 10_000],
    ids=lambda value: repr(value)[:9],
)
def test_odd_fields_are_survived(name: str, event: str, value: object) -> None:
    """Clients change; whatever a field holds, a hook finds something to do or nothing, but does not fail."""
    whole = dict(MAKERS[name](event))
    for field in whole:
        hook = CLIENTS[name].read({**whole, field: value})
        if hook is not None:
            json.dumps(calls.report(hook.session, hook.wishes)).encode()


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("other", CLIENTS)
def test_payloads_of_other_clients_are_ignored(name: str, other: str) -> None:
    """Cursor runs the hooks of Claude Code's settings, and Codex those of its plugins (hazard 21)."""
    if name == other:
        return
    hooks = [CLIENTS[name].read(MAKERS[other](registration.event)) for registration in REGISTRATIONS[other]]
    assert not any(hooks)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":1}{"b":2}'])
def test_what_is_no_object_is_an_empty_one(content: bytes) -> None:
    """Garbage on stdin is no reason to fail."""
    assert decode_object(content) == {}


@pytest.mark.parametrize("name", CLIENTS)
def test_the_command_to_register_is_absolute(name: str, tmp_path: Path) -> None:
    """Clients run it from whatever folder, and with whatever PATH."""
    python, *_, program_path, client, home_flag, home = hook_command(name, tmp_path)
    assert Path(python).is_absolute()
    assert Path(program_path).is_file()
    assert (client, home_flag, home) == (name, "--home", str(tmp_path))
    assert HOOK_TIMEOUT_S >= 1


def test_a_hook_needs_nothing_but_the_standard_library() -> None:
    """Without site-packages nothing of others can be imported, and what takes long of our own must not be."""
    code = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "from client_plugins.hooks import calls, claude_code, codex, cursor, program\n"
        "print(*sorted({'asyncio', 'dataclasses', 'inspect', 'subprocess', 'logging'} & set(sys.modules)))"
    )
    outcome = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.stdout.split(), outcome.stderr) == ([], "")


def test_what_is_said_twice_is_the_same() -> None:
    """A hook cannot import what else of ours has these names."""
    assert program.OWN_PROCESS == OWN_PROCESS
    address = Address("unix:/run/x/sock", "t")
    assert address.door_path == Path("/run/x") / DOOR_NAME
    for tool, ours in cursor._OWN_TOOLS.items():
        assert ours == (recalling_tool(tool) or ("remember" if is_remembering_tool(tool) else None))


# --- Claude Code and Codex -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize(
    ("source", "is_briefed"),
    [("startup", True), ("clear", True), ("resume", False), ("compact", False), ("fork", False), ("", False)],
)
def test_only_a_new_session_is_briefed(name: str, source: str, is_briefed: bool) -> None:
    """A resumed, forked or compacted session was told when it began (B43)."""
    wishes = _wishes(CLIENTS[name], MAKERS[name]("SessionStart", source=source))
    assert wishes == ((Briefing("SessionStart"),) if is_briefed else ())


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize("prompt", ["", "  \n", "/compact", " /model opus"])
def test_a_prompt_that_says_nothing_is_left_alone(name: str, prompt: str) -> None:
    """Commands of the client and blanks have no relevant memories."""
    assert not _wishes(CLIENTS[name], MAKERS[name]("UserPromptSubmit", prompt=prompt))


@pytest.mark.parametrize(
    ("tool", "field", "action"),
    [
        ("Write", "file_path", "WRITE"),
        ("Edit", "file_path", "EDIT"),
        ("MultiEdit", "file_path", "MULTIEDIT"),
        ("NotebookEdit", "notebook_path", "EDIT"),
    ],
)
def test_edits_of_claude_code_are_noted(tool: str, field: str, action: str) -> None:
    """Path and action, relative to the folder of the session."""
    payload = hook_payloads.claude_code("PostToolUse", tool_name=tool, tool_input={field: "/home/dev/harbour/a.py"})
    assert _wishes(claude_code.HOOKS, payload) == (FileTouched("/home/dev/harbour/a.py", action, "/home/dev/harbour"),)


def test_other_tools_are_not_noted() -> None:
    """A matcher may be wider than ours."""
    payload = hook_payloads.claude_code("PostToolUse", tool_name="Bash", tool_input={"command": "ls"})
    assert not _wishes(claude_code.HOOKS, payload)


def test_the_files_of_a_patch_are_noted() -> None:
    """Relative paths start from the session's folder; a line of a patched file is no header."""
    assert _wishes(codex.HOOKS, hook_payloads.codex("PostToolUse")) == (
        FileTouched("/home/dev/harbour/src/ports.py", "EDIT", "/home/dev/harbour"),
        FileTouched("/home/dev/harbour/new.py", "WRITE", "/home/dev/harbour"),
        FileTouched("/home/dev/harbour/old.py", "DELETE", "/home/dev/harbour"),
    )


def test_a_patch_of_everything_is_noted_in_part() -> None:
    """What one hook sends has an end."""
    patch = "\n".join(f"*** Add File: f{number}.py" for number in range(1_000))
    assert len(list(codex.patched_files(patch))) == 50


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_sub_agents_transcript_is_read_too(name: str) -> None:
    """Its file is another one than that of the session which the payload also names (B44)."""
    payload = MAKERS[name]("SubagentStop")
    paths = [wish.path for wish in _wishes(CLIENTS[name], payload) if isinstance(wish, ReadTranscript)]
    assert paths == [payload["agent_transcript_path"], payload["transcript_path"]]
    same = {**payload, "agent_transcript_path": payload["transcript_path"]}
    assert len(_wishes(CLIENTS[name], same)) == 1


@pytest.mark.parametrize(
    ("name", "event", "ended"),
    [
        ("claude-code", "SessionEnd", ["claude-code"]),
        ("codex", "SessionEnd", ["codex"]),
        ("cursor", "sessionEnd", ["cursor", "cursor-hooks"]),
        ("claude-code", "Stop", []),
        ("codex", "SubagentStop", []),
        ("cursor", "stop", []),
    ],
)
def test_only_the_end_of_a_session_says_that_it_ended(name: str, event: str, ended: list[str]) -> None:
    """After its transcript was asked for, and under every name that it has evidence under; never without an id."""
    hook = CLIENTS[name].read(MAKERS[name](event))
    assert hook is not None
    told = [call for call in calls.report(hook.session, hook.wishes) if call.method != "RequestReading"]
    assert [call.method for call in told] == ["EndSession"] * len(ended)
    assert [call.request for call in told] == [{"client": client, "session": hook.session.session} for client in ended]
    nameless = CLIENTS[name].read({**MAKERS[name](event), "session_id": "", "conversation_id": ""})
    assert nameless is not None
    assert not any(isinstance(wish, SessionEnded) for wish in nameless.wishes)


# --- Cursor --------------------------------------------------------------------------------------------------------


def _answered(payload: hook_payloads.Payload) -> OwnToolAnswered:
    (wish,) = _wishes(cursor.HOOKS, payload)
    assert isinstance(wish, OwnToolAnswered)
    return wish


def test_cursors_own_tool_tells_what_it_showed() -> None:
    """The exact ids, on a channel of its own."""
    hook = cursor.HOOKS.read(hook_payloads.cursor("postToolUse"))
    assert hook is not None
    assert hook.session.client == "cursor-hooks"
    wish = _answered(hook_payloads.cursor("postToolUse"))
    assert (wish.tool, wish.memory_ids, wish.is_error) == ("recall", (MEMORY_ID,), False)
    assert wish.call_id.removeprefix("hook-").isalnum()


def test_both_hooks_of_one_call_give_one_event() -> None:
    """Who registers both must not count twice; one has the input as an object, the other as text."""
    first = _answered(hook_payloads.cursor("postToolUse"))
    assert _answered(hook_payloads.cursor("afterMCPExecution")) == first
    again = hook_payloads.cursor("postToolUse", tool_use_id="another")
    assert _answered(again) == first


def test_calls_with_one_id_are_told_apart() -> None:
    """Cursor gives the id of one tool call to others too."""
    first = _answered(hook_payloads.cursor("postToolUse"))
    others = [
        hook_payloads.cursor("postToolUse", tool_output=hook_payloads.recall_result(OTHER_ID)),
        hook_payloads.cursor("postToolUse", generation_id="g-2"),
        hook_payloads.cursor("postToolUse", tool_input={"query": "else"}),
    ]
    assert len({first.call_id, *(_answered(payload).call_id for payload in others)}) == 4


def test_a_recall_of_another_server_is_not_ours() -> None:
    """The tool's name comes without its server's."""
    output = json.dumps({"content": [{"type": "text", "text": "nothing to recall"}], "isError": False})
    assert not _wishes(cursor.HOOKS, hook_payloads.cursor("postToolUse", tool_output=output))
    assert not _wishes(cursor.HOOKS, hook_payloads.cursor("postToolUse", tool_name="MCP:search"))
    assert not _wishes(cursor.HOOKS, hook_payloads.cursor("postToolUse", tool_name="Shell"))


def test_an_empty_and_a_failed_recall_are_told_apart() -> None:
    """Nothing shown is known; what a failed call would have shown is not."""
    empty = _answered(hook_payloads.cursor("postToolUse", tool_output=hook_payloads.recall_result()))
    assert (empty.memory_ids, empty.is_error) == ((), False)
    output = json.dumps({"content": [{"type": "text", "text": f"bad query {MEMORY_ID}"}], "isError": True})
    failed = _answered(hook_payloads.cursor("postToolUse", tool_output=output))
    assert (failed.memory_ids, failed.is_error) == ((), True)


def test_what_cursors_agent_said_is_cut() -> None:
    """A judge reads the gist."""
    (wish,) = _wishes(cursor.HOOKS, hook_payloads.cursor("afterAgentResponse", text="a" * 50_000))
    assert isinstance(wish, AgentSaid)
    assert len(wish.text) == 8_000


def test_an_edit_belongs_to_the_workspace_around_it() -> None:
    """A window may have several; one whose name only begins alike is another."""
    root = "/home/dev/harbour"
    payload = hook_payloads.cursor("afterFileEdit", workspace_roots=["/home/dev/har", root])
    assert _wishes(cursor.HOOKS, payload) == (FileTouched(f"{root}/src/ports.py", "EDIT", root),)


# --- briefings -----------------------------------------------------------------------------------------------------


def test_a_briefing_within_the_limit_is_left_alone() -> None:
    """The usual case."""
    assert calls.markdown({"markdown": "# Memories\n> a\n[m end]\n"}, max_bytes=100) == "# Memories\n> a\n[m end]\n"


def test_a_long_briefing_ends_between_lines_and_stays_fenced() -> None:
    """The client would move it to a file; half a line, or no end of the fence, would let stored text loose."""
    lines = [f"> line {number} ünïcode" for number in range(1_000)]
    cut = calls.markdown({"markdown": "\n".join(["# Memories", *lines, "[m end]"]) + "\n"}, max_bytes=2_000)
    assert 1_900 < len(cut.encode()) <= 2_000
    kept = cut.splitlines()
    assert kept[-1] == "[m end]"
    assert kept[1:-1] == lines[: len(kept) - 2]


@pytest.mark.parametrize("answer", [{}, {"markdown": ""}, {"markdown": None}, {"markdown": 7}])
def test_an_answer_without_text_is_no_briefing(answer: dict[str, object]) -> None:
    """Then the hook prints nothing."""
    assert calls.markdown(answer, max_bytes=100) == ""


def test_a_session_without_an_id_reports_no_evidence() -> None:
    """It could belong to any."""
    hook = cursor.HOOKS.read(hook_payloads.cursor("postToolUse", conversation_id="", session_id=""))
    assert isinstance(hook, Hook)
    assert calls.report(hook.session, hook.wishes) == []
