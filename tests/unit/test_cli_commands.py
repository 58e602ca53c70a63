"""The commands against a scripted sidecar: what they ask, what they say, and how they end."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from sidecar import __version__
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import app
from sidecar.cli.doctor import TRIAL_NAMESPACE
from sidecar.cli.entry import run
from sidecar.errors import MemoryNotFoundError, SidecarNotRunningError, StorageFullError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to

A = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
B = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
COMMANDS = (
    "remember recall get list count forget restore context relate unrelate graph apply outcome validate history "
    "challenge disputes resolve promote demote contradictions supersedes health export import backup restore-backup "
    "status doctor start stop restart mcp sessions files judge-eval"
)


def command(*arguments: str) -> int:
    """Run one command in this process."""
    return run(arguments, serve=lambda arguments: 0)


def memory(memory_id: str = A, content: str = "Redis was chosen over Memcached.") -> pb.Memory:
    """Return a stored decision."""
    found = pb.Memory(id=memory_id, type=pb.MEMORY_TYPE_DECISION, namespace="project:shop", content=content)
    found.create_time.GetCurrentTime()
    return found


def recalled(memory_id: str = A, score: float = 0.73) -> service.RecalledMemory:
    """Return a memory as a recall delivers it, its score explained."""
    parts = service.ScoreParts(relevance=0.8, type_weight=1.1, age_factor=1, provenance_factor=1, reinforcement=1.05)
    return service.RecalledMemory(memory=memory(memory_id), score=score, similarity=0.62, score_parts=parts)


def count_of(total: int) -> service.CountMemoriesResponse:
    """Return a count."""
    return service.CountMemoriesResponse(total=total, by_type={"decision": total})


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Help shows what a command does, with the options that all have."""
    for name in COMMANDS.split():
        assert command(name, "--help") == 0
        assert f"sidecar {name}" in capsys.readouterr().out


def test_every_command_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    """The document names each command that help lists."""
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert command("--help") == 0
    printed = capsys.readouterr().out
    for name in (*COMMANDS.split(), "serve", "demo", "bench"):
        assert re.search(rf"^│ {name} ", printed, re.MULTILINE), name
        assert re.search(rf"^\|.*`(sidecar )?{name}[` ]", text, re.MULTILINE), name


def test_arguments_of_serve_reach_the_server_untouched() -> None:
    """The server reads its own flags; the commands must not refuse those they do not know."""
    asked: list[list[str]] = []

    def serve(arguments: object) -> int:
        assert isinstance(arguments, list)
        asked.append(arguments)
        return 3

    assert run(["--home", "/x", "serve", "--log-level", "DEBUG", "--help"], serve=serve) == 3
    assert asked == [["--home", "/x", "--log-level", "DEBUG", "--help"]]


def test_recall_shows_id_type_age_score_and_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One glance tells what was found; the question may be typed without quotes."""
    sidecar = ScriptedSidecar(recall=service.RecallResponse(memories=[recalled()], total=1, total_matched=1))
    connect_to(monkeypatch, sidecar)
    assert command("recall", "why", "redis", "--type", "decision", "--explain") == 0
    printed = capsys.readouterr().out
    for shown in (A, "decision", "project:shop", "0.73", "Redis was chosen", "use 1.05", "similarity 0.62"):
        assert shown in printed
    request = sidecar.requests[0]
    assert (request.query, list(request.memory_types)) == ("why redis", [pb.MEMORY_TYPE_DECISION])
    assert request.internal, "a person who looks is not an agent that was shown something"


def test_related_memories_stand_below_what_was_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only hangs together with the answer is told apart from it, and says how."""
    reached = service.ExpandedMemory(memory=memory(B, "An older way."), relevance_score=0.33, explanation="replaced")
    answer = service.RecallResponse(memories=[recalled()], expanded=[reached], total=1, total_matched=1)
    sidecar = ScriptedSidecar(recall=answer)
    connect_to(monkeypatch, sidecar)
    assert command("recall", "redis", "--related") == 0
    printed = capsys.readouterr().out
    assert printed.index("Redis was chosen") < printed.index("+  " + B) < printed.index("An older way.")
    assert "relevance 0.33" in printed
    assert sidecar.requests[0].include_related
    options = (
        "--depth",
        "3",
        "--max-related",
        "7",
        "--decay",
        "0.5",
        "--follow",
        "caused_by",
        "--avoid",
        "contradicts",
    )
    assert command("recall", "redis", "--related", *options) == 0
    request = sidecar.requests[-1]
    asked = request if isinstance(request, service.RecallRequest) else sidecar.requests[-2]
    assert (asked.max_depth, asked.max_expanded, asked.decay_factor) == (3, 7, 0.5)
    assert (list(asked.include_edge_types), list(asked.exclude_edge_types)) == (
        [pb.RELATION_CAUSED_BY],
        [pb.RELATION_CONTRADICTS],
    )


