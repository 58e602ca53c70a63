"""The overview in a real browser: the same figures as the RPC, live, in both themes, on a phone and by keyboard."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from sidecar.web.rendering import count, percent
from tests.e2e.running import running_sidecar
from tests.web.browser import DESKTOP_WIDTH, PHONE_WIDTH, Theme, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit
from tests.web.raw_http import Door
from tests.web.seeding import DAYS, PROJECT

_TILES = ".tile[id^=metric-]"
_SERIES_SHOWN = {
    "chart-recalls": ("recalls", "empty_recalls"),
    "chart-memories": ("surfaced", "used"),
    "chart-verdicts": ("judged", "relevant"),
    "chart-captured": ("captured",),
}
_CLIENT_FIELDS = ("answered", "recalls", "known", "cannot_record", "unknown", "shown", "judged", "used")


def figures_of(sidecar: Sidecar, days: int) -> insights.ExportMetricsResponse:
    return sidecar.export_metrics(insights.ExportMetricsRequest(days=days))


@pytest.mark.parametrize("days", [7, 30])
def test_every_figure_is_that_of_the_rpc(page: Page, seeded_sidecar: SeededSidecar, days: int) -> None:
    """Rates with what they rest on, counts by day, and clients: read from the page and asked over gRPC."""
    page.get_by_role("link", name=f"{days} days").click()
    page.wait_for_url(f"**days={days}")
    answer = figures_of(seeded_sidecar.sidecar, days)
    assert len(answer.metrics) == page.locator(_TILES).count()
    for metric in answer.metrics:
        tile = page.locator(f"#metric-{metric.name}")
        value = metric.value if metric.HasField("value") else None
        expected = count(value) if metric.name == "useful_recalls" else percent(value)
        expect(tile.locator(".value")).to_have_text(expected)
        expect(tile.locator(".numerator")).to_have_text(count(metric.numerator))
        expect(tile.locator(".denominator")).to_have_text(count(metric.denominator))
        expect(tile.locator(".sentence")).to_contain_text(re.compile(re.escape(metric.label), re.IGNORECASE))
        assert tile.locator(".mark").count() == (metric.name == answer.headline)
    series = {each.name: list(each.values) for each in answer.series}
    for chart, names in _SERIES_SHOWN.items():
        rows = page.locator(f"#{chart} tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        )
        assert rows[0][0] == answer.first_day
        assert [[int(cell) for cell in row[1:]] for row in rows] == [
            list(values) for values in zip(*(series[name] for name in names), strict=True)
        ]
    assert {name for names in _SERIES_SHOWN.values() for name in names} == series.keys()


def test_coverage_by_client_is_that_of_the_rpc(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """Each client and channel with what was counted; what is unknown is told and not taken for nothing."""
    clients = figures_of(seeded_sidecar.sidecar, 30).clients
    rows = page.locator("#clients tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent.trim().replace(/\\s+/g, ' ')))"
    )
    assert len(rows) == len(clients) == 4
    for row, client in zip(rows, clients, strict=True):
        assert row[0] == client.client.removesuffix("-hooks")
        assert row[1] == ("hook" if client.client.endswith("-hooks") else "transcript")
        told = dict(zip(_CLIENT_FIELDS, row[2:], strict=True))
        expected_known = "–"
        if client.HasField("coverage"):
            expected_known = f"{client.known} of {client.recalls} ({percent(client.coverage)})"
        assert told.pop("known") == expected_known
        assert told == {name: str(getattr(client, name)) for name in told}
    assert sum(client.unknown for client in clients) > 0
    assert sum(client.cannot_record for client in clients) > 0


def test_the_history_of_days_is_drawn(page: Page) -> None:
    """Each chart has a canvas with more than one colour on it, and its numbers as a table."""
    expect(page.locator(".chart canvas")).to_have_count(4)
    colours = page.locator("#chart-recalls canvas").evaluate(
        "canvas => new Set(new Uint32Array("
        "canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"
    )
    assert colours > 2
    page.locator("#chart-recalls summary").click()
    expect(page.locator("#chart-recalls table")).to_be_visible()
    days_with_recalls = page.locator("#chart-recalls tbody tr").filter(
        has_not=page.locator("td:first-of-type", has_text="0")
    )
    assert days_with_recalls.count() >= DAYS - 1


def test_figures_change_without_a_reload_and_without_losing_the_place(
    page: Page, seeded_sidecar: SeededSidecar
) -> None:
    """A recall elsewhere shows here within seconds; what was opened stays open, and the chart follows."""
    total = page.locator("#chart-recalls .key-1 b")
    before = int(total.inner_text())
    page.locator("#chart-recalls summary").click()
    page.evaluate("window.isSamePage = true")
    context = CallContext(client="codex", session="live", project=PROJECT)
    seeded_sidecar.sidecar.recall(memory.RecallRequest(query="how do we deploy the API", context=context))
    expect(total).to_have_text(str(before + 1), timeout=15_000)
    expect(page.locator("#chart-recalls table")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(4)
    assert page.evaluate("window.isSamePage")


def test_what_a_page_asks_by_itself_is_told_apart(page: Page) -> None:
    """Only the first request after somebody was there counts as use, or an open page would keep the dashboard up."""
    asked = []
    for _ in range(2):
        with page.expect_request("**/figures?*", timeout=15_000) as request:
            pass
        asked.append(request.value.headers.get("sidecar-live"))
    assert asked[-1] == "unattended"


@pytest.mark.parametrize(
    ("theme", "width"), [("light", DESKTOP_WIDTH), ("dark", DESKTOP_WIDTH), ("light", PHONE_WIDTH)]
)
def test_it_can_be_used_by_everybody(visit: Visit, theme: Theme, width: int) -> None:
    """No finding of axe in either theme, nor on a phone, where nothing is wider than the screen."""
    with visit(theme=theme, width=width) as page:
        for summary in page.locator("summary").all():
            summary.click()
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        assert not scrolls_sideways(page)


def test_the_keyboard_reaches_everything(page: Page) -> None:
    """First the way past the navigation, then the navigation, the days, and the charts' numbers."""
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="7 days")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**days=7")
    page.locator("#chart-recalls summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#chart-recalls table")).to_be_visible()


