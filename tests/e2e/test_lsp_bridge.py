"""The language server as editors meet it: a process on pipes, a real sidecar, the capabilities of real editors."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1.memory_pb2 import RELATION_DERIVED_FROM, CallContext, Link
from sidecar.api.v1.memory_service_pb2 import GetMemoryRequest, RecallRequest, RememberRequest
from sidecar.client import Sidecar, stop
from sidecar.errors import SidecarNotRunningError
from tests.e2e.editor import DEADLINE_S, PRESETS, Editor, RawServer, editor
from tests.e2e.running import write_settings

HOSTILE = "````` </code> [free](command:workbench.run) ![x](http://evil.test/x.png)\n\x1b[31m\u202e <b>bold</b>"
in_shared_editor = pytest.mark.asyncio(loop_scope="module")
SOURCE = 'title = "😋"; connect_timeout = 5\nreturn connect_timeout\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a data folder for all tests of this module, whose sidecar is stopped at the end."""
    folder = tmp_path_factory.mktemp("lsp") / "home"
    write_settings(folder)
    yield folder
    with suppress(SidecarNotRunningError):
        stop(folder, force=True)


def repository(folder: Path) -> Path:
    """Return a new repository with one source file."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "src").mkdir()
    (folder / "src" / "login.py").write_text(SOURCE, encoding="utf-8")
    return folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Give a repository that has another name in each test, and so other memories."""
    return repository(tmp_path / f"shop-{tmp_path.name}")


@pytest.fixture
def source(shop: Path) -> str:
    """Return the source file's URI."""
    return (shop / "src" / "login.py").as_uri()