def test_recall_escapes_stored_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored escape sequence must not reach the terminal."""
    found = service.RecalledMemory(memory=memory(content="evil \x1b]0;owned\x07 \u202e [bold]x[/bold]"))
    connect_to(monkeypatch, ScriptedSidecar(recall=service.RecallResponse(memories=[found], total=1, total_matched=1)))
    assert command("recall", "evil") == 0
    printed = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    assert "[bold]x[/bold]" in printed


@pytest.mark.parametrize(("total", "told"), [(0, "sidecar demo"), (7, "--namespace '*'")])
def test_empty_recall_says_what_to_do_next(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], total: int, told: str
) -> None:
    """Nothing found is success; an empty store gets other advice than a full one."""
    connect_to(monkeypatch, ScriptedSidecar(recall=service.RecallResponse(), count_memories=count_of(total)))
    assert command("recall", "anything") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err.replace("\n", " ")


def test_degraded_recall_is_told_beside_the_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer by words alone must not pass for a full one, nor spoil what is piped."""
    leg = service.DegradedLeg(leg=service.RECALL_LEG_MEANING, reason="no model")
    connect_to(
        monkeypatch,
        ScriptedSidecar(recall=service.RecallResponse(memories=[recalled()], total=1, total_matched=1, degraded=[leg])),
    )
    assert command("recall", "redis") == 0
    captured = capsys.readouterr()
    assert "by meaning did not take part: no model" in captured.err
    assert "no model" not in captured.out


