"""What other sites, other programs and old links get from a real dashboard: nothing."""

import re
from collections.abc import Iterator

import pytest

from sidecar.client import Sidecar
from sidecar.web.pages import all_pages
from tests.e2e.running import running_sidecar
from tests.web.raw_http import SAME_ORIGIN, Answer, Door, Headers

SAMPLE_SEGMENT = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home"), embedder="none") as running:
        yield running


@pytest.fixture(scope="module")
def door(sidecar: Sidecar) -> Door:
    return Door.of(sidecar.open_dashboard().url)


@pytest.fixture(scope="module")
def cookie(sidecar: Sidecar) -> tuple[str, str]:
    """Of a session that is open."""
    return Door.of(sidecar.open_dashboard().url).log_in()


def routes(door: Door) -> list[tuple[str, str]]:
    """Every address there is, with its method."""
    found = [("GET", f"{door.prefix}/open"), ("GET", f"{door.prefix}/static/dashboard.css")]
    for page in all_pages():
        for route in page.routes:
            path = "/".join(part for part in (page.path, route.path) if part)
            method = "POST" if route.is_action else "GET"
            found.append((method, f"{door.prefix}/{re.sub(r'{[^}]+}', SAMPLE_SEGMENT, path)}"))
    return found


def hostile(port: int) -> list[list[tuple[str, str]]]:
    """Forty sets of headers that are not those of a page of ours."""
    own, own_origin = f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"
    hosts: list[list[tuple[str, str]]] = [
        [("Host", name)]
        for name in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            "localhost",
            f"127.0.0.1:{port + 1}",
            f"0.0.0.0:{port}",
            f"[::1]:{port}",
            f"127.0.0.1.evil.example:{port}",
            f"{own}.evil.example",
            f"user@{own}",
        )
    ]
    hosts += [[("Host", own), ("Host", "evil.example")], [("X-Forwarded-Host", own)]]
    origins = [
        [("Origin", "http://evil.example")],
        [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "http://evil.example"), SAME_ORIGIN],
        [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "none")],
        [("Origin", "null")],
        [("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "null"), ("Sec-Fetch-Site", "same-site")],
        [("Origin", "null"), ("Sec-Fetch-Site", "none")],
        [("Sec-Fetch-Site", "cross-site")],
        [("Sec-Fetch-Site", "same-site")],
        [("Sec-Fetch-Site", "cross-site"), SAME_ORIGIN],
        [("Sec-Fetch-Site", "anything")],
        [("Origin", f"https://{own}"), ("Sec-Fetch-Site", "same-site")],
        [("Origin", f"http://127.0.0.1:{port + 1}"), ("Sec-Fetch-Site", "same-site")],
        [("Origin", f"http://localhost:{port}"), SAME_ORIGIN],
        [("Origin", own_origin), ("Origin", "http://evil.example")],
    ]
    sets = [*hosts, *([*headers, SAME_ORIGIN] for headers in hosts), *([("Host", own), *given] for given in origins)]
    assert len(sets) == 40
    return sets


def is_let_in(answer: Answer) -> bool:
    return answer.status < 400 and answer.status != 0


def test_forty_foreign_requests_get_nothing_on_any_route(door: Door, cookie: tuple[str, str]) -> None:
    """Not a page that has rebound its name to our address, nor one that sends the browser here; cookie or not."""
    let_in = [
        (method, path, headers)
        for headers in hostile(door.port)
        for _, path in routes(door)
        for method in ("GET", "POST")
        if is_let_in(door.ask(path, [*headers, cookie], method=method))
    ]
    assert let_in == []


def test_own_requests_are_answered_on_every_route_that_reads(door: Door, cookie: tuple[str, str]) -> None:
    """The same routes without a foreign header work, so that the refusals above are for those."""
    for method, path in routes(door):
        if method == "GET" and not path.endswith("/open"):
            for headers in ([door.host], [door.host, SAME_ORIGIN], [("Host", f"localhost:{door.port}")]):
                answer = door.ask(path, [*headers, cookie])
                # A page may say that there is no such memory, or ask for more; it is the page that says so.
                assert answer.status in {200, 400, 404}, (path, answer.body)
                assert "<h1>Not shown</h1>" not in answer.body, path


TRICKS = (
    "/x/..{prefix}/",
    "{prefix}/x/../",
    "{prefix}/./",
    "{prefix}//",
    "/{prefix}/",
    "{prefix}/%2e%2e/",
    "{prefix}/%2e/",
    "{prefix}%2f",
    "{prefix}/%66igures",
    "{prefix}/figures%00",
    "{prefix}/figures;x=1",
    "{prefix}\\figures",
    "{prefix}/static/../app.py",
    "{prefix}/static/..%2f..%2fapp.py",
    "{prefix}/static/....//app.py",
    "{prefix}/static/vendor",
    "{prefix}/static/",
    "http://evil.example{prefix}/",
    "http://127.0.0.1{prefix}/",
    "*",
    "/",
    "/figures",
    "/static/dashboard.css",
    "/open",
)


@pytest.mark.parametrize("trick", TRICKS)
def test_no_path_means_two_things(door: Door, cookie: tuple[str, str], trick: str) -> None:
    """An address that another program might read differently than we do is no address of ours."""
    assert not is_let_in(door.ask(trick.format(prefix=door.prefix), [door.host, cookie]))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "QUERY"])