@pytest.fixture(scope="module")
def mall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a repository for those tests that share an editor."""
    return repository(tmp_path_factory.mktemp("lsp") / "mall")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def code(home: Path, mall: Path) -> AsyncIterator[Editor]:
    """Give an editor whose sidecar runs, to tests that do not mind each other: a start takes most of their time."""
    async with editor(home, mall) as found:
        # A request of a person waits for it.
        await found.ask("list", limit=1)
        yield found


@pytest.fixture
def inside(mall: Path) -> str:
    """Return the URI of the source file in the shared editor."""
    return (mall / "src" / "login.py").as_uri()


@pytest.fixture
def raw(home: Path) -> Iterator[RawServer]:
    """Give a server on bare pipes."""
    server = RawServer(home)
    yield server
    server.kill()


async def until(is_so: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("preset", PRESETS)
async def test_every_editor_is_shown_what_is_known(home: Path, shop: Path, source: str, preset: str) -> None:
    """Hover, lens, symbols and a command, with what each editor says that it can do (T-30)."""
    async with editor(home, shop, preset=preset) as code:
        code.open(source)
        stored = await code.ask("remember", content=f"connect_timeout stays below 10 s. {HOSTILE}", type="gotcha")
        assert (stored["created"], stored["namespace"]) == (True, f"project:{shop.name}")
        rule = await code.ask("remember", content="Never log passwords.", type="golden_rule", uri=source)
        shown = await code.hover(source, 1, 8)
        assert "1 memory about `connect_timeout` · 1 memory about this file" in shown
        assert shown.index(stored["id"]) < shown.index(rule["id"])
        assert "not shown to an agent yet" in shown
        assert await code.lens(source) == "1 memory · 1 golden"
        symbols = await code.client.workspace_symbol_async(types.WorkspaceSymbolParams("timeouts of connections"))
        assert symbols
        assert symbols[0].name.startswith("connect_timeout stays below 10 s.")
        await code.run("memoriesForFile", {"uri": source})
        await until(lambda: code.pages or code.messages)
        assert "Never log passwords." in "".join((*code.pages, *code.messages))


@in_shared_editor
async def test_stored_text_is_text_and_nothing_else(code: Editor, inside: str) -> None:
    """A memory may come from anywhere: no link, picture, command, HTML or escape sequence of it may come to life."""
    seen = len(code.pages)
    await code.ask("remember", content=f"connect_timeout {HOSTILE}")
    shown = await code.hover(inside, 1, 8)
    await code.run("recall", {"query": "connect_timeout"})
    await until(lambda: len(code.pages) > seen)
    for markdown in (shown, code.pages[-1]):
        before, _, rest = markdown.partition("``````text\n")
        inside, _, behind = rest.partition("\n``````")
        assert "command:workbench" in inside
        assert "command:" not in before + behind
        assert "\\x1b" in inside
        assert not {"\x1b", "\u202e"} & set(markdown)


def test_only_what_is_needed_is_declared(raw: RawServer) -> None:
    """It runs beside the real language server, and must take nothing from it; above all it wants no texts."""
    told = raw.greet()["capabilities"]
    sync = told["textDocumentSync"]
    assert (sync["openClose"], sync["change"], sync["save"]) == (True, 0, {"includeText": False})
    assert {name for name, value in told.items() if value not in (None, False)} == {
        *("positionEncoding", "textDocumentSync", "hoverProvider", "codeLensProvider", "codeActionProvider"),
        *("workspaceSymbolProvider", "executeCommandProvider", "workspace"),
    }


def test_what_is_switched_off_is_not_offered(raw: RawServer) -> None:
    """An editor that shows memories in its own way wants no second hover."""
    told = raw.greet(initializationOptions={"hover": False, "codeLens": False})["capabilities"]
    assert not {"hoverProvider", "codeLensProvider"} & {name for name, value in told.items() if value}


@in_shared_editor
async def test_looking_is_no_evidence(code: Editor, inside: str, home: Path) -> None:
    """A memory that an editor shows was not shown to an agent, whatever way it was shown."""
    stored = await code.ask("remember", content="`src/login.py` asks for two factors.", uri=inside)
    assert "two factors" in await code.hover(inside, 0, 0)
    await code.lens(inside)
    assert (await code.ask("recall", query="two factors at login", uri=inside))["memories"]
    assert (await code.ask("context", task="two factors at login", uri=inside))["memoryIds"]
    shown = (await code.ask("memoriesForFile", uri=inside))["memories"]
    assert stored["id"] in [memory["id"] for memory in shown]
    with Sidecar.connect(home, start=False) as sidecar:
        answer = sidecar.get_memory(GetMemoryRequest(memory_id=stored["id"]))
        sessions = sidecar.list_sessions(evidence.ListSessionsRequest()).sessions
    assert (answer.memory.access_count, list(answer.usage_events)) == (0, [])
    assert not [session for session in sessions if session.thread.client.startswith("lsp-")]


@pytest.mark.parametrize(("encoding", "column"), [("utf-16", 14), ("utf-8", 16), ("utf-32", 13)])
def test_positions_count_in_the_editors_units(
    raw: RawServer, shop: Path, source: str, encoding: str, column: int
) -> None:
    """Behind an emoji, each of the three counts another number of units to the same identifier (T-33)."""
    told = raw.greet(shop, capabilities={"general": {"positionEncodings": [encoding]}})
    assert told["capabilities"]["positionEncoding"] == encoding
    assert "result" in raw.ask("sidecar/remember", {"content": "connect_timeout is in seconds."})
    end = column + len("connect_timeout")
    found = []
    for character in (column - 1, column, end, end + 1):
        position = {"line": 0, "character": character}
        answer = raw.ask("textDocument/hover", {"textDocument": {"uri": source}, "position": position})
        found.append(bool(answer["result"]))
    assert found == [False, True, True, False]


def test_selection_is_remembered_as_it_was_shown(raw: RawServer, shop: Path, source: str, home: Path) -> None:
    """The action's title shows what is stored, and the memory then belongs to the file."""
    literals = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}}
    raw.greet(shop, capabilities={"textDocument": {"codeAction": literals}}, clientInfo={"name": "Kate"})

    def actions(end: int, **context: Any) -> Any:
        selected = {"start": {"line": 0, "character": 8}, "end": {"line": 0, "character": end}}
        wanted = {"textDocument": {"uri": source}, "range": selected, "context": {"diagnostics": [], **context}}
        return raw.ask("textDocument/codeAction", wanted)["result"]

    remember, recall = actions(12)
    assert (remember["title"], recall["title"]) == ('Remember “"😋"”', 'Recall about “"😋"”')
    assert remember["kind"] == ""
    stored = raw.ask("workspace/executeCommand", remember["command"])["result"]
    with Sidecar.connect(home, start=False) as sidecar:
        memory = sidecar.get_memory(GetMemoryRequest(memory_id=stored["id"])).memory
    assert (memory.content, memory.client, memory.namespace) == ('"😋"', "lsp-kate", f"project:{shop.name}")
    lens = raw.ask("textDocument/codeLens", {"textDocument": {"uri": source}})["result"][0]
    assert lens["command"]["title"] == "1 memory"
    assert raw.ask("workspace/executeCommand", lens["command"])["result"]["memories"][0]["files"] == ["src/login.py"]
    # Nothing is selected; the editor looks for fixes; the editor looks by itself at each move of the cursor.
    assert actions(8) == actions(12, only=["quickfix"]) == actions(12, triggerKind=2) == []


