"""The flags of `sidecar serve`."""

import pytest

from sidecar.config import SETTINGS
from sidecar.server.command import main


def test_help_of_serve_shows_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    """Each setting has a flag, and a percent sign in a description does no harm."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert [setting.flag for setting in SETTINGS if setting.flag not in printed] == []
    assert "%%" not in printed
