"""Every tool of the MCP bridge before a real sidecar, called once as it should be and once as it should not."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import mcp.types as types
import pytest
from mcp import Client, StdioServerParameters

from client_plugins.kit.recognition import shown_memories
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.client import DataFolder, Sidecar, find_running, stop
from sidecar.errors import SidecarNotRunningError
from tests.e2e.running import wait_until_embedded, write_settings
from tests.e2e.test_mcp_bridge import CORE, ERAS, environment, refusal

ROOT = Path(__file__).parents[2]
DEADLINE_S = 30.0
MISSING = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
REST = [
    *("list", "get", "count", "restore", "inspect_graph", "delete_edges", "apply", "validate", "history"),
    *("detect_contradictions", "check_supersedes", "list_disputes", "resolve_dispute", "promote", "demote"),
    *("add_file_activity", "list_recent_files", "analyze_health", "export_metrics", "status"),
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Give the data folder of a sidecar that runs this very code, wherever the package is installed from."""
    folder = tmp_path / "home"
    write_settings(folder)
    process = subprocess.Popen(
        [sys.executable, "-m", "sidecar", "serve", "--home", str(folder)],
        cwd=ROOT,
        env=this_code(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_running(folder, process)
        yield folder
    finally:
        with suppress(SidecarNotRunningError):
            stop(folder, force=True)
        process.kill()
        process.wait()


def this_code(home: Path) -> dict[str, str]:
    """Return an environment in which Python finds this code first."""
    return environment(home, PYTHONPATH=os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))))


def wait_until_running(home: Path, process: "subprocess.Popen[bytes]") -> None:
    """Return when the sidecar answers; fail if it ended or stayed silent."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            find_running(DataFolder.at(home))
        except SidecarNotRunningError:
            assert process.poll() is None, "the sidecar ended"
            assert time.monotonic() < deadline, "the sidecar stayed silent"
            time.sleep(0.05)
        else:
            return


def bridge(
    home: Path, tmp_path: Path, *flags: str, mode: Literal["legacy", "auto"] = "auto", name: str = "codex-mcp-client"
) -> Client:
    """Return the SDK's client before a bridge that runs in the project `shop`."""
    project = tmp_path / "shop"
    project.mkdir(exist_ok=True)
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "sidecar", "mcp", *flags], env=this_code(home), cwd=project
    )
    return Client(server, mode=mode, client_info=types.Implementation(name=name, version="1"))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the structured result of a call that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.content)
    found = result.structured_content
    assert isinstance(found, dict)
    assert result.content[0].text  # type: ignore[union-attr]
    return found


async def remember(client: Client, content: str, **arguments: Any) -> str:
    """Store a memory and return its id."""
    found = await call(client, "remember", content=content, memory_type="decision", **arguments)
    memory_id = found["memory_id"]
    assert isinstance(memory_id, str)
    return memory_id