def test_editors_without_code_actions_get_commands(raw: RawServer, shop: Path, source: str) -> None:
    """Before LSP 3.8 an editor knew bare commands alone, and would not run anything else."""
    raw.greet(shop)
    selected = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    wanted = {"textDocument": {"uri": source}, "range": selected, "context": {"diagnostics": []}}
    commands = raw.ask("textDocument/codeAction", wanted)["result"]
    assert [command["command"] for command in commands] == ["sidecar.remember", "sidecar.recall"]


@in_shared_editor
async def test_a_memory_goes_through_its_life(code: Editor, inside: str) -> None:
    """Each request does what it says, and answers as the contract has it."""
    before = (await code.ask("list"))["total"]
    stored = await code.ask("remember", content="Releases are cut on Tuesday.", type="convention", importance=0.7)
    again = await code.ask("remember", content="Releases are cut on Tuesday.")
    assert (again["id"], again["created"]) == (stored["id"], False)
    other = await code.ask("remember", content="The train leaves at ten.", relatedTo=[stored["id"].lower()])
    got = (await code.ask("get", id=stored["id"]))["memory"]
    assert (got["type"], got["importance"], got["age"], got["golden"]) == ("convention", 0.7, "now", False)
    assert got["usefulness"] == {"used": 0, "misled": 0, "shown": 0, "multiplier": 1.0}
    assert "relevance" not in got
    listed = await code.ask("list", limit=1)
    assert ([each["id"] for each in listed["memories"]], listed["total"]) == ([other["id"]], before + 2)
    typed = (await code.ask("list", type="convention"))["memories"]
    assert {memory["type"] for memory in typed} == {"convention"}
    recalled = await code.ask("recall", query="when are releases cut?", limit=1)
    assert recalled["memories"][0]["relevance"] > 0.5
    assert recalled["recallId"] == ""
    assert await code.ask("challenge", id=stored["id"], reason="Friday.") == {"id": stored["id"], "disputed": True}
    assert (await code.ask("get", id=stored["id"]))["memory"]["disputed"] is True
    held = await code.ask("validate", id=other["id"], holds=True)
    failed = await code.ask("validate", id=other["id"], holds=False, note="It left at nine.")
    assert failed["confidence"] < held["confidence"]
    assert await code.ask("forget", id=stored["id"]) == {"forgotten": [stored["id"]]}
    assert await code.ask("restore", id=stored["id"]) == {"restored": [stored["id"]]}
    figures = {figure["name"]: figure for figure in (await code.ask("insights", days=7))["figures"]}
    assert {"hit_rate", "context_precision"} <= figures.keys()
    # No session was judged here, which is not the same as none of its memories being relevant.
    assert figures["context_precision"]["value"] is None