def test_other_methods_are_not_answered(door: Door, cookie: tuple[str, str], method: str) -> None:
    """A preflight gets no permission, and nothing has an effect that nobody thought of."""
    answer = door.ask(f"{door.prefix}/", [door.host, cookie, SAME_ORIGIN], method=method)
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_every_answer_carries_the_headers_that_protect(door: Door, cookie: tuple[str, str]) -> None:
    """Pages, files, refusals of the guard, of the session and of the library alike."""
    answers = [
        door.ask(f"{door.prefix}/", [door.host, cookie]),
        door.ask(f"{door.prefix}/"),
        door.ask(f"{door.prefix}/static/dashboard.js"),
        door.ask(f"{door.prefix}/nothing", [door.host, cookie]),
        door.ask(f"{door.prefix}/", [("Host", "evil.example")]),
        door.ask(f"{door.prefix}/open?token=wrong"),
    ]
    assert [answer.status for answer in answers] == [200, 401, 200, 404, 403, 403]
    for answer in answers:
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_nothing_of_the_store_is_told_without_a_session(sidecar: Sidecar, door: Door) -> None:
    """Neither without a cookie, nor with a wrong one, nor with that of another port's dashboard."""
    for headers in ([door.host], [door.host, ("Cookie", f"sidecar-{door.port}=x")], [door.host, ("Cookie", "sidecar")]):
        for method, path in routes(door):
            if "/static/" not in path:
                assert door.ask(path, headers, method=method).status in {401, 403}


def test_a_link_works_once(sidecar: Sidecar) -> None:
    """Whoever finds it later, in a history or a log, gets nothing."""
    door = Door.of(sidecar.open_dashboard().url)
    first = door.ask(door.link_path)
    assert first.status == 200
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"sidecar-{door.port}=")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", f"path={door.prefix}/"} <= attributes
    again = door.ask(door.link_path)
    assert (again.status, "set-cookie" in again.headers) == (403, False)


def test_a_link_on_another_site_lets_in_only_by_being_followed(sidecar: Sidecar) -> None:
    """A person may click it in a terminal in the browser; a page there may neither fetch nor frame it."""
    door = Door.of(sidecar.open_dashboard().url)
    site = ("Sec-Fetch-Site", "cross-site")
    for mode, kind in (("cors", "empty"), ("no-cors", "image"), ("navigate", "iframe"), ("no-cors", "script")):
        given: Headers = [door.host, site, ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", kind)]
        assert door.ask(door.link_path, given).status == 403
    followed = [door.host, site, ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
    assert door.ask(door.link_path, followed).status == 200
    assert door.ask(f"{door.prefix}/", followed).status == 403


def test_what_is_too_large_is_refused(door: Door, cookie: tuple[str, str]) -> None:
    """Before it is read, whether or not its size is told."""
    given = [door.host, cookie, SAME_ORIGIN]
    assert door.ask(f"{door.prefix}/", [*given, ("Content-Length", "9999999")], method="POST").status == 413
    assert door.ask(f"{door.prefix}/?x={'y' * 20_000}", given).status == 400
    assert door.ask(f"{door.prefix}/", [*given, ("X", "y" * 900_000)]).status in {0, 400}


def test_the_dashboard_listens_on_this_machine_alone(sidecar: Sidecar, door: Door) -> None:
    """Not on any address that another machine could reach."""
    import psutil

    process = psutil.Process(sidecar.get_status().pid)
    listening = [found.laddr for found in process.net_connections("inet") if found.status == psutil.CONN_LISTEN]
    assert [(address.ip, address.port) for address in listening] == [("127.0.0.1", door.port)]
