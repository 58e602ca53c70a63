"""The flags of `sidecar serve`."""

import io
import sys

import pytest

from sidecar.client.build import Build
from sidecar.client.endpoint import Endpoint, Holder
from sidecar.config import SETTINGS
from sidecar.server.command import main, tell_ready


class Terminal(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_person_is_told_that_it_is_ready(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> None:
    """Silence looks like a hang in a terminal; the log of a start holds what went wrong only."""
    stderr = Terminal(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    tell_ready(Endpoint(Holder(123, 4.5, "ab12"), "unix:/run/x/sock", "s3cret", Build("1.2", 1), 1024))
    told = "sidecar: ready, process 123; Ctrl-C stops it\n"
    assert stderr.getvalue() == (told if is_terminal else "")


def test_help_of_serve_shows_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """Each setting has a flag, and a percent sign in a description does no harm."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert [setting.flag for setting in SETTINGS if setting.flag not in printed] == []
    assert "%%" not in printed