@in_shared_editor
async def test_use_of_a_memory_is_told(code: Editor, mall: Path, inside: str, home: Path) -> None:
    """What agents store and use while the editor runs is seen there: found in no time, and that it helped."""
    await code.hover(inside, 0, 0)
    context = CallContext(client="claude-code", session=f"s-{mall.parent.name}", project=mall.name)
    with Sidecar.connect(home, start=False, context=context) as sidecar:
        old = sidecar.remember(RememberRequest(content="src/login.py takes one factor.")).memory_id
        assert sidecar.recall(RecallRequest(query="factors that login.py takes", request_key=old)).total
        rests_on = Link(relation=RELATION_DERIVED_FROM, memory_id=old)
        sidecar.remember(RememberRequest(content="One factor is not enough.", links=[rests_on]))
    shown = (await code.ask("memoriesForFile", uri=inside))["memories"]
    use = next(memory["usefulness"] for memory in shown if memory["id"] == old)
    assert (use["used"], use["misled"], use["shown"]) == (1, 0, 1)
    assert use["multiplier"] > 1


async def test_open_and_saved_files_are_noted(home: Path, shop: Path, source: str) -> None:
    """Path, language and time of what was opened while the sidecar started; nothing of ignored files or of texts."""
    (shop / ".gitignore").write_text("*.log\nbuild/\n")
    (shop / "build").mkdir()
    async with editor(home, shop) as code:
        code.open(source, text="secret text of the buffer")
        for name in ("debug.log", "build/made.py", ".git/COMMIT_EDITMSG"):
            code.open((shop / name).as_uri())
        code.open("untitled:Untitled-1")
        code.save(source)
        code.save(source)
        await code.ask("list", limit=1)
        with Sidecar.connect(home, start=False) as sidecar:
            recent = activity.ListRecentFilesRequest(project=shop.name)

            def found() -> list[tuple[str, int, int]]:
                files = sidecar.list_recent_files(recent).files
                return [(file.path, file.count, file.last_action) for file in files]

            await until(lambda: found() and found()[0][1] == 2)
            assert found() == [("src/login.py", 2, activity.FILE_ACTION_EDIT)]


async def test_files_are_not_noted_where_that_is_off(home: Path, shop: Path, source: str) -> None:
    """Whoever does not want it has only to say so."""
    async with editor(home, shop, options={"fileActivity": False}) as code:
        code.open(source)
        await code.ask("list", limit=1)
        await code.ask("list", limit=1)
    with Sidecar.connect(home, start=False) as sidecar:
        assert not sidecar.list_recent_files(activity.ListRecentFilesRequest(project=shop.name)).files


@in_shared_editor
async def test_commands_show_their_results_unless_quiet(code: Editor, inside: str) -> None:
    """Whoever clicks a lens sees what it stands for; a plugin that shows it itself asks for quiet."""
    pages, messages = len(code.pages), len(code.messages)
    await code.run("remember", {"content": "Deploys go out on Tuesday.", "quiet": True})
    await code.run("recall", {"query": "deploys"})
    await code.run("insights")
    await code.run("status")
    await until(lambda: len(code.pages) == pages + 2 and len(code.messages) == messages + 1)
    assert "Deploys go out on Tuesday." in code.pages[pages]
    assert "not known" in code.pages[pages + 1]
    assert code.messages[-1].startswith("The sidecar is running, ")


async def test_pages_are_read_only_and_go_with_the_server(home: Path, shop: Path) -> None:
    """No text of memories is left lying about."""
    async with editor(home, shop) as code:
        await code.run("recall", {"query": "anything"})
        await until(lambda: code.client.shown_documents)
        page = Path(code.client.shown_documents[0].uri.removeprefix("file://"))
        assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o400, 0o700)
    assert not page.parent.exists()


BAD_ARGUMENTS: tuple[tuple[str, list[Any], str], ...] = (
    ("recall", [], "query: is missing"),
    ("recall", [{"query": 7}], "query: expected a text"),
    ("recall", [{"query": "x", "limit": 0}], "'limit' must be >= 1"),
    ("recall", [{"query": "x", "limits": 3}], "there is no field limits"),
    ("recall", [{"query": "x"}, {}], "takes one object"),
    ("recall", ["x"], "expected one object"),
    ("remember", [{"content": "x", "type": "thought"}], "'type' must be one of"),
    ("remember", [{"content": "x", "namespace": "project:a b"}], "namespace is 'project:a b'"),
    ("validate", [{"id": "mem_1"}], "holds: is missing"),
    ("drop", [{}], "no command of this name"),
)


