"""What tests of pages share: one sidecar with two weeks of history, one browser, and pages that must behave."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar, stop
from tests.e2e.running import write_settings
from tests.web.browser import DESKTOP_WIDTH, Faults, Theme, launched, visiting
from tests.web.dated_sidecar import dated_launch, set_back
from tests.web.seeding import PROJECT, Seeded, seed

SETTINGS: dict[str, str | float | bool] = {"judge_idle_s": 0.1}


@dataclass(frozen=True)
class SeededSidecar:
    """A running sidecar, and what is in it. Tests may add to it; what they change they make themselves."""

    sidecar: Sidecar
    home: Path
    seeded: Seeded


@contextmanager
def dated_sidecar(home: Path) -> Iterator[Sidecar]:
    """Give a client of a real, empty sidecar whose clock can be set back."""
    write_settings(home, **SETTINGS)
    context = CallContext(client="test", project=PROJECT)
    try:
        with Sidecar.connect(home, context=context, launch=dated_launch(home)) as sidecar:
            yield sidecar
    finally:
        stop(home, force=True)


@pytest.fixture(scope="session")
def seeded_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededSidecar]:
    """A sidecar with two weeks of history."""
    home = tmp_path_factory.mktemp("dashboard")
    with dated_sidecar(home) as sidecar:
        yield SeededSidecar(sidecar, home, seed(sidecar, lambda days: set_back(home, days=days)))


# Not for the session: Playwright keeps an event loop running in this thread, beside which no asynchronous test works.
# So a module that uses it has none, and the next module finds the thread free again.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    with launched() as running:
        yield running


Visit = Callable[..., AbstractContextManager[Page]]


@pytest.fixture
def visit(browser: Browser, seeded_sidecar: SeededSidecar) -> Iterator[Visit]:
    """Opens the dashboard in a fresh profile: `with visit(theme="dark", width=360) as page`. Faults fail the test."""
    faults = Faults()
    yield partial(visiting, browser, seeded_sidecar.sidecar, faults=faults)
    assert faults.found == []


@pytest.fixture
def page(visit: Visit) -> Iterator[Page]:
    """The dashboard's first page in a wide, light window."""
    with visit(theme="light", width=DESKTOP_WIDTH) as opened:
        yield opened


__all__ = ["SeededSidecar", "Theme", "Visit"]
