"""How the dashboard is opened and closed, and what its sessions and forms take: over HTTP, with a probe page."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.responses import Response

from sidecar.client import Sidecar
from sidecar.errors import MemoryNotFoundError
from sidecar.web.access import LINK_LIFE_S, SESSION_LIFE_S, Access
from sidecar.web.app import Dashboard
from sidecar.web.listener import WebListener, free_port
from sidecar.web.page import Page, PageRoute, Visit
from sidecar.web.services import Services
from tests.e2e.running import running_sidecar
from tests.web.raw_http import SAME_ORIGIN, Answer, Door

FORM = ("Content-Type", "application/x-www-form-urlencoded")
HTMX = ("HX-Request", "true")


class HandClock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Probe:
    """A page whose action counts, refuses or breaks."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def show(self, visit: Visit) -> Response:
        return visit.data({"token": visit.session.csrf_token})

    async def act(self, visit: Visit) -> Response:
        form = await visit.form()
        if form["what"] == "refuse":
            raise MemoryNotFoundError("mem_none")
        if form["what"] == "break":
            raise ValueError("a text that quotes: my secret memory")
        self.done.append(form["what"])
        return visit.data({"done": len(self.done)})

    @property
    def page(self) -> Page:
        routes = (PageRoute("", self.show), PageRoute("act", self.act, is_action=True))
        return Page(name="overview", title="Probe", path="", order=1, icon="", routes=routes)


@asynccontextmanager
async def served(probe: Probe, *, clock: HandClock | None = None, idle_s: float = 60.0) -> AsyncIterator[Dashboard]:
    """Serve the probe alone from this event loop; it asks for no service."""
    bound = free_port()
    access = Access(clock=clock or HandClock())
    services = cast("Services", object())
    dashboard = Dashboard(services, owner="me", port=bound.getsockname()[1], access=access, pages=[probe.page])
    listener = WebListener(dashboard, bound, idle_s=idle_s, note_use=lambda: None)
    await listener.start()
    try:
        yield dashboard
    finally:
        await listener.stop()


async def ask(door: Door, *arguments: Any, **options: Any) -> Answer:
    return await asyncio.to_thread(door.ask, *arguments, **options)


async def test_old_links_and_old_sessions_have_ended() -> None:
    """Two minutes for a link, half a day for a session, whatever is done meanwhile."""
    clock = HandClock()
    async with served(Probe(), clock=clock) as dashboard:
        late = Door.of(dashboard.new_link()[0])
        clock.now_s += LINK_LIFE_S
        assert (await ask(late, late.link_path)).status == 403
        door = Door.of(dashboard.new_link()[0])
        cookie = await asyncio.to_thread(door.log_in)
        clock.now_s += SESSION_LIFE_S - 1
        assert (await ask(door, f"{door.prefix}/", [door.host, cookie])).status == 200
        clock.now_s += 1
        assert (await ask(door, f"{door.prefix}/", [door.host, cookie])).status == 401


async def test_only_a_form_of_the_session_changes_anything() -> None:
    """With cookie, token, our origin and by POST; if one is missing, nothing happens."""
    probe = Probe()
    async with served(probe) as dashboard:
        door = Door.of(dashboard.new_link()[0])
        cookie = await asyncio.to_thread(door.log_in)
        other = await asyncio.to_thread(Door.of(dashboard.new_link()[0]).log_in)
        page = await ask(door, f"{door.prefix}/", [door.host, cookie])
        token = ("X-CSRF-Token", page.body.split('"')[3])
        complete = [door.host, cookie, token, SAME_ORIGIN, FORM]
        own_origin = ("Origin", f"http://127.0.0.1:{door.port}")

        async def act(headers: list[tuple[str, str]], method: str = "POST") -> int:
            return (await ask(door, f"{door.prefix}/act", headers, method=method, body=b"what=it")).status

        assert await act([part for part in complete if part != token]) == 403
        assert await act([*(part for part in complete if part != token), ("X-CSRF-Token", "x")]) == 403
        assert await act([part for part in complete if part != cookie]) == 401
        assert await act([part if part != cookie else other for part in complete]) == 403
        assert await act([part for part in complete if part != SAME_ORIGIN]) == 403
        assert await act([part for part in complete if part != FORM]) == 400
        assert await act([*complete[:-1], ("Content-Type", "text/plain")]) == 400
        assert await act(complete, "GET") == 405
        assert probe.done == []
        assert await act(complete) == 200
        assert await act([own_origin, *(part for part in complete if part != SAME_ORIGIN)]) == 200
        assert await act([("Origin", "null"), *complete]) == 200
        assert probe.done == ["it"] * 3


