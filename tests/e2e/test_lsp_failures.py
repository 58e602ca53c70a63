"""The language server when things go wrong: no sidecar, a killed or stopped one, malformed frames, an editor gone."""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from sidecar.api.v1.memory_service_pb2 import CountMemoriesRequest
from sidecar.client import DataFolder, Sidecar, find_running
from tests.e2e.editor import COMMAND, DEADLINE_S, Editor, RawServer, editor, environment


@pytest.fixture
def broken_home(tmp_path: Path) -> Path:
    """Give a data folder that no sidecar can start in."""
    path = tmp_path / "broken"
    path.write_text("a file")
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give a folder with a source file."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text("deploy_window = 3\n")
    return folder


def sidecar_pid(home: Path) -> int:
    """Return the process of the sidecar that runs."""
    return find_running(DataFolder.at(home)).holder.pid


async def until(is_so: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def shown(code: Editor) -> list[int | str]:
    """Return the tokens of the progress that is shown now."""
    reports: dict[Any, list[Any]] = dict(code.client.progress_reports)
    return [token for token, seen in reports.items() if seen and seen[-1].kind == "begin"]


async def test_without_a_sidecar_an_editor_is_not_disturbed(broken_home: Path, shop: Path) -> None:
    """Empty answers, a status, one message and never a second; what a person asks for says what is wrong (T-31)."""
    source = (shop / "app.py").as_uri()
    async with editor(broken_home, shop) as code:
        code.open(source)
        for _ in range(20):
            assert await code.hover(source, 0, 2) == ""
            assert await code.lens(source) == ""
            assert not await code.client.workspace_symbol_async(types.WorkspaceSymbolParams("x"))
        for _ in range(3):
            with pytest.raises(JsonRpcException) as caught:
                await code.ask("recall", query="x")
            code_and_data: Any = (caught.value.code, caught.value.data)
            assert (code_and_data[0], code_and_data[1]["reason"]) == (-32803, "sidecar_away")
            assert code_and_data[1]["remedy"]
        assert (await code.ask("status"))["state"] in {"starting", "away"}
        await until(lambda: code.statuses[-1]["state"] == "away")
        assert code.statuses[-1]["message"]
        assert len(code.messages) == 1
        assert code.messages[0].startswith("Memories are away: ")


async def test_hover_does_not_wait_for_a_sidecar_that_starts(home: Path, shop: Path) -> None:
    """The sidecar takes a second to start, and an editor shows the real language server's hover only after ours."""
    source = (shop / "app.py").as_uri()
    async with editor(home, shop) as code:
        assert await code.hover(source, 0, 2) == ""
        assert (await code.ask("status"))["state"] == "starting"
        await code.ask("remember", content="deploy_window is in hours.")
        assert "in hours" in await code.hover(source, 0, 2)
        assert code.statuses[0]["state"] == "running"


async def test_killed_sidecar_is_found_again(home: Path, shop: Path) -> None:
    """Amid requests: hovers are empty for a moment, and what a person asked for is done by the next sidecar."""
    source = (shop / "app.py").as_uri()
    async with editor(home, shop) as code:
        await code.ask("remember", content="deploy_window is in hours.")
        os.kill(sidecar_pid(home), signal.SIGKILL)
        hovers = [code.hover(source, 0, 2) for _ in range(10)]
        stored = code.ask("remember", content="The window opens at nine.")
        *shown, answer = await asyncio.gather(*hovers, stored)
        assert answer["created"]
        assert all("in hours" in each for each in shown if each)
        assert (await code.ask("list"))["total"] == 2
        os.kill(sidecar_pid(home), signal.SIGKILL)
        await code.hover(source, 0, 3)
        await until(lambda: code.statuses[-1]["state"] == "running" and len(code.statuses) > 3)
        assert code.messages == []


@pytest.mark.slow
async def test_stopped_sidecar_does_not_hold_up_hovers(home: Path, shop: Path) -> None:
    """A sidecar that neither answers nor ends: one hover waits a little, the others not at all; later it goes on."""
    source = (shop / "app.py").as_uri()
    async with editor(home, shop) as code:
        stored = await code.ask("remember", content="deploy_window is in hours.")
        process = psutil.Process(sidecar_pid(home))
        process.suspend()
        try:
            waits = []
            for number in range(20):
                began = time.monotonic()
                # Another place each time, or the first answer would be given again.
                assert await code.hover(source, 5 + number, 0) == ""
                waits.append(time.monotonic() - began)
        finally:
            process.resume()
        assert statistics.median(waits) < max(waits)
        assert (await code.ask("get", id=stored["id"]))["memory"]["id"] == stored["id"]
        assert await code.hover(source, 0, 2)


async def test_cancelled_requests_end(home: Path, shop: Path) -> None:
    """Cancelling a command that waits ends it, so that nothing is stored afterwards (T-32)."""
    async with editor(home, shop) as code:
        await code.ask("list", limit=1)
        process = psutil.Process(sidecar_pid(home))
        process.suspend()
        protocol: Any = code.client.protocol
        command = types.ExecuteCommandParams("sidecar.remember", arguments=[{"content": "Never stored."}])
        waiting = [
            protocol.send_request_async("workspace/executeCommand", command, msg_id="a"),
            protocol.send_request_async("sidecar/recall", {"query": "x"}, msg_id="b"),
        ]
        tasks = [asyncio.ensure_future(each) for each in waiting]
        await until(lambda: len(shown(code)) == 2)
        for each in ("a", "b"):
            protocol.notify(types.CANCEL_REQUEST, types.CancelParams(each))
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(error, JsonRpcRequestCancelled)
        await until(lambda: not shown(code))
        process.resume()
        assert (await code.ask("list"))["total"] == 0


@pytest.mark.slow
async def test_progress_can_be_stopped_where_it_is_shown(home: Path, shop: Path) -> None:
    """The button beside the progress ends the request, as cancelling it does."""
    async with editor(home, shop) as code:
        await code.ask("list", limit=1)
        process = psutil.Process(sidecar_pid(home))
        process.suspend()
        asked = asyncio.ensure_future(code.ask("recall", query="x"))
        await until(lambda: shown(code))
        code.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(shown(code)[0]))
        with pytest.raises(JsonRpcRequestCancelled):
            await asked
        process.resume()