@pytest.mark.parametrize("mode", ERAS)
async def test_all_tools_are_listed_only_when_asked_for(
    home: Path, tmp_path: Path, mode: Literal["legacy", "auto"]
) -> None:
    """Every tool costs room in the prompt, so an agent gets the core unless the user says otherwise."""
    async with bridge(home, tmp_path, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == CORE
    async with bridge(home, tmp_path, "--tools", "all", mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [*CORE, *REST]


async def test_every_tool_does_its_work(home: Path, tmp_path: Path) -> None:
    """One session that uses every operation; what a tool says is what the next one builds upon."""
    called: set[str] = set()

    async with bridge(home, tmp_path, "--tools", "all") as client:

        async def use(tool: str, **arguments: Any) -> dict[str, Any]:
            called.add(tool)
            return await call(client, tool, **arguments)

        old = await remember(client, "The payment service retries three times before it gives up.")
        new = await remember(client, "The payment service retries five times before it gives up.", wait_for_index=True)
        called.add("remember")
        with Sidecar.connect(home, start=False) as sidecar:
            wait_until_embedded(sidecar)

        near = {"include_related": True, "max_depth": 2, "decay_factor": 0.5, "explain": True}
        found = await use("recall", query="how often does the payment service retry", **near)
        assert {memory["id"] for memory in found["memories"]} == {old, new}
        assert all(len(memory["parts"].split("*")) == 5 for memory in found["memories"])
        edge = await use("relate", source_id=new, target_id=old, relation="caused_by", weight=0.5)
        assert edge["created"] is True
        graph = await use("inspect_graph", memory_id=new, edge_types=["caused_by"], mermaid=True)
        assert [node["id"] for node in graph["nodes"]] == [new, old]
        assert "graph" in graph["mermaid"] or "flowchart" in graph["mermaid"]
        gone = await use("delete_edges", edge_id=edge["edge_id"])
        assert gone["deleted_edge_ids"] == [edge["edge_id"]]
        [was] = gone["deleted_edges"]
        again = {name: was["edge"][name] for name in ("source_id", "target_id", "relation", "weight")}
        assert again == {"source_id": new, "target_id": old, "relation": "caused_by", "weight": 0.5}

        context = await client.call_tool("build_context", {"query": "payments"})
        called.add("build_context")
        assert not context.is_error, context.content
        text = context.content[0].text  # type: ignore[union-attr]
        assert text.startswith("# Memories")
        assert set(shown_memories([text]).memory_ids) == {old, new}

        assert (await use("apply", memory_id=new, context="raising the limit"))["event"]["kind"] == "applied"
        for success in (True, True):
            await use("record_outcome", memory_id=new, success=success)
        outcome = await use("record_outcome", memory_id=old, success=False, error="it gave up too early")
        assert outcome["new_confidence"] < outcome["old_confidence"]
        change = (await use("validate", memory_id=new, success=True))["change"]
        assert change["new_confidence"] > change["old_confidence"]
        history = await use("history", memory_id=new, kinds=["succeeded"], limit=1)
        assert len(history["events"]) == 1
        assert history["summary"]["succeeded"] == 3

        compared = await use("detect_contradictions", memory_id=new)
        assert [one["memory_id"] for one in compared["contradictions"]] == [old]
        health = await use("analyze_health", stale_days=30)
        assert health["analyzed"] == 2
        dispute = await use("challenge", memory_id=old, reason="it is five", evidence="the settings file")
        listed = await use("list_disputes")
        assert [one["id"] for one in listed["disputes"]] == [dispute["dispute_id"]]
        ended = await use("resolve_dispute", dispute_id=dispute["dispute_id"], resolution="keep")
        assert ended["dispute"]["resolution"] == "keep"
        assert (await use("check_supersedes", memory_id=new))["superseded_id"] == old
        assert (await use("get", memory_id=old))["memory"]["superseded_by"] == new
        assert (await use("promote", memory_id=new))["already_promoted"] is False
        assert (await use("demote", memory_id=new))["was_promoted"] is True

        assert (await use("count"))["total"] == 1
        assert [one["id"] for one in (await use("list", state="superseded"))["memories"]] == [old]
        assert (await use("forget", memory_id=new, force=True))["deleted_ids"] == [new]
        assert (await use("restore", memory_id=new))["memory"]["state"] == "active"

        added = await use("add_file_activity", path="src/pay.py", action="edit", metadata={"lines": 3})
        assert added["file_type"] == "python"
        files = await use("list_recent_files")
        assert [(one["path"], one["last_action"]) for one in files["files"]] == [("src/pay.py", "edit")]
        figures = await use("export_metrics", days=2)
        assert [len(series["values"]) for series in figures["series"]] == [2] * 7
        assert (await use("status"))["memory_count"] == 1
    assert called == {*CORE, *REST}


async def test_context_is_as_long_as_the_client_lets_its_model_see(home: Path, tmp_path: Path) -> None:
    """Codex cuts results; the others get the 4,000 tokens of the setting. All that is noted as shown is in the text."""
    with Sidecar.connect(home, start=False) as sidecar:
        for number in range(30):
            text = f"Rule {number} of the harbour: " + "ships give way to ferries. " * 30
            request = service.RememberRequest(content=text, memory_type=memory_pb2.MEMORY_TYPE_FACT, namespace="global")
            sidecar.remember(request)
    shown: dict[str, int] = {}
    for name in ("codex-mcp-client", "claude-code"):
        async with bridge(home, tmp_path, name=name) as client:
            result = await client.call_tool("build_context", {})
            text = result.content[0].text  # type: ignore[union-attr]
            assert result.structured_content is not None
            with Sidecar.connect(home, start=False) as sidecar:
                sidecar.remember(service.RememberRequest(content=f"Behind the note of {name}.", namespace="global"))
            noted = briefed(home, result.structured_content["recall_id"])
            assert set(shown_memories([text]).memory_ids) == noted
            shown[name] = len(text)
    assert shown["codex-mcp-client"] < 8_000
    assert 12_000 < shown["claude-code"] < 20_000


def briefed(home: Path, recall_id: str) -> set[str]:
    """Return which memories a briefing is noted to have shown."""
    with Sidecar.connect(home, start=False) as sidecar:
        listed = sidecar.list_memories(service.ListMemoriesRequest()).memories
        details = [sidecar.get_memory(service.GetMemoryRequest(memory_id=memory.id)) for memory in listed]
    return {event.memory_id for detail in details for event in detail.usage_events if event.recall_id == recall_id}


async def test_every_tool_says_what_is_wrong(home: Path, tmp_path: Path) -> None:
    """A wrong call names the argument or the reason, does nothing, and carries no traceback."""
    wrong: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("recall", {"query": "  "}, "EMPTY_QUERY"),
        ("remember", {"content": "x", "memory_type": "novel"}, "memory_type"),
        ("build_context", {"token_budget": 99}, "token_budget"),
        ("challenge", {"memory_id": MISSING, "reason": "it is wrong"}, "MEMORY_NOT_FOUND"),
        ("record_outcome", {"memory_id": MISSING, "success": True}, "MEMORY_NOT_FOUND"),
        ("relate", {"source_id": MISSING, "target_id": MISSING, "relation": "relates_to"}, "INVALID_INPUT"),
        ("forget", {"memory_id": MISSING, "query": "x"}, "exactly one"),
        ("list", {"memory_type": "novel"}, "UNKNOWN_MEMORY_TYPE"),
        ("get", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("count", {"namespace": "projekt:x"}, "INVALID_NAMESPACE"),
        ("restore", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("inspect_graph", {"memory_id": MISSING, "max_depth": 6}, "max_depth"),
        ("delete_edges", {"edge_id": 1, "memory_id": MISSING}, "nothing was done"),
        ("delete_edges", {"source_id": MISSING}, "nothing was done"),
        ("apply", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("validate", {"memory_id": MISSING, "success": True, "adjustment": 2}, "adjustment"),
        ("history", {"memory_id": MISSING, "limit": 0}, "limit"),
        ("detect_contradictions", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("check_supersedes", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("list_disputes", {"limit": 0}, "limit"),
        ("resolve_dispute", {"dispute_id": 99, "resolution": "keep"}, "DISPUTE_NOT_FOUND"),
        ("resolve_dispute", {"dispute_id": 99, "resolution": "supersede"}, "successor_id"),
        ("promote", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("demote", {"memory_id": MISSING}, "MEMORY_NOT_FOUND"),
        ("add_file_activity", {"path": "a.py", "action": "rename"}, "action"),
        ("list_recent_files", {"days": 400}, "days"),
        ("analyze_health", {"namespace": "projekt:x"}, "INVALID_NAMESPACE"),
        ("export_metrics", {"days": 366}, "days"),
        ("status", {"verbose": True}, "there is no such argument"),
    )
    async with bridge(home, tmp_path, "--tools=all") as client:
        for tool, arguments, told in wrong:
            assert told in refusal(await client.call_tool(tool, arguments)), (tool, arguments)
        assert (await call(client, "count", namespace="*"))["total"] == 0
    assert {tool for tool, *_ in wrong} == {*CORE, *REST}
