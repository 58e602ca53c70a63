"""Every page can be used by everybody: axe finds nothing, in both themes and on a phone."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from sidecar.web.pages import all_pages
from tests.web.browser import DESKTOP_WIDTH, PHONE_WIDTH, Theme, go, scrolls_sideways
from tests.web.conftest import Visit


@pytest.mark.parametrize(
    ("theme", "width"), [("light", DESKTOP_WIDTH), ("dark", DESKTOP_WIDTH), ("light", PHONE_WIDTH)]
)
def test_no_page_shuts_anybody_out(visit: Visit, theme: Theme, width: int) -> None:
    """Nor is any wider than the window; what is folded away is looked at too, and one memory and one session."""
    with visit(theme=theme, width=width) as page:
        found = {}
        for title in [each.title for each in all_pages()]:
            go(page, title)
            page.wait_for_load_state("networkidle")
            found[title] = _findings(page, title)
        go(page, "Memories")
        page.locator("article.memory a.id").first.click()
        page.get_by_role("heading", level=1, name="Memory", exact=True).wait_for()
        found["Memory"] = _findings(page, "Memory")
        go(page, "Sessions")
        page.locator("#session-list th a").first.click()
        page.get_by_role("heading", level=1, name="Session", exact=True).wait_for()
        found["Session"] = _findings(page, "Session")
    assert {title: each for title, each in found.items() if each} == {}


def _findings(page: Page, title: str) -> str:
    for summary in page.locator("summary").all():
        summary.click()
    results = Axe().run(page)
    wide = f"{title} is wider than its window. " if scrolls_sideways(page) else ""
    return wide + (results.generate_report() if results.violations_count else "")
