"""Hooks as real processes: before a real sidecar, and before everything that can go wrong."""

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from client_plugins.hooks import calls
from client_plugins.hooks.door import Address, Call, Door
from client_plugins.hooks.registration import REGISTRATIONS, hook_command
from client_plugins.hooks.wishes import Session
from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import AsyncSidecar, DataFolder, Endpoint, Sidecar, find_running, stop
from sidecar.client.isolation import OWN_PROCESS
from sidecar.errors import SidecarNotRunningError
from sidecar.server.hook_door import MAX_LINE_BYTES
from tests.e2e.running import running_sidecar, wait_until_embedded, write_settings
from tests.hook_payloads import MAKERS, SECRET, Payload, cursor, recall_result

RULE: Final = "Run the whole check before every push."
FACT: Final = "Deploys go out on Tuesday at 10:00 UTC, never on Friday."
# So that one that hangs fails the test; how long one takes is not looked at.
HANGS_AFTER_S: Final = 30.0
ANSWERING: Final = [
    (client, one.event) for client, registrations in REGISTRATIONS.items() for one in registrations if one.answers
]
EVENTS: Final = [(client, one.event) for client, registrations in REGISTRATIONS.items() for one in registrations]


class Place:
    """A data folder with a sidecar, and a project that an agent works on."""

    def __init__(self, home: Path, project: Path, sidecar: Sidecar, fact_id: str) -> None:
        self.home = home
        self.project = project
        self.sidecar = sidecar
        self.fact_id = fact_id

    def run(self, client: str, payload: Payload) -> str:
        """Run a hook whose client is in the project; return what it printed, having seen that all else was well."""
        where = {"workspace_roots": [str(self.project)]} if client == "cursor" else {"cwd": str(self.project)}
        return printed(self.home, client, {**payload, **where})


def printed(home: Path, client: str, payload: Payload | bytes, *, environment: Mapping[str, str] | None = None) -> str:
    """Return what a hook printed, having seen that it ended with 0 and complained of nothing."""
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    outcome = subprocess.run(
        hook_command(client, home),
        input=content,
        capture_output=True,
        check=False,
        timeout=HANGS_AFTER_S,
        env=None if environment is None else dict(environment),
    )
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    return outcome.stdout.decode()


def repeated(ask: Callable[[], object]) -> None:
    """Return once the answer is true; hooks do not wait until what they sent is done."""
    for _ in range(300):
        if ask():
            return
        time.sleep(0.05)
    raise AssertionError("nothing came of it in 15 s")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A sidecar with a rule and a fact of the project."""
    folder = tmp_path_factory.mktemp("hooks")
    project = folder / "work" / "harbour"
    project.mkdir(parents=True)
    with running_sidecar(folder / "home", context=CallContext(client="test", project="harbour")) as sidecar:
        rule = memory.RememberRequest(content=RULE, memory_type=memory_pb2.MEMORY_TYPE_GOLDEN_RULE)
        sidecar.remember(rule)
        fact_id = sidecar.remember(memory.RememberRequest(content=FACT)).memory_id
        wait_until_embedded(sidecar)
        yield Place(folder / "home", project, sidecar, fact_id)


# --- what they do --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "event"), ANSWERING)
def test_a_briefing_is_printed_in_the_clients_form(place: Place, client: str, event: str) -> None:
    """One JSON document, fenced, within the client's limit (B42)."""
    payload = MAKERS[client](event, session_id=f"new-{client}-{event}")
    if client == "cursor":
        payload = {**payload, "conversation_id": f"new-{client}-{event}"}
    answer = json.loads(place.run(client, payload))
    if client == "cursor":
        assert list(answer) == ["additional_context"]
        text = answer["additional_context"]
    else:
        assert list(answer) == ["hookSpecificOutput"]
        assert answer["hookSpecificOutput"]["hookEventName"] == event
        text = answer["hookSpecificOutput"]["additionalContext"]
    assert f"> {FACT}" in text
    assert f"> {RULE}" in text
    assert text.rstrip().endswith("end of stored notes]")
    assert len(text) < 9_000