def test_the_chosen_theme_stays(page: Page) -> None:
    """Chosen once, it holds on the next page and in the next session of the same browser."""
    switch = page.get_by_role("button", name="Theme:")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch.click()
    expect(switch).to_have_text(re.compile("light"))
    switch.click()
    expect(switch).to_have_text(re.compile("dark"))
    dark = page.evaluate(ground)
    assert dark != light
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(switch).to_have_text(re.compile("dark"))
    assert page.evaluate(ground) == dark


def test_the_address_holds_no_token(page: Page) -> None:
    """A link is left at once; neither the address nor the history leads back to it."""
    assert "token" not in page.url
    page.go_back()
    assert "token" not in page.url


@pytest.fixture(scope="module")
def empty_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("empty"), embedder="none") as running:
        yield running


def test_without_verdicts_the_weaker_figure_leads(empty_sidecar: Sidecar) -> None:
    """Below 25 verdicts recurring facts lead and say that they are weaker; where nothing is, no zero is told."""
    door = Door.of(empty_sidecar.open_dashboard().url)
    body = door.ask(f"{door.prefix}/", [door.host, door.log_in()]).body
    assert "0 of 25 verdicts" in body
    assert figures_of(empty_sidecar, 30).headline == "recurring_facts"
    first_tile = body[body.index('<article class="tile') :].partition("</article>")[0]
    assert 'id="metric-recurring_facts"' in first_tile
    assert "go by this" in first_tile
    assert "no memory was surfaced in these days" in first_tile
    assert "0 %" not in body
    assert "Nothing happened in these days" in body


@pytest.mark.parametrize("days", ["0x", "-1", "400", "1e3"])
def test_days_that_cannot_be_are_refused(empty_sidecar: Sidecar, days: str) -> None:
    """In words, with the status of a wrong request."""
    door = Door.of(empty_sidecar.open_dashboard().url)
    answer = door.ask(f"{door.prefix}/?days={days}", [door.host, door.log_in()])
    assert answer.status == 400
    assert "days" in answer.body
    assert "whole number" in answer.body
