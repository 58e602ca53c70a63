"""The MCP bridge as a client meets it: a process on pipes, before a real sidecar, in both protocol eras."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import mcp.types as types
import pytest
from mcp import Client, StdioServerParameters

from client_plugins.kit.recognition import shown_memories
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.api.v1.memory_service_pb2 import GetMemoryRequest
from sidecar.client import DataFolder, Sidecar, find_running, stop
from sidecar.errors import SidecarNotRunningError

# The modern client asks first which era the server knows.
ERAS: dict[Literal["legacy", "auto"], str] = {"legacy": "2025-11-25", "auto": "2026-07-28"}
DEADLINE_S = 30.0
CORE = ["recall", "remember", "build_context", "challenge", "record_outcome", "relate", "forget"]

# Runs the bridge among whatever may write to stdout: prints, C code, children, warnings and debug logs.
NOISY = """
import ctypes, os, subprocess, sys, threading, warnings
def wire_is_taken():
    return os.path.samestat(os.fstat(1), os.fstat(2))
def make_noise():
    while not wire_is_taken():
        pass
    libc = ctypes.CDLL(None)
    while True:
        print('stray print')
        sys.stdout.flush()
        os.write(1, b'raw write\\n')
        libc.puts(b'from C')
        libc.fflush(None)
        subprocess.run(['echo', 'from a child'])
        warnings.warn('a warning')
threading.Thread(target=make_noise, daemon=True).start()
from client_plugins.mcp_bridge.__main__ import main
main()
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a bridge that no agent of this machine started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "SIDECAR_"))}
    return {**kept, "SIDECAR_HOME": str(home), **more}


def stdio_client(home: Path, tmp_path: Path, mode: Literal["legacy", "auto"], **more: str) -> Client:
    """Return the SDK's client before a bridge that runs in the project `shop`."""
    project = tmp_path / "shop"
    project.mkdir(exist_ok=True)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "sidecar", "mcp"], env=environment(home, **more), cwd=project
    )
    info = types.Implementation(name="codex-mcp-client", version="1")
    return Client(server, mode=mode, client_info=info)


def structured(result: types.CallToolResult) -> dict[str, Any]:
    """Return the structured result of a call that succeeded; the text says the same."""
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    assert json.loads(result.content[0].text) == found  # type: ignore[union-attr]
    return found


def refusal(result: types.CallToolResult) -> str:
    """Return what an agent is told of a call that failed."""
    assert result.is_error
    text: str = result.content[0].text  # type: ignore[union-attr]
    assert "Traceback" not in text
    return text


