"""Exit codes are stable, documented, and the same for every way to meet an error."""

import re
from pathlib import Path

import pytest

from sidecar.cli.exit_codes import MEANINGS, ExitCode, epilog, exit_code_of
from sidecar.client.launch import ALREADY_RUNNING_EXIT_CODE
from sidecar.errors import SidecarError, all_errors
from sidecar.server.exit_codes import EXIT_FAILED
from sidecar.server.exit_codes import exit_code_of as serve_exit_code_of

_DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.mark.parametrize("cls", all_errors(), ids=lambda cls: cls.__name__)
def test_every_error_has_an_exit_code(cls: type[SidecarError]) -> None:
    """An error never ends a command with success, and `serve` gives the same code where it gives one of its own."""
    error = cls.from_wire("what is wrong", {})
    code = exit_code_of(error)
    assert code not in (ExitCode.OK, ExitCode.INTERRUPTED)
    assert serve_exit_code_of(error) in (code, EXIT_FAILED)


def test_clients_recognise_a_sidecar_that_was_there_before() -> None:
    """Clients that start one race for the folder and must tell losing the race from failing."""
    assert int(ExitCode.ALREADY_RUNNING) == ALREADY_RUNNING_EXIT_CODE


def test_exit_codes_are_documented() -> None:
    """Help and document list every code with the same meaning."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", _DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert {ExitCode(int(code)): meaning for code, meaning in rows} == MEANINGS
    assert set(MEANINGS) == set(ExitCode)
    assert all(meaning in epilog() for meaning in MEANINGS.values())
