"""Which project a command means, and that it says so; against a scripted sidecar."""

from pathlib import Path

import pytest

from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import values
from sidecar.cli.entry import run
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to


def command(*arguments: str) -> int:
    """Run one command in this process."""
    return run(arguments, serve=lambda arguments: 0)


@pytest.fixture
def sidecar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedSidecar:
    """Give a sidecar that has memories, but none that is asked for, and a working directory named `shop`."""
    scripted = ScriptedSidecar(
        remember=service.RememberResponse(memory_id="mem_1"),
        recall=service.RecallResponse(),
        list_memories=service.ListMemoriesResponse(),
        count_memories=service.CountMemoriesResponse(total=3),
    )
    connect_to(monkeypatch, scripted)
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    return scripted


@pytest.mark.parametrize(
    ("arguments", "told"), [((), "project:shop"), (("-n", "other"), "project:other"), (("-n", "global"), "global")]
)
def test_remember_says_where_it_was_stored(
    sidecar: ScriptedSidecar, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    """The id alone stays on stdout, for scripts."""
    assert command("remember", "text", *arguments) == 0
    captured = capsys.readouterr()
    assert captured.out == "mem_1\n"
    assert captured.err == f"Stored in {told}.\n"
    assert sidecar.requests[0].namespace == (told if arguments else "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [((), "in project:shop or global."), (("-n", "other"), "in project:other."), (("-n", "*"), "in any namespace.")],
)
def test_nothing_found_says_where(
    sidecar: ScriptedSidecar, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    """Whoever is in another folder than they think can see it."""
    for name in (("recall", "x"), ("list",)):
        assert command(*name, *arguments) == 0
        assert told in capsys.readouterr().err


def test_bare_name_is_that_of_a_project() -> None:
    """What has a colon is left as it is, so that the sidecar can refuse it."""
    typed = ("shop", "a/b", "project:shop", "global", "*", "", "projct:shop")
    meant = ("project:shop", "project:a/b", "project:shop", "global", "*", "", "projct:shop")
    assert tuple(map(values.namespace, typed)) == meant