@in_shared_editor
async def test_bad_arguments_are_refused_by_name(code: Editor) -> None:
    """-32602, with the field, and nothing of our insides (T-35)."""
    before = list(code.messages)
    for name, arguments, told in BAD_ARGUMENTS:
        with pytest.raises(JsonRpcException) as caught:
            await code.run(name, *arguments)
        assert caught.value.code == -32602
        assert told in caught.value.message
        said = str((caught.value.message, caught.value.data))
        assert not any(word in said for word in ("Traceback", "cattrs", ".py"))
    assert code.messages == before


@in_shared_editor
async def test_refusals_come_with_reason_and_remedy(code: Editor) -> None:
    """A plugin can branch on the reason and show the remedy."""
    rule = await code.ask("remember", content="Always be kind.", type="golden_rule")
    for name, memory_id, reason in (
        ("get", "mem_00000000000000000000000009", "MEMORY_NOT_FOUND"),
        ("forget", rule["id"], "NOT_FORGOTTEN"),
    ):
        with pytest.raises(JsonRpcException) as caught:
            await code.ask(name, id=memory_id)
        data: Any = caught.value.data
        assert (caught.value.code, data["reason"]) == (-32803, reason)
        assert data["remedy"]


@in_shared_editor
async def test_documents_that_are_no_files_answer_empty(code: Editor) -> None:
    """Editors open scratch buffers, diffs and remote files too (T-34)."""
    before = list(code.messages)
    for uri in (
        "untitled:Untitled-1",
        "git:/shop/x.py?HEAD",
        "vscode-remote://ssh/x.py",
        "file://host/share/x.py",
        "x",
        "",
    ):
        code.open(uri)
        assert await code.hover(uri, 0, 0) == ""
        assert await code.lens(uri) == ""
        assert await code.ask("memoriesForFile", uri=uri) == {"memories": []}
    assert code.messages == before


async def test_memories_go_to_the_files_own_project(home: Path, shop: Path, tmp_path: Path) -> None:
    """Of two repositories in one workspace each has its memories; without one, the workspace's folder counts."""
    plain = tmp_path / f"plain-{tmp_path.name}"
    (plain / "deep").mkdir(parents=True)
    async with editor(home, plain, shop) as code:
        stored = {
            path.name: (await code.ask("remember", content="x is y", uri=path.as_uri()))["namespace"]
            for path in (shop / "src" / "login.py", plain / "deep" / "a.txt")
        }
        default = (await code.ask("remember", content="x is z"))["namespace"]
    assert stored == {"login.py": f"project:{shop.name}", "a.txt": f"project:{plain.name}"}
    assert default == f"project:{plain.name}"


async def test_told_namespace_wins(home: Path, shop: Path, source: str) -> None:
    """Whoever names one does not want it guessed; a bad one is said, once, and passed over."""
    async with editor(home, shop, options={"namespace": "named"}) as code:
        assert (await code.ask("remember", content="n", uri=source))["namespace"] == "project:named"
        assert (await code.ask("status"))["namespace"] == "project:named"
    async with editor(home, shop, options={"namespace": "a b", "unheard": 1}) as code:
        assert (await code.ask("remember", content="n", uri=source))["namespace"] == f"project:{shop.name}"
        assert len(code.messages) == 1


async def test_editor_hears_what_becomes_of_the_sidecar(home: Path, shop: Path, source: str) -> None:
    """A status bar follows without asking; lenses are drawn anew when they are others."""
    async with editor(home, shop) as code:
        code.open(source)
        await code.ask("remember", content="Counted.")
        await until(lambda: code.statuses and code.statuses[-1]["state"] == "running")
        count = code.statuses[-1]["memories"]
        before = code.refreshes
        await code.ask("remember", content="Counted, too.")
        await until(lambda: code.statuses[-1]["memories"] > count and code.refreshes > before)
        assert {status["namespace"] for status in code.statuses} == {f"project:{shop.name}"}
        assert code.messages == []
