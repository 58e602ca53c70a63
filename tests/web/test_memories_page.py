"""The memories page: found as an agent would, decided on in place, and inert whatever a memory says."""

from datetime import UTC, datetime
from typing import Final

from playwright.sync_api import Page, expect

from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import memory_service_pb2 as memories
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import MemoryState, Relation
from tests.web.browser import PHONE_WIDTH, go, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit
from tests.web.seeding import EXCHANGES, play

CONTRADICTS: Final = Relation.RELATION_CONTRADICTS

PAYLOADS = (
    "<script>alert({0})</script>",
    "<img src=x onerror=alert({0})>",
    "'\"><svg onload=alert({0})>",
    "javascript:alert({0})",
    "{{{{ 7 * {0} }}}} {{% raw %}}",
    "<a href='javascript:alert({0})'>click</a>",
    "</textarea></title><iframe srcdoc='<script>alert({0})</script>'>",
    "<div hx-get='/x' hx-trigger='load' hx-on:click='alert({0})'>go</div>",
    "<style>@import 'http://127.0.0.1:9/{0}'</style>",
    "<form action='http://127.0.0.1:9/'><button formaction='javascript:alert({0})'>ok</button></form>",
)


def test_search_finds_what_recall_finds(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """The same memories in the same order as the RPC gives, and looking counts as no recall."""
    query = "deploying the API"
    request = memories.RecallRequest(query=query, n_results=25, namespace="*", internal=True)
    expected = [found.memory.id for found in seeded_sidecar.sidecar.recall(request).memories]
    go(page, "Memories")
    page.get_by_label("Search", exact=True).fill(query)
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**q=deploying**")
    assert page.locator("#memory-list article .id").all_inner_texts() == expected


def test_a_memory_is_forgotten_and_comes_back(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """From the list to the memory, forget, undo: the sidecar agrees at each step."""
    sidecar = seeded_sidecar.sidecar
    memory_id = sidecar.remember(memories.RememberRequest(content="Gangways are checked by two people.")).memory_id
    go(page, "Memories")
    page.get_by_role("link", name=memory_id).click()
    page.get_by_role("heading", level=1, name="Memory", exact=True).wait_for()
    page.get_by_role("button", name="Forget").click()
    toast = page.locator(".toast", has_text="Forgotten")
    toast.wait_for()
    get = memories.GetMemoryRequest(memory_id=memory_id)
    assert sidecar.get_memory(get).memory.state == MemoryState.MEMORY_STATE_FORGOTTEN
    toast.get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="Restored").wait_for()
    assert sidecar.get_memory(get).memory.state == MemoryState.MEMORY_STATE_ACTIVE


def test_a_challenge_is_made_with_its_reason(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """The memory is disputed at once, and the page says so."""
    sidecar = seeded_sidecar.sidecar
    memory_id = sidecar.remember(
        memories.RememberRequest(content="The lounge radio is tuned to channel nine.")
    ).memory_id
    go(page, "Memories")
    page.get_by_role("link", name=memory_id).click()
    page.get_by_text("It misled somebody").click()
    page.get_by_label("What is wrong with it?").fill("Channel nine is closed.")
    page.get_by_role("button", name="Challenge it").click()
    page.locator("#memory .badge", has_text="disputed").wait_for()


def test_a_search_keeps_to_the_state_that_is_chosen(page: Page) -> None:
    """Superseded ones alone, where they are asked for; an active one does not stand in for a forgotten one."""
    go(page, "Memories")
    page.goto(f"{page.url}?q=ticket+queue&state=superseded")
    badges = page.locator("#memory-list article .badge", has_text="superseded")
    expect(badges).to_have_count(page.locator("#memory-list article").count())
    page.goto(page.url.replace("superseded", "forgotten"))
    expect(page.locator("#memory-list article")).to_have_count(0)


def test_whatever_a_memory_says_is_text(visit: Visit, seeded_sidecar: SeededSidecar) -> None:
    """A hundred payloads in contents and metadata, some in reasons and as sessions, run nothing on any page."""
    sidecar = seeded_sidecar.sidecar
    ids = []
    for number in range(100):
        text = f"{PAYLOADS[number % len(PAYLOADS)].format(number)} number {number}"
        request = memories.RememberRequest(content=text, namespace="project:inert")
        request.metadata.update({"note": text, text[:40]: "name"})
        ids.append(sidecar.remember(request).memory_id)
    for number, payload in enumerate(PAYLOADS):
        text = payload.format(number)
        sidecar.challenge_memory(validation.ChallengeMemoryRequest(memory_id=ids[number], reason=text, evidence=text))
        sidecar.relate(graph.RelateRequest(source_id=ids[number], target_id=ids[number + 1], relation=CONTRADICTS))
        play(sidecar, EXCHANGES[0], client="codex", session=text, at=datetime.now(UTC))
    with visit() as page:
        go(page, "Memories")
        address = page.url
        go(page, "Review")
        expect(page.locator("#items article.memory").first).to_be_visible()
        go(page, "Graph")
        page.locator("#graph[data-drawn]").wait_for()
        go(page, "Sessions")
        for link in [each.get_attribute("href") for each in page.locator("#session-list th a").all()[: len(PAYLOADS)]]:
            page.goto(f"{address.split('/memories')[0].rpartition('/')[0]}{link}")
            page.get_by_role("heading", level=1, name="Session").wait_for()
        for cursor in range(4):
            if cursor == 0:
                page.goto(f"{address}?namespace=project:inert")
            else:
                page.get_by_role("link", name="Next page").click()
            expect(page.locator("#memory-list article").nth(24)).to_contain_text(f"number {75 - 25 * cursor}")
        for memory_id in ids[: len(PAYLOADS)]:
            page.goto(f"{address}/{memory_id}?q=%3Cscript%3Ealert(1)%3C/script%3E")
            assert page.locator("#memory .content").inner_text().startswith(("<", "'", "javascript", "{"))
        page.goto(f"{address}?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&namespace=project:inert")
        page.get_by_role("heading", level=1, name="Memories").wait_for()


def test_it_fits_a_phone(visit: Visit) -> None:
    """Nothing is wider than the window."""
    with visit(theme="dark", width=PHONE_WIDTH) as page:
        go(page, "Memories")
        assert not scrolls_sideways(page)
        page.locator("article.memory a.id").first.click()
        page.get_by_role("heading", level=1, name="Memory", exact=True).wait_for()
        assert not scrolls_sideways(page)
