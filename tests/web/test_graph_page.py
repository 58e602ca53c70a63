"""The graph page: drawn, filtered, chosen from, and the same as the table beside it."""

from playwright.sync_api import Page

from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import memory_service_pb2 as memories
from sidecar.api.v1.memory_pb2 import Relation
from tests.web.browser import PHONE_WIDTH, go, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit


def test_what_is_drawn_is_what_is_listed(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """A relation made by the RPC is in the picture and in the table; a click on its node leads to the memory."""
    sidecar = seeded_sidecar.sidecar
    texts = ("Buoys are painted in May.", "Paint is ordered in <b>March</b>.")
    source, target = (sidecar.remember(memories.RememberRequest(content=text)).memory_id for text in texts)
    request = graph.RelateRequest(source_id=source, target_id=target, relation=Relation.RELATION_DERIVED_FROM)
    sidecar.relate(request)
    go(page, "Graph")
    page.locator("#graph[data-drawn]").wait_for()
    assert page.evaluate("sidecarGraph.nodes().length") == int(page.locator("#graph").get_attribute("data-drawn") or 0)
    assert page.locator("#relations tbody tr").count() == page.evaluate("sidecarGraph.edges().length")
    assert page.locator("#relations a", has_text="Buoys are painted").count() == 1
    page.evaluate(f"sidecarGraph.getElementById('{target}').emit('tap')")
    assert "<b>March</b>" in page.locator("#chosen").inner_text()
    page.get_by_role("link", name="Open the memory").click()
    page.get_by_role("heading", level=1, name="Memory", exact=True).wait_for()
    assert page.url.endswith(target)


def test_relations_are_filtered(page: Page) -> None:
    """A relation that is switched off is not drawn."""
    go(page, "Graph")
    page.locator("#graph[data-drawn]").wait_for()
    drawn = "sidecarGraph.edges().filter((e) => e.data('relation') === 'contradicts' && e.visible()).length"
    assert page.evaluate(drawn) >= 1
    page.get_by_label("contradicts").uncheck()
    # The picture is drawn anew with the next frame.
    page.wait_for_function(f"{drawn} === 0")


def test_it_fits_a_phone(visit: Visit) -> None:
    """Nothing is wider than the window."""
    with visit(theme="dark", width=PHONE_WIDTH) as page:
        go(page, "Graph")
        page.locator("#graph[data-drawn]").wait_for()
        assert not scrolls_sideways(page)
