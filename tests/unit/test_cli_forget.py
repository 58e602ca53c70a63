"""How `sidecar forget` decides what is meant, asks, and ends; against a scripted sidecar."""

import io
import json
import sys

import pytest

from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import values
from sidecar.cli.entry import run
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to

A = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
B = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"


def command(*arguments: str) -> int:
    """Run one command in this process."""
    return run(arguments, serve=lambda arguments: 0)


def memory(memory_id: str = A, content: str = "Redis was chosen over Memcached.") -> pb.Memory:
    """Return a stored decision."""
    return pb.Memory(id=memory_id, type=pb.MEMORY_TYPE_DECISION, namespace="project:shop", content=content)


def forgetting(sidecar_memories: list[pb.Memory]) -> ScriptedSidecar:
    """Return a sidecar that previews these memories, and forgets by id."""

    def answer(request: service.ForgetMemoriesRequest) -> service.ForgetMemoriesResponse:
        if not request.confirm:
            found = [one for one in sidecar_memories if request.memory_id in {"", one.id}]
            ids = [one.id for one in found]
            return service.ForgetMemoriesResponse(deleted_ids=ids, memories=found, preview=True)
        return service.ForgetMemoriesResponse(deleted_ids=[request.memory_id], count=1)

    return ScriptedSidecar(forget_memories=answer)


def test_forgetting_by_words_without_a_terminal_only_previews(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that did not say `--yes` deletes nothing."""
    sidecar = forgetting([memory(A), memory(B, "Another one")])
    connect_to(monkeypatch, sidecar)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert command("forget", "redis") == 0
    captured = capsys.readouterr()
    assert A in captured.out
    assert "--yes" in captured.err
    assert [request.confirm for request in sidecar.requests] == [False]
    assert command("forget", "redis", "--json") == 0
    assert json.loads(capsys.readouterr().out)["preview"] is True
    assert not any(request.confirm for request in sidecar.requests)


def test_forgetting_with_yes_forgets_what_was_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The memories that were previewed are forgotten by id, and the way back is told."""
    sidecar = forgetting([memory(A), memory(B)])
    connect_to(monkeypatch, sidecar)
    assert command("forget", "redis", "--yes") == 0
    assert [request.memory_id for request in sidecar.requests if request.confirm] == [A, B]
    assert f"sidecar restore {B}" in capsys.readouterr().out


def test_purging_one_memory_asks_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be undone is never done on a slip of the finger; a soft forget by id is done at once."""
    sidecar = forgetting([memory(A)])
    connect_to(monkeypatch, sidecar)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert command("forget", A, "--purge") == 0
    assert "cannot be undone" in capsys.readouterr().err
    assert not any(request.confirm for request in sidecar.requests)
    assert command("forget", A) == 0
    assert f"sidecar restore {A}" in capsys.readouterr().out


def test_golden_rule_is_left_alone_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A skipped memory is reported with what would change that."""
    skipped = service.SkippedMemory(memory_id=A, reason="golden_rule")
    connect_to(monkeypatch, ScriptedSidecar(forget_memories=service.ForgetMemoriesResponse(skipped=[skipped])))
    assert command("forget", A) == 8
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[A, B], [f" {A}\n{B} "], [A.lower(), B.lower(), A]])
def test_several_ids_are_each_forgotten(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    """Ids are taken as such however they were pasted, and never searched for."""
    sidecar = forgetting([memory(A), memory(B)])
    connect_to(monkeypatch, sidecar)
    assert command("forget", *arguments) == 0
    assert [request.memory_id for request in sidecar.requests if request.confirm] == [A, B]
    assert not any(request.query or request.input for request in sidecar.requests)


def test_ids_among_words_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Deleting on a guess is worse than asking again."""
    sidecar = forgetting([memory(A)])
    connect_to(monkeypatch, sidecar)
    assert command("forget", A, "and", "redis", "--yes") == 2
    assert "not both" in capsys.readouterr().err
    assert sidecar.requests == []


@pytest.mark.parametrize(
    ("skipped", "code", "told"),
    [([], 7, "No memory is near enough"), ([("golden_rule")], 8, "--force"), ([("already_forgotten")], 8, "already")],
)
def test_nothing_done_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], skipped: list[str], code: int, told: str
) -> None:
    """A script that asked for something to be forgotten must see that it was not."""
    left = [service.SkippedMemory(memory_id=A, reason=reason) for reason in skipped]
    connect_to(monkeypatch, ScriptedSidecar(forget_memories=service.ForgetMemoriesResponse(skipped=left)))
    assert command("forget", "redis") == code
    assert told in capsys.readouterr().err
    assert command("forget", "redis", "--json") == code


def test_typed_ids_become_stored_ones() -> None:
    """Case and white space around an id say nothing; other texts stay, so that the message can name them."""
    assert values.memory_id(f"\t{A.lower()} ") == A
    assert values.memory_id(A.upper()) == A
    assert values.memory_id("mem_nonsense") == "mem_nonsense"