@pytest.mark.parametrize(("client", "event"), ANSWERING)
def test_a_session_is_briefed_once(place: Place, client: str, event: str) -> None:
    """However often the client says that it starts; a prompt that had nothing to tell does not count (B43)."""
    session = {"session_id": f"once-{client}-{event}", "conversation_id": f"once-{client}-{event}"}
    if event == "UserPromptSubmit":
        assert place.run(client, MAKERS[client](event, prompt="Write a haiku about autumn leaves.", **session)) == ""
    answers = [place.run(client, MAKERS[client](event, **session)) for _ in range(4)]
    # The first, unless the machine is so busy that its hook gave up.
    assert [bool(answer) for answer in answers].count(True) == 1


def test_a_briefing_that_was_not_printed_comes_with_the_next_prompt(place: Place) -> None:
    """The hook of the session's start was ended after its question; what then is printed is printed once."""
    session = {"session_id": "lost", "cwd": str(place.project)}
    request = calls.essentials(Session("claude-code", "lost", str(place.project)), is_retry=False).request
    path, token = _door_of(place.home)
    (lost,) = _say(path, json.dumps({"token": token, "method": "BuildContext", "request": request}).encode() + b"\n")
    assert RULE in json.dumps(lost)
    haiku = MAKERS["claude-code"]("UserPromptSubmit", prompt="Write a haiku about autumn leaves.", **session)
    answer = ""

    def is_told() -> bool:
        nonlocal answer
        answer = place.run("claude-code", haiku)
        return bool(answer)

    repeated(is_told)
    assert f"> {RULE}" in json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    again = [
        place.run("claude-code", haiku),
        place.run("claude-code", MAKERS["claude-code"]("SessionStart", **session)),
    ]
    assert again == ["", ""]


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_prompt_about_something_else_is_left_alone(place: Place, client: str) -> None:
    """What is not relevant only costs the agent's attention, golden rules that were told before too."""
    # A session of its own: in another test's, a briefing may have been lost, and would come now.
    session = {"session_id": f"elsewhere-{client}", "prompt": "Please write a haiku about autumn leaves."}
    assert place.run(client, MAKERS[client]("UserPromptSubmit", **session)) == ""


def test_hooks_that_do_not_answer_print_nothing(place: Place) -> None:
    """What a Stop hook prints is read as an instruction (B41), and a text that is no JSON as a failure."""
    silent = [event for event in EVENTS if event not in ANSWERING]
    assert {place.run(client, MAKERS[client](event)) for client, event in silent} == {""}


@pytest.mark.parametrize("is_active", [True, False])
def test_stop_never_asks_to_go_on(place: Place, is_active: bool) -> None:
    """With or without the mark that one is at work already (B40)."""
    assert place.run("claude-code", MAKERS["claude-code"]("Stop", stop_hook_active=is_active)) == ""


@pytest.mark.parametrize(("client", "event"), [("claude-code", "PostToolUse"), ("cursor", "afterFileEdit")])
def test_an_edit_is_noted_by_its_path(place: Place, client: str, event: str) -> None:
    """Relative to the project, with the session, and nothing of what is in it."""
    name = f"{client}.py"
    path = str(place.project / name)
    place.run(client, MAKERS[client](event, file_path=path, tool_input={"file_path": path, "new_string": SECRET}))
    request = activity.ListRecentFilesRequest(project="harbour", limit=100)
    repeated(lambda: name in [file.path for file in place.sidecar.list_recent_files(request).files])


def test_what_cursors_tool_showed_is_known_once(place: Place) -> None:
    """Exact ids on the channel `cursor-hooks`, however often and through whichever hook they come."""
    conversation = "conversation-1"
    output = recall_result(place.fact_id)
    first = cursor("postToolUse", conversation_id=conversation, tool_output=output)
    same = cursor("afterMCPExecution", conversation_id=conversation, result_json=output)
    for payload in (first, same, first):
        place.run("cursor", payload)
    request = evidence.GetSessionRequest(client="cursor-hooks", session=conversation)
    last = cursor("postToolUse", conversation_id=conversation, tool_output=recall_result(), tool_input={"query": "x"})
    place.run("cursor", last)
    repeated(lambda: len(place.sidecar.get_session(request).recalls) == 2)
    shown, nothing = place.sidecar.get_session(request).recalls
    assert list(shown.shown.ids.memory_ids) == [place.fact_id]
    assert nothing.shown.WhichOneof("state") == "nothing"
    assert not place.sidecar.get_session(evidence.GetSessionRequest(client="cursor", session=conversation)).recalls