@pytest.mark.slow
async def test_two_editors_share_one_sidecar(home: Path, shop: Path) -> None:
    """Both start it at once, one comes to be; what one stores the other shows."""
    source = (shop / "app.py").as_uri()
    async with editor(home, shop) as one, editor(home, shop, preset="neovim") as other:
        first, second = await asyncio.gather(
            one.ask("remember", content="deploy_window is in hours."), other.ask("remember", content="Two at once.")
        )
        assert first["created"]
        assert second["created"]
        assert "in hours" in await other.hover(source, 0, 2)
        with Sidecar.connect(home, start=False) as sidecar:
            assert sidecar.count_memories(CountMemoriesRequest()).total == 0
        assert (await one.ask("list"))["total"] == 2


@pytest.mark.slow
async def test_a_thousand_hovers(home: Path, shop: Path) -> None:
    """Many at once, as from a restless mouse over many places: all are answered, in bounded memory."""
    lines = [f"name_{number} = {number}" for number in range(100)]
    (shop / "app.py").write_text("\n".join(lines) + "\n")
    source = (shop / "app.py").as_uri()
    async with editor(home, shop) as code:
        await code.ask("remember", content="`app.py` is generated.", uri=source)
        assert "generated" in await code.hover(source, 0, 2)
        process = code.client._server
        assert process is not None
        before = psutil.Process(process.pid).memory_info().rss
        shown = await asyncio.gather(*(code.hover(source, number % 100, 1) for number in range(1000)))
        assert sum("generated" in each for each in shown) > 500
        assert psutil.Process(process.pid).memory_info().rss - before < 64 * 2**20


@pytest.fixture
def raw(home: Path) -> Iterator[RawServer]:
    """Give a server on bare pipes."""
    server = RawServer(home)
    yield server
    server.kill()


def test_malformed_messages_do_no_harm(raw: RawServer) -> None:
    """What is no LSP is passed over or refused, and the next request is answered."""
    assert raw.ask("sidecar/status", {})["error"]["code"] == -32002
    raw.greet()
    for junk in (
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"Content-Length: 3\r\n\r\n{]}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 4\r\n\r\nnull",
        b'Content-Length: 17\r\n\r\n{"jsonrpc":"2.0"}',
        b"Content-Length: 4\r\n\r\n\xff\xfe\x00\x00",
    ):
        raw.write(junk)
    assert raw.ask("textDocument/hover", {"textDocument": 7})["error"]["code"] == -32602
    assert raw.ask("sidecar/nothing", {})["error"]["code"] == -32601
    refused = raw.ask("sidecar/recall", {"query": "\ud800"})["error"]
    assert (refused["code"], "Traceback" in str(refused)) == (-32602, False)
    too_large = 40 * 2**20
    raw.write(b"Content-Length: %d\r\n\r\n" % too_large)
    raw.write(b" " * too_large)
    nowhere = {"textDocument": {"uri": "file:///nowhere/x.py"}, "position": {"line": 0, "character": 0}}
    assert raw.ask("textDocument/hover", nowhere)["result"] is None
    assert [each for each in raw.told if each.get("method") == "window/showMessage"] == []
    assert raw.end() == 0


@pytest.mark.parametrize(("says", "exit_code"), [(("shutdown", "exit"), 0), (("exit",), 1), ((), 0)])
def test_exit_codes_are_those_of_lsp(raw: RawServer, says: tuple[str, ...], exit_code: int) -> None:
    """0 after `shutdown`, 1 without, 0 when the editor just closes its end; also while it looks for a sidecar."""
    raw.greet()
    raw.send({"id": 9, "method": "sidecar/list", "params": {}})
    for number, method in enumerate(says, start=20):
        raw.send({"id": number, "method": method} if method == "shutdown" else {"method": method})
    assert (raw.process.wait(DEADLINE_S) if says else raw.end()) == exit_code


def test_it_ends_with_the_editor_that_started_it(home: Path) -> None:
    """An editor that was killed closes nothing as long as another process holds the pipe's other end."""
    script = (
        "import subprocess, sys, time\n"
        f"server = subprocess.Popen({list(COMMAND)!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "holder = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdin=server.stdin,"
        " stdout=subprocess.DEVNULL)\n"
        'hello = b\'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}\'\n'
        "server.stdin.write(b'Content-Length: %d\\r\\n\\r\\n' % len(hello) + hello)\n"
        "server.stdin.flush()\n"
        "server.stdout.readline()\n"
        "print(server.pid, holder.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment(home), stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid, holder = map(int, parent.stdout.readline().split())
    try:
        server = psutil.Process(pid)
        parent.kill()
        parent.communicate()
        psutil.wait_procs([server], timeout=DEADLINE_S)
        assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
    finally:
        psutil.Process(holder).kill()


def test_starting_loads_no_engine() -> None:
    """It is to answer at once: no model, no index, and gRPC only once a sidecar is needed."""
    code = (
        "import sys, client_plugins.lsp_bridge.server;"
        "print(*sorted({'faiss', 'onnxruntime', 'numpy', 'grpc', 'mcp', 'apsw', 'typer'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
