"""What the shell may complete, against a scripted sidecar: what there is, and nothing that a shell would act on."""

from pathlib import Path

import pytest

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import Sidecar
from sidecar.errors import DeadlineError, SidecarNotRunningError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import A, B, command

HOSTILE = "\\$(touch /tmp/x) `id` 'a' \"b\" [red]c[/red] ; rm | d\n!e & x:y {1,2} *?"


class Answering(ScriptedSidecar):
    """Takes a deadline with each call, and remembers that it was short."""

    def __getattr__(self, method: str):  # type: ignore[no-untyped-def]
        call = super().__getattr__(method)

        def with_deadline(request: object, *, deadline_s: float) -> object:
            assert deadline_s <= 1
            return call(request)

        return with_deadline


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Give a sidecar with two memories, a project, a session and a dispute, some of them named by an enemy."""
    memories = [pb.Memory(id=A, content=HOSTILE), pb.Memory(id=B, content="港口" * 50)]
    thread = evidence.SessionThread(client="codex", session="0b0e7a54", project="shop")
    odd = evidence.SessionThread(client="codex", session="x$(id)", project="shop")
    coverages = [evidence.SessionCoverage(thread=each) for each in (thread, odd)]
    scripted = Answering(
        list_memories=service.ListMemoriesResponse(memories=memories),
        count_memories=service.CountMemoriesResponse(
            by_namespace={"project:shop": 2, "project:a b;id": 1, "global": 3}
        ),
        list_sessions=evidence.ListSessionsResponse(sessions=coverages),
        list_disputes=validation.ListDisputesResponse(disputes=[validation.Dispute(id=7, reason="`id`")]),
    )
    connect_to(monkeypatch, scripted)
    return scripted


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str) -> str:
    """Return what the program gives a shell for a line, its last word not yet finished."""
    words = line.split(" ")
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    for name, value in {**variables, "_SIDECAR_COMPLETE": f"complete_{shell}"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    with pytest.raises(SystemExit) as ended:
        command()
    assert not ended.value.code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sidecar why mem", [A, B]),
        ("sidecar restore ", [A, B]),
        ("sidecar relate mem_x caused_by mem_01J8ZQ5", [B]),
        ("sidecar remember text --supersedes mem_01J8ZQ4", [A]),
        ("sidecar list --namespace ", ["global", "shop"]),
        ("sidecar recall deploy -n sh", ["shop"]),
        ("sidecar files -p ", ["shop"]),
        ("sidecar sessions ", ["0b0e7a54"]),
        ("sidecar resolve ", ["7"]),
        ("sidecar resolve 7 re", ["retire"]),
        ("sidecar list --type go", ["golden_rule", "gotcha"]),
        ("sidecar connect c", ["claude-code", "codex", "cursor"]),
        ("sidecar judge", ["judge", "judge-eval"]),
        ("sidecar activity ", ["add"]),
    ],
)
def test_words_are_completed(
    sidecar: Answering,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    offered: list[str],
) -> None:
    """Commands, what an option may be, and what the sidecar has at this moment."""
    assert completed(line, monkeypatch, capsys, "bash").split() == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_nothing_offered_is_acted_on(
    sidecar: Answering, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    """Zsh evaluates what it is offered, twice: a memory must not run a command when somebody presses a key."""
    printed = completed("sidecar why ", monkeypatch, capsys, shell)
    told = printed.replace("_arguments '*: :((", "").replace("))'", "")
    assert A in told
    assert "touch /tmp/x" in told
    assert not set(told) & set("\\$`'[];|!&{}*?()")
    assert len(told.splitlines()) == 2, "each offer is one line"
    assert "$" not in completed("sidecar sessions ", monkeypatch, capsys, shell)


@pytest.mark.parametrize("error", [SidecarNotRunningError("/data"), DeadlineError("ListMemories", 1)])
def test_without_an_answer_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """A key was pressed, no question asked; and a key must not start a process."""
    asked: list[tuple[Path | None, object]] = []

    def connect(home: Path | None = None, *, start: bool) -> object:
        asked.append((home, start))
        raise error

    monkeypatch.setattr(Sidecar, "connect", connect)
    assert completed("sidecar --home /elsewhere why ", monkeypatch, capsys, "bash").strip() == ""
    assert completed("sidecar list -n ", monkeypatch, capsys, "bash").split() == ["global"]
    assert completed("sidecar get --home /other mem", monkeypatch, capsys, "bash").strip() == ""
    assert asked == [(Path("/elsewhere"), False), (None, False), (Path("/other"), False)]