async def test_errors_are_told_in_place_and_faults_without_their_text() -> None:
    """Ours in their own words at the form that caused them; what nobody foresaw under a number, with no detail."""
    async with served(Probe()) as dashboard:
        door = Door.of(dashboard.new_link()[0])
        cookie = await asyncio.to_thread(door.log_in)
        page = await ask(door, f"{door.prefix}/", [door.host, cookie])
        given = [door.host, cookie, ("X-CSRF-Token", page.body.split('"')[3]), SAME_ORIGIN, FORM, HTMX]
        path = f"{door.prefix}/act"
        refused = await ask(door, path, [*given, ("HX-Source", "form#edit")], method="POST", body=b"what=refuse")
        assert (refused.status, refused.headers["hx-retarget"]) == (404, "#edit-failure")
        assert "mem_none" in refused.body
        notice = await ask(door, path, given, method="POST", body=b"what=refuse")
        assert (notice.status, notice.headers["hx-retarget"]) == (404, "#toasts")
        broken = await ask(door, path, given, method="POST", body=b"what=break")
        assert broken.status == 500
        assert "secret" not in broken.body
        assert "Traceback" not in broken.body
        many = await ask(door, path, given, method="POST", body=b"&".join(b"a=1" for _ in range(200)))
        assert many.status == 400


@contextmanager
def closing_dashboard(home: Path) -> Iterator[Sidecar]:
    with running_sidecar(home, embedder="none", dashboard_idle_s=1.0) as sidecar:
        yield sidecar


def is_listening(door: Door) -> bool:
    try:
        return door.ask(f"{door.prefix}/static/theme.js").status == 200
    except ConnectionRefusedError:
        return False


def test_it_closes_when_nobody_uses_it_and_opens_again(tmp_path: Path) -> None:
    """A page left open asks by itself and keeps nothing awake; the next link opens it anew, elsewhere."""
    with closing_dashboard(tmp_path / "home") as sidecar:
        answer = sidecar.open_dashboard()
        assert answer.idle_stop.ToTimedelta().total_seconds() == 1.0
        door = Door.of(answer.url)
        cookie = door.log_in()
        polls = 0
        deadline = time.monotonic() + 20
        while is_listening(door):
            assert time.monotonic() < deadline
            polled = door.ask(f"{door.prefix}/figures", [door.host, cookie, ("Sidecar-Live", "unattended")])
            polls += polled.status == 200
            time.sleep(0.1)
        assert polls > 3
        again = Door.of(sidecar.open_dashboard().url)
        assert again.prefix != door.prefix
        assert again.ask(f"{again.prefix}/", [again.host, cookie]).status == 401
        assert again.log_in()


def test_links_of_one_dashboard_lead_to_the_same_place(tmp_path: Path) -> None:
    """A second browser does not throw the first one out."""
    with running_sidecar(tmp_path / "home", embedder="none") as sidecar:
        one, two = (Door.of(sidecar.open_dashboard().url) for _ in range(2))
        assert (one.port, one.prefix) == (two.port, two.prefix)
        cookies = [door.log_in() for door in (one, two)]
        assert [one.ask(f"{one.prefix}/", [one.host, cookie]).status for cookie in cookies] == [200, 200]


@pytest.mark.parametrize("count", [40])
def test_many_links_and_sessions_do_not_pile_up(count: int) -> None:
    """The oldest make room, so that nobody can lock the owner out, or fill the memory."""
    access = Access(clock=HandClock())
    links = [access.new_link() for _ in range(count)]
    assert access.follow(links[0]) is None
    sessions = [access.follow(access.new_link()) for _ in range(count)]
    assert sessions[0] is not None
    assert sessions[-1] is not None
    assert access.session(sessions[0].key) is None
    assert access.session(sessions[-1].key) is sessions[-1]
