"""The sessions page: what each session was shown, what came of it, and what cannot be known."""

from playwright.sync_api import Page

from sidecar.api.v1 import evidence_service_pb2 as evidence
from tests.web.browser import PHONE_WIDTH, go, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit


def test_one_looks_from_the_list_into_a_session(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """A click leads to the session's recalls; the memories it was shown are those that GetSession tells."""
    go(page, "Sessions")
    sidecar = seeded_sidecar.sidecar
    listed = sidecar.list_sessions(evidence.ListSessionsRequest(limit=50)).sessions
    used = next(each for each in listed if each.used and not each.thread.agent_id)
    row = page.locator("#session-list tbody tr", has=page.get_by_role("link", name=used.thread.session, exact=True))
    assert row.locator(".badge.good").inner_text() == str(used.used)
    row.get_by_role("link").click()
    page.get_by_role("heading", level=1, name="Session").wait_for()
    request = evidence.GetSessionRequest(client=used.thread.client, session=used.thread.session)
    shown = [m for recall in sidecar.get_session(request).recalls for m in recall.shown.ids.memory_ids]
    assert page.locator("article.memory .id").all_inner_texts() == shown
    assert page.locator("article.memory .badge.good", has_text="used").count() >= 1


def test_what_is_not_known_is_told_with_its_reason(page: Page) -> None:
    """A session of which something could not be read says what and why."""
    go(page, "Sessions")
    page.get_by_role("navigation", name="Clients").get_by_role("link", name="codex").click()
    page.wait_for_url("**client=codex**")
    assert {"codex"} == set(page.locator("#session-list tbody td:nth-child(2)").all_inner_texts())
    assert page.locator("#session-list .badge.warn").count() >= 1


def test_a_session_that_is_not_there_is_told(page: Page) -> None:
    """A made-up address gives a page that says so."""
    go(page, "Sessions")
    page.goto(page.url.split("?")[0] + "/one?client=codex&session=%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    page.get_by_role("alert").get_by_text("no such session").wait_for()


def test_it_fits_a_phone(visit: Visit) -> None:
    """Nothing is wider than the window."""
    with visit(theme="dark", width=PHONE_WIDTH) as page:
        go(page, "Sessions")
        assert not scrolls_sideways(page)
