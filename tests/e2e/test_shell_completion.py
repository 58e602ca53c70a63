"""Completion in real shells, against a real sidecar: what is offered, and that a memory cannot act through it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from sidecar.api.v1 import memory_service_pb2 as pb
from tests.e2e.running import running_sidecar

needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program `sidecar`, and one that a memory would like to have touched."""
    folder = tmp_path_factory.mktemp("shells")
    program = folder / "sidecar"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sidecar "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def memory_id(place: Path) -> Iterator[str]:
    """A running sidecar with one memory, whose text is written for shells."""
    with running_sidecar(place / "home", embedder="none") as sidecar:
        mark = place / "touched"
        text = f"Deploys go out on Tuesday \\$(touch {mark}) `touch {mark}` $(touch {mark}) '; touch {mark}; '"
        yield sidecar.remember(pb.RememberRequest(content=text, namespace="project:shop")).memory_id


@pytest.fixture
def variables(place: Path, tmp_path: Path) -> dict[str, str]:
    """The variables of a shell whose user has none of the usual files."""
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "SIDECAR_HOME": str(place / "home"), "TERM": "dumb", "LANG": "C.UTF-8"}


def run(shell: str, script: str, variables: dict[str, str]) -> str:
    """Run a script and return what it printed."""
    command = [shell, "-c", script]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=60)
    return ended.stdout


def test_bash_completes(memory_id: str, variables: dict[str, str], place: Path) -> None:
    """With the function that the installed script defines."""
    script = run("bash", "sidecar --show-completion; true", variables)
    asking = "COMP_WORDS=(sidecar why mem); COMP_CWORD=2; _sidecar_completion sidecar; echo ${COMPREPLY[@]}"
    assert run("bash", f"{script}\n{asking}", variables).split() == [memory_id]
    assert not (place / "touched").exists()


@needs_zsh
def test_zsh_completes_and_evaluates_no_memory(memory_id: str, variables: dict[str, str], place: Path) -> None:
    """Typed into a real line editor, which shows the texts beside the ids."""
    (script := Path(variables["HOME"]) / "_sidecar").write_text(
        run("zsh", "sidecar --show-completion; true", variables)
    )
    child = pexpect.spawn(
        "zsh", ["-f", "-i"], env={**variables, "TERM": "xterm"}, encoding="utf-8", timeout=60, dimensions=(24, 120)
    )
    try:
        child.sendline(f"PS1='ready> '; autoload -Uz compinit; compinit -D -u; source {script}; echo begun-$((1+1))")
        child.expect("begun-2")
        child.send("sidecar why mem\t")
        child.expect_exact(memory_id)
    finally:
        child.close(force=True)
    assert not (place / "touched").exists()


@needs_fish
def test_fish_completes(memory_id: str, variables: dict[str, str], place: Path) -> None:
    """With the text beside the id."""
    script = run("fish", "sidecar --show-completion; true", variables)
    offered = run("fish", f"{script}\ncomplete -C 'sidecar why mem'", variables)
    assert offered.startswith(f"{memory_id}\tDeploys go out on Tuesday")
    assert not (place / "touched").exists()