class RawBridge:
    """A bridge on pipes, spoken to line by line."""

    def __init__(self, home: Path, *command: str, **more: str) -> None:
        self.process = subprocess.Popen(
            command or (sys.executable, "-m", "sidecar", "mcp"),
            env=environment(home, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._last_id = 0

    def send(self, message: str) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(message + "\n")
        self.process.stdin.flush()

    def request(self, method: str, **params: Any) -> int:
        """Send a request and return its id."""
        self._last_id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}))
        return self._last_id

    def answer(self) -> dict[str, Any]:
        """Return the next answer; anything but JSON-RPC on the way is a failure."""
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            if "id" in message:
                assert isinstance(message, dict)
                return message

    def greet(self) -> dict[str, Any]:
        """Shake hands in the older era and return what the server says of itself."""
        info = {"name": "claude-code", "version": "2"}
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        result = self.answer()["result"]
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        assert isinstance(result, dict)
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result."""
        asked = self.request("tools/call", name=tool, arguments=arguments)
        answer = self.answer()
        assert answer["id"] == asked
        result = answer["result"]
        assert isinstance(result, dict)
        return result


@contextmanager
def raw_bridge(home: Path, *command: str, **more: str) -> Iterator[RawBridge]:
    """Give a bridge, and end it if it did not by itself."""
    bridge = RawBridge(home, *command, **more)
    try:
        yield bridge
    finally:
        bridge.process.kill()
        bridge.process.wait()
        for stream in (bridge.process.stdin, bridge.process.stdout):
            assert stream is not None
            # What was not sent when the bridge ended cannot be.
            with suppress(BrokenPipeError):
                stream.close()


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Return when something is so; fail if it does not come about."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)


@pytest.mark.parametrize("mode", ERAS)
async def test_tools_do_their_work_in_both_eras(home: Path, tmp_path: Path, mode: Literal["legacy", "auto"]) -> None:
    """What an agent does in a session: remember, recall, link, forget; stored with who said it and where."""
    async with stdio_client(home, tmp_path, mode) as client:
        assert client.protocol_version == ERAS[mode]
        assert "RECALL before you decide" in (client.instructions or "")
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == CORE
        assert all(tool.output_schema for tool in listed.tools)
        first = structured(
            await client.call_tool("remember", {"content": "Deploys go out on Friday.", "memory_type": "decision"})
        )
        link = {"relation": "supersedes", "memory_id": first["memory_id"]}
        second = structured(
            await client.call_tool("remember", {"content": "Deploys go out on Tuesday.", "links": [link]})
        )
        found = structured(await client.call_tool("recall", {"query": "when do deploys go out"}))
        assert [memory["id"] for memory in found["memories"]] == [second["memory_id"]]
        assert shown_memories([json.dumps(found)]).memory_ids == (second["memory_id"],)
        preview = structured(await client.call_tool("forget", {"memory_id": second["memory_id"], "confirm": False}))
        assert preview["preview"] is True
        gone = structured(await client.call_tool("forget", {"memory_id": second["memory_id"]}))
        assert gone["deleted_ids"] == [second["memory_id"]]
        # What it had replaced is valid again.
        left = structured(await client.call_tool("recall", {"query": "deploys"}))["memories"]
        assert [memory["id"] for memory in left] == [first["memory_id"]]
    with Sidecar.connect(home, start=False) as sidecar:
        stored = sidecar.get_memory(GetMemoryRequest(memory_id=first["memory_id"])).memory
    assert (stored.client, stored.namespace, stored.superseded_by) == ("codex", "project:shop", "")


@pytest.mark.parametrize("mode", ERAS)
async def test_wrong_calls_say_what_is_wrong(home: Path, tmp_path: Path, mode: Literal["legacy", "auto"]) -> None:
    """An agent can only mend what it is told; a mistyped option must not be taken for its default."""
    missing = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
    link = {"relation": "supersedes", "memory_id": missing}
    wrong: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("recall", {}, "query"),
        ("recall", {"query": "x", "namespce": "global"}, "namespce: there is no such argument"),
        ("recall", {"query": "   "}, "EMPTY_QUERY"),
        ("recall", {"query": "x", "namespace": "projekt:x"}, "INVALID_NAMESPACE"),
        ("recall", {"query": "x", "n_results": 0}, "n_results"),
        ("remember", {"content": "x", "memory_type": "novel"}, "memory_type"),
        ("remember", {"content": "x", "links": [{**link, "target": "y"}]}, "there is no such argument"),
        ("remember", {"content": "x", "links": [link]}, "MEMORY_NOT_FOUND"),
        ("remember", {"content": "x" * 70_000}, "CONTENT_TOO_LARGE"),
        ("forget", {}, "exactly one"),
        ("forget", {"memory_id": missing, "query": "x"}, "exactly one"),
        ("forget", {"memory_id": missing}, "MEMORY_NOT_FOUND"),
        ("forget", {"query": "x", "dry_run": True}, "there is no such argument"),
    )
    async with stdio_client(home, tmp_path, mode) as client:
        for tool, arguments, told in wrong:
            assert told in refusal(await client.call_tool(tool, arguments)), (tool, arguments)


def test_tools_are_listed_without_a_sidecar(tmp_path: Path) -> None:
    """A client waits for the list of tools, not for a model; that no sidecar can be had is told by the call."""
    blocked = tmp_path / "home"
    blocked.write_text("not a folder", encoding="utf-8")
    with raw_bridge(blocked) as bridge:
        assert bridge.greet()["serverInfo"]["name"] == "memory"
        bridge.request("tools/list")
        assert len(bridge.answer()["result"]["tools"]) == len(CORE)
        result = bridge.call("recall", query="x")
        assert result["isError"] is True
        assert str(blocked) in result["content"][0]["text"]


def test_sidecar_is_started_behind_the_handshake(home: Path) -> None:
    """By the time of the first recall it is normally ready."""
    folder = DataFolder.at(home)

    def is_running() -> bool:
        try:
            find_running(folder)
        except SidecarNotRunningError:
            return False
        return True

    with raw_bridge(home) as bridge:
        bridge.greet()
        wait_until(is_running, "the sidecar runs")
        assert "note" not in bridge.call("recall", query="x")["structuredContent"], "the model was not waited for"


def test_session_of_claude_code_is_stored(home: Path, tmp_path: Path) -> None:
    """The session ties what was recalled to what was remembered later."""
    project = tmp_path / "app"
    project.mkdir()
    more = {"CLAUDE_CODE_SESSION_ID": "s-42", "CLAUDE_PROJECT_DIR": str(project)}
    with raw_bridge(home, **more) as bridge:
        bridge.greet()
        memory_id = bridge.call("remember", content="Tea at four.")["structuredContent"]["memory_id"]
    with Sidecar.connect(home, start=False, context=CallContext()) as sidecar:
        memory = sidecar.get_memory(GetMemoryRequest(memory_id=memory_id)).memory
    assert (memory.client, memory.session, memory.namespace) == ("claude-code", "s-42", "project:app")


def test_stdout_carries_json_rpc_only(home: Path) -> None:
    """Whoever writes to stdout in this process, the client reads nothing but answers."""
    with raw_bridge(home, sys.executable, "-c", NOISY, SIDECAR_LOG_LEVEL="debug") as bridge:
        bridge.greet()
        for number in range(30):
            result = bridge.call("remember", content=f"Noise does no harm, number {number}. ä日")
            assert not result["isError"], result
            assert result["structuredContent"]["deduplicated"] is False
        assert bridge.process.stdin is not None
        bridge.process.stdin.close()
        assert bridge.process.stdout is not None
        assert bridge.process.stdout.read() == ""
        assert bridge.process.wait(DEADLINE_S) == 0


def test_lines_that_are_no_json_rpc_do_no_harm(home: Path) -> None:
    """A confused client gets errors, and its next proper request an answer."""
    with raw_bridge(home) as bridge:
        bridge.greet()
        for line in ("", "{", "[]", "null", '"x"', "\x00\ufffd", '{"jsonrpc": "2.0"}', "[" * 20_000):
            bridge.send(line)
        asked = bridge.request("tools/list")
        while (answer := bridge.answer())["id"] != asked:
            assert "error" in answer
        assert len(answer["result"]["tools"]) == len(CORE)


def test_many_calls_at_once_get_their_own_answers(home: Path) -> None:
    """Answers come in any order, each under the id of its request."""
    with raw_bridge(home) as bridge:
        bridge.greet()
        asked = {
            bridge.request("tools/call", name="remember", arguments={"content": f"Thing {number}"}): f"Thing {number}"
            for number in range(40)
        }
        answers = [bridge.answer() for _ in asked]
        stored = {answer["id"]: answer["result"]["structuredContent"]["memory_id"] for answer in answers}
        assert stored.keys() == asked.keys()
    with Sidecar.connect(home, start=False) as sidecar:
        for request_id, memory_id in stored.items():
            memory = sidecar.get_memory(GetMemoryRequest(memory_id=memory_id)).memory
            assert memory.content == asked[request_id]


def test_sidecar_that_was_stopped_is_started_again(home: Path) -> None:
    """An upgrade or a crash in the middle of a session costs an agent nothing."""
    with raw_bridge(home) as bridge:
        bridge.greet()
        memory_id = bridge.call("remember", content="The kettle is on the left.")["structuredContent"]["memory_id"]
        stop(home)
        found = bridge.call("recall", query="kettle")["structuredContent"]
        assert [memory["id"] for memory in found["memories"]] == [memory_id]
        os.kill(find_running(DataFolder.at(home)).holder.pid, signal.SIGKILL)
        assert bridge.call("recall", query="kettle")["structuredContent"]["memories"]


def test_closed_stdin_ends_the_bridge_though_the_sidecar_hangs(home: Path) -> None:
    """A client that goes away in the middle of a call leaves no orphan; the sidecar stays."""
    with raw_bridge(home) as bridge:
        bridge.greet()
        bridge.call("recall", query="x")
        pid = find_running(DataFolder.at(home)).holder.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            bridge.request("tools/call", name="recall", arguments={"query": "y"})
            assert bridge.process.stdin is not None
            bridge.process.stdin.close()
            assert bridge.process.wait(DEADLINE_S) == 0
        finally:
            os.kill(pid, signal.SIGCONT)
    assert find_running(DataFolder.at(home)).holder.pid == pid


def test_requests_before_the_end_of_input_are_answered(home: Path) -> None:
    """A script pipes its requests in and closes; the answers still come."""
    with raw_bridge(home) as bridge:
        bridge.greet()
        bridge.call("recall", query="x")
        asked = bridge.request("tools/list")
        assert bridge.process.stdin is not None
        bridge.process.stdin.close()
        assert bridge.answer()["id"] == asked
        assert bridge.process.wait(DEADLINE_S) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there, a child does not change its parent")
def test_killed_parent_ends_the_bridge_though_stdin_stays_open(home: Path) -> None:
    """A client that was started by a shell and killed closes no pipe that others hold."""
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'sidecar', 'mcp'])\n"
        "print(child.pid, file=sys.stderr, flush=True)\n"
        "child.wait()\n"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    assert client.stderr is not None
    try:
        int(client.stderr.readline())
        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        client.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info}) + "\n")
        client.stdin.flush()
        assert json.loads(client.stdout.readline())["id"] == 1
        client.kill()
        # The bridge holds the only other end, so that the end of the file is its end.
        reading = threading.Thread(target=client.stdout.read, daemon=True)
        reading.start()
        reading.join(DEADLINE_S)
        assert not reading.is_alive()
    finally:
        client.kill()
        for stream in (client.stdin, client.stdout, client.stderr):
            stream.close()
        client.wait()