def test_json_recall_is_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` may stand before or behind the command's name."""
    answer = service.RecallResponse(recall_id="rec_1", memories=[recalled()], total=1, total_matched=1)
    connect_to(monkeypatch, ScriptedSidecar(recall=answer))
    documents = []
    for arguments in (("--json", "recall", "x"), ("recall", "x", "--json")):
        assert command(*arguments) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]
    assert documents[0]["memories"][0]["memory"]["type"] == "decision"


def test_remember_reads_stdin_and_links(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A text can be piped in; links carry the relation their option is named for."""
    redaction = pb.Redaction(rule="aws-access-token", count=1)
    sidecar = ScriptedSidecar(remember=service.RememberResponse(memory_id=A, redactions=[redaction]))
    connect_to(monkeypatch, sidecar)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Zeile eins\nZwei ü".encode())))
    links = ("--supersedes", B, "--derived-from", A)
    assert command("remember", "-", "-t", "decision", *links, "--importance", "0.9") == 0
    captured = capsys.readouterr()
    assert captured.out == f"{A}\n"
    assert "1 aws-access-token" in captured.err
    request = sidecar.requests[0]
    assert request.content == "Zeile eins\nZwei ü"
    assert [(link.relation, link.memory_id) for link in request.links] == [
        (pb.RELATION_SUPERSEDES, B),
        (pb.RELATION_DERIVED_FROM, A),
    ]
    assert request.provenance == pb.PROVENANCE_USER


def test_endless_stdin_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Piping a disk image into `remember` must neither fill the memory nor reach the sidecar."""
    sidecar = ScriptedSidecar()
    connect_to(monkeypatch, sidecar)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 2_000_000)))
    assert command("remember", "-") == 2
    assert not sidecar.requests
    assert "split it" in capsys.readouterr().err


def test_list_and_count_and_get_show_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking around works without JSON."""
    page = service.ListMemoriesResponse(memories=[memory()], next_page_token="abc")
    edge = pb.Edge(source_id=A, target_id=B, relation=pb.RELATION_SUPERSEDES)
    one = service.GetMemoryResponse(memory=memory(), edges=[edge], reinforcement=1.1)
    connect_to(monkeypatch, ScriptedSidecar(list_memories=page, count_memories=count_of(4), get_memory=one))
    assert command("list") == 0
    captured = capsys.readouterr()
    assert A in captured.out
    assert "--page abc" in captured.err
    assert command("count") == 0
    assert "decision" in capsys.readouterr().out
    assert command("get", A) == 0
    printed = capsys.readouterr().out
    assert "supersedes" in printed
    assert "factor 1.10" in printed


def test_status_shows_every_part_and_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong stands in the answer, not in a log."""
    answer = admin.GetStatusResponse(
        state=admin.PART_STATE_DEGRADED,
        problems=["2 memories wait since an hour"],
        version="0.1.0",
        embedder=admin.EmbedderStatus(state=admin.PART_STATE_OFF, problem="no model installed"),
        queue=admin.QueueStatus(parked=1, parked_jobs=[admin.ParkedJob(memory_id=A, attempts=5, reason="too odd")]),
        storage=admin.StorageStatus(engine="SQLite 3.54", free_bytes=5 * 2**30),
    )
    connect_to(monkeypatch, ScriptedSidecar(get_status=answer))
    assert command("status") == 0
    printed = capsys.readouterr().out
    for shown in ("degraded", "2 memories wait", "no model installed", "too odd", "5.0 GiB free", "watcher", "index"):
        assert shown in printed


def test_status_of_a_small_sidecar_without_a_model_reads_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One is not many, an index of five is not empty, and a queue that waits for no model says so."""
    answer = admin.GetStatusResponse(
        state=admin.PART_STATE_READY,
        memory_count=1,
        data_folder="/h",
        embedder=admin.EmbedderStatus(state=admin.PART_STATE_OFF),
        index=admin.IndexStatus(state=admin.PART_STATE_READY, size=5, origin="empty"),
        queue=admin.QueueStatus(pending=1),
    )
    connect_to(monkeypatch, ScriptedSidecar(get_status=answer))
    assert command("status") == 0
    printed = capsys.readouterr().out
    for shown in ("/h, 1 active memory\n", "ready, 5 vectors, new\n", "switched off, 1 memory without a vector\n"):
        assert shown in printed


@pytest.mark.parametrize(
    ("error", "code"),
    [(SidecarNotRunningError("/h"), 6), (MemoryNotFoundError(A), 7), (StorageFullError("/h/memories.db"), 5)],
)
def test_errors_end_in_one_message_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    """No error of the sidecar ever shows a traceback."""
    connect_to(monkeypatch, ScriptedSidecar(get_memory=error))
    assert command("get", A) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Error: ")
    assert "Traceback" not in captured.err


def test_fault_of_ours_is_one_line_unless_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The traceback is for whoever asks for it; the one line says how."""
    connect_to(monkeypatch, ScriptedSidecar(get_memory=KeyError("boom")))
    assert command("get", A) == 1
    told = capsys.readouterr().err
    assert app.DEBUG_VARIABLE in told
    assert "Traceback" not in told
    monkeypatch.setenv(app.DEBUG_VARIABLE, "1")
    assert command("get", A) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["bogus"], ["recall"], ["recall", "x", "--limit", "0"], ["remember", "x", "--type", "novel"], ["get", "--what"]],
)
def test_wrong_usage_ends_with_two(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """A typing error does nothing, and says so in both forms."""
    assert command(*arguments) == 2
    assert capsys.readouterr().err.startswith("Error: ")
    assert command(*arguments, "--json") == 2
    assert json.loads(capsys.readouterr().err)["error"]["reason"] == "USAGE"


def doctor_sidecar(*, finds: bool) -> ScriptedSidecar:
    """Return a healthy sidecar, which finds its trial memory again or not."""
    found = [service.RecalledMemory(memory=memory(A))] if finds else []
    status = admin.GetStatusResponse(version="0.1.0", storage=admin.StorageStatus(free_bytes=2**40))
    sidecar = ScriptedSidecar(
        get_status=status,
        remember=service.RememberResponse(memory_id=A),
        recall=service.RecallResponse(memories=found),
        forget_memories=service.ForgetMemoriesResponse(deleted_ids=[A]),
    )
    sidecar.endpoint = type("Endpoint", (), {"address": "unix:/x"})  # type: ignore[attr-defined]
    return sidecar


@pytest.mark.parametrize(("finds", "code"), [(True, 0), (False, 1)])
def test_doctor_purges_its_trial_memory_whatever_it_finds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, *, finds: bool, code: int
) -> None:
    """A check must leave nothing behind, least of all when it found something wrong."""
    sidecar = doctor_sidecar(finds=finds)
    connect_to(monkeypatch, sidecar)
    assert command("--home", str(tmp_path / "home"), "doctor", "--json") == code
    findings = {finding["check"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["round trip"]["verdict"] == ("good" if finds else "bad")
    remember, recall, forget = sidecar.requests
    assert remember.namespace == recall.namespace == TRIAL_NAMESPACE
    assert (forget.memory_id, forget.purge) == (A, True)


def test_doctor_tells_each_problem_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What the status says of the queue and the model is not said again by the checks of both."""
    sidecar = doctor_sidecar(finds=True)
    sidecar.answers["get_status"] = admin.GetStatusResponse(
        version=__version__,
        problems=["1 memory could not be embedded; `sidecar doctor --retry-parked` tries again", "no model"],
        embedder=admin.EmbedderStatus(state=admin.PART_STATE_OFF),
        queue=admin.QueueStatus(parked=1, parked_jobs=[admin.ParkedJob(memory_id=A, reason="too odd")]),
        storage=admin.StorageStatus(free_bytes=2**40),
    )
    leg = service.DegradedLeg(leg=service.RECALL_LEG_MEANING, reason="no model")
    found = service.RecallResponse(memories=[service.RecalledMemory(memory=memory(A))], degraded=[leg])
    sidecar.answers["recall"] = found
    connect_to(monkeypatch, sidecar)
    assert command("--home", str(tmp_path / "home"), "doctor") == 0
    printed = capsys.readouterr().out
    assert printed.count("no model") == 1
    assert printed.count("--retry-parked") == 1
    assert "1 memory without a vector: too odd" in printed


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps access apart from the mode")
def test_doctor_says_how_to_close_an_open_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A finding without a remedy helps nobody."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    connect_to(monkeypatch, doctor_sidecar(finds=True))
    assert command("doctor", "--home", str(home)) == 1
    assert f"chmod 700 {home}" in capsys.readouterr().out.replace("\n      ", "")


def test_doctor_tells_of_the_language_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whom texts go to, and what is the matter with it, once; nothing of one that is off."""
    sidecar = doctor_sidecar(finds=True)
    connect_to(monkeypatch, sidecar)
    model = admin.LanguageModelStatus(
        state=admin.PART_STATE_DEGRADED, model="tiny", host="llm.example", problem="no key", counters={"malformed": 2}
    )
    status = sidecar.answers["get_status"]
    assert isinstance(status, admin.GetStatusResponse)
    assert command("--home", str(tmp_path / "home"), "doctor") == 0
    assert "language model" not in capsys.readouterr().out
    status.language_model.CopyFrom(model)
    status.problems.append("the language model is not asked: no key")
    assert command("--home", str(tmp_path / "home"), "doctor") == 0
    printed = capsys.readouterr().out
    assert printed.count("no key") == 1
    assert "REMOTE" in printed
    assert "2 answers dropped" in printed


def test_remember_takes_what_belongs_to_a_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ticket's number, or how sure it is; what is no JSON object is refused before anything is asked."""
    sidecar = ScriptedSidecar(remember=service.RememberResponse(memory_id=A))
    connect_to(monkeypatch, sidecar)
    assert command("remember", "Redis.", "--confidence", "0.8", "--metadata", '{"ticket": 7}') == 0
    request = sidecar.requests[0]
    assert request.confidence == 0.8
    assert dict(request.metadata) == {"ticket": 7}
    assert command("remember", "Redis.", "--metadata", "[7]") == 2
    assert "--metadata" in capsys.readouterr().err
    assert len(sidecar.requests) == 1


def test_list_leaves_its_length_to_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other way to a listing does."""
    sidecar = ScriptedSidecar(
        list_memories=service.ListMemoriesResponse(memories=[memory()]), count_memories=count_of(1)
    )
    connect_to(monkeypatch, sidecar)
    assert command("list") == 0
    assert sidecar.requests[0].page_size == 0