async def test_the_end_of_a_turn_asks_for_the_transcript(place: Place) -> None:
    """A watcher of that client is told of both files of a sub-agent."""
    payload = MAKERS["claude-code"]("SubagentStop", cwd=str(place.project))
    async with await AsyncSidecar.connect(place.home, start=False) as sidecar:
        watch = sidecar.watch_reading_requests(evidence.WatchReadingRequestsRequest(clients=["claude-code"]))
        heard = asyncio.ensure_future(anext(watch))
        # Whether the watch has begun is seen only by what it hears.
        for _ in range(100):
            await asyncio.to_thread(place.run, "claude-code", payload)
            done, _ = await asyncio.wait({heard}, timeout=0.2)
            if done:
                break
        first, second = await heard, await anext(watch)
        assert first.client == "claude-code"
        assert [first.transcript_path, second.transcript_path] == [
            payload["agent_transcript_path"],
            payload["transcript_path"],
        ]
        heard.cancel()


def test_the_start_of_a_session_starts_the_sidecar(tmp_path: Path) -> None:
    """In the background, for the hooks after it; no other event does."""
    home = tmp_path / "home"
    write_settings(home)
    others = [(client, event) for client, event in EVENTS if event.lower() != "sessionstart"]
    assert {printed(home, client, MAKERS[client](event)) for client, event in others} == {""}
    assert not (home / "logs" / "start.log").exists()
    try:
        assert printed(home, "claude-code", MAKERS["claude-code"]("SessionStart")) == ""
        repeated(lambda: Endpoint.read(DataFolder(home)) is not None)
    finally:
        with suppress(SidecarNotRunningError):
            stop(home, force=True)


# --- what can go wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("client", "event"), EVENTS)
def test_without_a_sidecar_a_hook_is_silent(tmp_path: Path, client: str, event: str) -> None:
    """Absent, or gone without tidying up: the agent must not notice (B39)."""
    home = tmp_path / "home"
    # The start of a session starts a sidecar; not here, where there is no room for its folder.
    tmp_path.joinpath("home").write_text("")
    assert printed(home, client, MAKERS[client](event)) == ""


def test_an_endpoint_that_leads_nowhere_is_survived(tmp_path: Path) -> None:
    """Whatever lies there: a socket nobody listens at, a link, a file open to others, nonsense."""
    home = tmp_path / "home"
    DataFolder(home).prepare()
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / "hooks"))
    dead.close()
    good = json.dumps({"address": f"unix:{tmp_path}/sock", "token": "t"})
    endpoint = home / "endpoint.json"
    for content, mode in ((good, 0o600), (good, 0o644), ("{", 0o600), ("[]", 0o600), ('{"address": 1}', 0o600)):
        endpoint.write_text(content)
        endpoint.chmod(mode)
        assert printed(home, "claude-code", MAKERS["claude-code"]("UserPromptSubmit")) == ""
    endpoint.unlink()
    endpoint.symlink_to(tmp_path / "elsewhere.json")
    assert printed(home, "claude-code", MAKERS["claude-code"]("UserPromptSubmit")) == ""


@pytest.mark.parametrize(("client", "event"), EVENTS)
def test_a_sidecar_that_hangs_is_not_waited_for(place: Place, client: str, event: str) -> None:
    """It is stopped for as long as the hook runs; nothing is printed, and no hook is killed."""
    pid = find_running(DataFolder(place.home)).holder.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        assert place.run(client, MAKERS[client](event)) == ""
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_a_hanging_sidecar_was_told_is_not_lost(place: Place) -> None:
    """The system keeps it until the sidecar comes round."""
    pid = find_running(DataFolder(place.home)).holder.pid
    path = str(place.project / "while_it_hung.py")
    os.kill(pid, signal.SIGSTOP)
    try:
        place.run("claude-code", MAKERS["claude-code"]("PostToolUse", tool_input={"file_path": path}))
    finally:
        os.kill(pid, signal.SIGCONT)
    request = activity.ListRecentFilesRequest(project="harbour", limit=100)
    repeated(lambda: "while_it_hung.py" in [file.path for file in place.sidecar.list_recent_files(request).files])


