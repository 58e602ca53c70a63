"""The health page: what waits, what runs, and the check on demand."""

from playwright.sync_api import Page

from sidecar.api.v1 import admin_service_pb2 as admin
from tests.web.browser import PHONE_WIDTH, go, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit


def test_it_tells_what_the_status_tells(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """The number of memories is that of GetStatus, each part is named, and every client that was read has its row."""
    go(page, "Health")
    status = seeded_sidecar.sidecar.get_status(admin.GetStatusRequest())
    tile = page.locator(".tile", has=page.get_by_role("heading", name="Memories", exact=True))
    assert tile.locator(".value").inner_text() == str(status.memory_count)
    assert page.locator("#part-judge .badge").inner_text().startswith("local")
    assert page.locator("#part-self").get_by_text(status.version, exact=True).is_visible()
    assert {"claude-code", "codex", "cursor"} <= set(page.locator("#clients tbody th").all_inner_texts())


def test_the_check_is_made_when_asked_for(page: Page) -> None:
    """A click checks database and index and tells the result in place."""
    go(page, "Health")
    page.get_by_role("button", name="Check now").click()
    page.locator("#integrity-result .notice.good").wait_for()
    assert "Sound." in page.locator("#integrity-result").inner_text()


def test_it_fits_a_phone(visit: Visit) -> None:
    """Nothing is wider than the window."""
    with visit(theme="dark", width=PHONE_WIDTH) as page:
        go(page, "Health")
        assert not scrolls_sideways(page)
