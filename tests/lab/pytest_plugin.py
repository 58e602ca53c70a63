"""Fixtures: a scripted model, and both clients. Load with `pytest_plugins = ["tests.lab.pytest_plugin"]`.

Tests of a client that is not installed are skipped; with `LAB_REQUIRE_CLIENTS=1` they fail.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.lab.claude_code import run_claude_code
from tests.lab.client_run import ClientNotInstalledError, ClientRun, ScriptSource, find_client, load_script
from tests.lab.codex import run_codex
from tests.lab.scripted_model import ScriptedModel

REQUIRE_VARIABLE = "LAB_REQUIRE_CLIENTS"


@pytest.fixture
def scripted_model() -> Iterator[Callable[[ScriptSource], ScriptedModel]]:
    """Return a function that serves a script until the test ends."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ScriptedModel(load_script(script)))


@pytest.fixture
def claude_code(tmp_path: Path) -> Callable[..., ClientRun]:
    """Return `run_claude_code` with a home of its own."""
    _require("claude")
    return partial(run_claude_code, home=_new_folder(tmp_path / "claude_code"))


@pytest.fixture
def codex(tmp_path: Path) -> Callable[..., ClientRun]:
    """Return `run_codex` with a home of its own."""
    _require("codex")
    return partial(run_codex, home=_new_folder(tmp_path / "codex"))


def _require(client: str) -> None:
    try:
        find_client(client)
    except ClientNotInstalledError as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            raise
        pytest.skip(str(error))


def _new_folder(path: Path) -> Path:
    path.mkdir()
    return path
