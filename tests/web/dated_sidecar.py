"""A real sidecar whose clock is set back by as many seconds as a file says, for a history of days."""

import sys
from datetime import datetime, timedelta
from pathlib import Path

from sidecar.adapters.system_clock import SystemClock
from sidecar.client.launch import Launch
from sidecar.server import compose

ROOT = Path(__file__).parents[2]
OFFSET_FILE = "clock-set-back-s"


def dated_launch(home: Path) -> Launch:
    """Return how to start such a sidecar."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.web.dated_sidecar import main; main()"
    return Launch(command=(sys.executable, "-I", "-c", start, "serve", "--home", str(home)))


def set_back(home: Path, *, days: float) -> None:
    """Set the clock of a running sidecar; it takes it at once."""
    fresh = home / f"{OFFSET_FILE}.new"
    fresh.write_text(str(days * 86_400.0), encoding="utf-8")
    fresh.replace(home / OFFSET_FILE)


class DatedClock(SystemClock):
    """See `sidecar.ports.Clock`."""

    path: Path

    def now(self) -> datetime:
        """Return the system's time less what the file says."""
        try:
            behind_s = float(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            behind_s = 0.0
        return super().now() - timedelta(seconds=behind_s)


def main() -> None:
    """Serve as `sidecar serve --home HOME` does."""
    from sidecar.server.command import main as serve

    arguments = sys.argv[sys.argv.index("serve") + 1 :]
    DatedClock.path = Path(arguments[arguments.index("--home") + 1]) / OFFSET_FILE
    # The one place where the clock is picked.
    vars(compose)["SystemClock"] = DatedClock
    sys.exit(serve(arguments))