@pytest.mark.parametrize("client", REGISTRATIONS)
@pytest.mark.parametrize("content", [b"", b"{", b"\x00\xff", b"[1]", b"{" * 100_000, b"x" * (50 << 20)], ids=len)
def test_garbage_is_survived(place: Place, client: str, content: bytes) -> None:
    """Nothing, nonsense, or far too much of it: all is taken, so that the client's pipe does not break."""
    assert printed(place.home, client, content) == ""


def test_a_client_that_keeps_stdin_open_is_not_waited_for(place: Place) -> None:
    """The hook ends by itself."""
    process = subprocess.Popen(
        hook_command("claude-code", place.home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.wait(HANGS_AFTER_S) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_closed_streams_are_survived(place: Place, closed: str, tmp_path: Path) -> None:
    """A client may have gone; nothing else may get what was meant for it."""
    payload = tmp_path / "payload.json"
    payload.write_text(json.dumps(MAKERS["claude-code"]("SessionStart", cwd=str(place.project), session_id=closed[:1])))
    command = f'exec "$@" <"{payload}" {closed}'
    outcome = subprocess.run(
        ("sh", "-c", command, "sh", *hook_command("claude-code", place.home)), timeout=HANGS_AFTER_S, check=False
    )
    assert outcome.returncode == 0


def test_no_home_no_path_no_locale_are_survived(place: Place) -> None:
    """An editor may start hooks with next to nothing."""
    payload = MAKERS["claude-code"]("SessionStart", cwd=str(place.project), session_id="bare")
    assert FACT in printed(place.home, "claude-code", payload, environment={})
    assert FACT in printed(
        place.home, "claude-code", {**payload, "session_id": "bare-2"}, environment={"LC_ALL": "C", "PYTHONHOME": "/x"}
    )


def test_a_full_disk_is_survived(place: Place) -> None:
    """No file may grow: not the note of a failure, nor what Python keeps of modules."""
    sessions = (f"full-{number}" for number in count())

    def is_told() -> bool:
        """Whether it is told; on a busy machine a hook gives up in time, and says nothing of a session."""
        payload = MAKERS["claude-code"]("SessionStart", cwd=str(place.project), session_id=next(sessions))
        outcome = subprocess.run(
            ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *hook_command("claude-code", place.home)),
            input=json.dumps(payload).encode(),
            capture_output=True,
            timeout=HANGS_AFTER_S,
            check=False,
        )
        assert (outcome.returncode, outcome.stderr) == (0, b"")
        return FACT in outcome.stdout.decode()

    repeated(is_told)


@pytest.mark.parametrize("arguments", [(), ("claude-code",), ("no-such", "--home", "/x"), ("codex", "--home", "x")])
def test_wrong_arguments_are_survived(place: Place, arguments: tuple[str, ...]) -> None:
    """Settings may be older or newer than we are."""
    python_and_program = hook_command("codex", place.home)[:4]
    outcome = subprocess.run(
        (*python_and_program, *arguments),
        input=json.dumps(MAKERS["codex"]("SessionStart")).encode(),
        capture_output=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"", b"")


def test_agents_of_the_sidecar_itself_are_left_alone(place: Place) -> None:
    """An agent that judges must not be told what to remember, nor be remembered (B54)."""
    payload = MAKERS["claude-code"]("SessionStart", cwd=str(place.project), session_id="judging")
    assert printed(place.home, "claude-code", payload, environment={OWN_PROCESS: "1"}) == ""


# --- the door ------------------------------------------------------------------------------------------------------


def _door_of(home: Path) -> tuple[Path, str]:
    endpoint = Endpoint.read(DataFolder(home))
    assert endpoint is not None
    path = Address(endpoint.address, endpoint.token).door_path
    assert path is not None
    return path, endpoint.token


def _say(path: Path, content: bytes) -> list[object]:
    """Return the answers to what is said at the door."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANGS_AFTER_S)
        connection.connect(str(path))
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while piece := connection.recv(65_536):
            said += piece
    return [json.loads(line) for line in said.splitlines()]


def test_the_door_is_closed_to_others(place: Place) -> None:
    """The socket is the user's alone, and so is its folder."""
    path, _ = _door_of(place.home)
    found = path.lstat()
    assert stat.S_ISSOCK(found.st_mode)
    assert (stat.S_IMODE(found.st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)


def test_the_door_tells_what_is_wrong(place: Place) -> None:
    """A token that is not the sidecar's, methods that are not for hooks, and lines that are no calls."""
    path, token = _door_of(place.home)
    call = {"token": token, "method": "RequestReading", "request": {"client": "codex", "transcript_path": "/x"}}
    lines: list[tuple[object, object]] = [
        ({**call, "token": "another"}, {"error": "UNAUTHENTICATED"}),
        ({**call, "method": "ForgetMemories"}, {"error": "UNKNOWN_METHOD"}),
        ({**call, "request": {"client": 7}}, {"error": "UNREADABLE_REQUEST"}),
        ({**call, "request": []}, {"error": "NO_REQUEST"}),
        ({**call, "request": {"client": ""}}, {"error": "INVALID_ARGUMENT"}),
        ({"method": "RequestReading"}, {"error": "NO_TOKEN"}),
        ([], {"error": "NO_TOKEN"}),
        (call, {"answer": {}}),
        ({**call, "method": "EndSession", "request": {"client": "codex"}}, {"error": "INVALID_ARGUMENT"}),
        ({**call, "method": "EndSession", "request": {"client": "codex", "session": "s"}}, {"answer": {}}),
    ]
    assert _say(path, b"".join(json.dumps(said).encode() + b"\n" for said, _ in lines)) == [told for _, told in lines]
    assert _say(path, b"no json\n") == [{"error": "NOT_JSON"}]
    assert _say(path, b"[" * 100_000 + b"\n") == [{"error": "NOT_JSON"}]


def test_a_guest_who_floods_the_door_is_shown_out(place: Place) -> None:
    """Neither a line without end nor lines without end take the door from others."""
    path, token = _door_of(place.home)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANGS_AFTER_S)
        connection.connect(str(path))
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            connection.sendall(b"x" * (1_000 * MAX_LINE_BYTES))
    door = Door.of(Address(f"unix:{path}", token))
    assert door is not None
    with closing(door):
        assert door.ask(Call("BuildContext", {"internal": True, "context": {"project": "harbour"}}))["memory_ids"]


def test_the_door_goes_with_the_sidecar(tmp_path: Path) -> None:
    """What is left would be taken for a sidecar that hangs."""
    with running_sidecar(tmp_path / "home") as sidecar:
        path, _ = _door_of(tmp_path / "home")
        assert path.exists()
        assert sidecar.endpoint.socket_path is not None
    assert not path.exists()


def test_what_hooks_have_said_is_heard_when_the_sidecar_stops(tmp_path: Path) -> None:
    """They have gone, and nobody has read a line yet: not even those that are still to be let in are lost."""
    home, project = tmp_path / "home", tmp_path / "harbour"
    project.mkdir()
    context = CallContext(client="test", project="harbour")
    count = 8
    with running_sidecar(home, context=context, embedder="none") as sidecar:
        fact_id = sidecar.remember(memory.RememberRequest(content=FACT)).memory_id
        pid = find_running(DataFolder(home)).holder.pid
        os.kill(pid, signal.SIGSTOP)
        for number in range(count):
            path = str(project / f"edited_{number}.py")
            edit = MAKERS["claude-code"]("PostToolUse", tool_input={"file_path": path}, cwd=str(project))
            assert printed(home, "claude-code", edit) == ""
        shown = cursor("postToolUse", conversation_id="last", tool_output=recall_result(fact_id))
        assert printed(home, "cursor", {**shown, "workspace_roots": [str(project)]}) == ""
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        repeated(lambda: not _lives(pid))
    with running_sidecar(home, context=context, embedder="none") as sidecar:
        files = sidecar.list_recent_files(activity.ListRecentFilesRequest(project="harbour", limit=100)).files
        recalls = sidecar.get_session(evidence.GetSessionRequest(client="cursor-hooks", session="last")).recalls
    assert sorted(file.path for file in files) == [f"edited_{number}.py" for number in range(count)]
    assert [list(recall.shown.ids.memory_ids) for recall in recalls] == [[fact_id]]


def _lives(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
