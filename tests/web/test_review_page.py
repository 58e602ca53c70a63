"""The review page: decisions are made in place, and what they hide comes back."""

from playwright.sync_api import Page

from sidecar.api.v1 import memory_service_pb2 as memories
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.api.v1.memory_pb2 import MemoryState
from sidecar.client import Sidecar
from tests.web.browser import PHONE_WIDTH, go, scrolls_sideways
from tests.web.conftest import SeededSidecar, Visit


def disputed(sidecar: Sidecar, content: str) -> str:
    """Store a memory and challenge it; return its id."""
    memory_id = sidecar.remember(memories.RememberRequest(content=content)).memory_id
    sidecar.challenge_memory(validation.ChallengeMemoryRequest(memory_id=memory_id, reason="It was wrong twice."))
    return memory_id


def open_disputes(sidecar: Sidecar, memory_id: str) -> int:
    return len(sidecar.list_disputes(validation.ListDisputesRequest(memory_id=memory_id)).disputes)


def test_a_dispute_ends_where_it_is_shown(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """One click keeps the memory; the card goes, and the sidecar knows."""
    sidecar = seeded_sidecar.sidecar
    memory_id = disputed(sidecar, "The pier clocks are set by the harbour master's office.")
    go(page, "Review")
    card = page.locator("article.memory", has_text="The pier clocks")
    assert card.get_by_text("It was wrong twice.").is_visible()
    card.get_by_role("button", name="It holds").click()
    page.locator(".toast", has_text="Kept").wait_for()
    card.wait_for(state="detached")
    assert open_disputes(sidecar, memory_id) == 0


def test_what_is_forgotten_comes_back_by_undo(page: Page, seeded_sidecar: SeededSidecar) -> None:
    """The toast's Undo restores the memory."""
    sidecar = seeded_sidecar.sidecar
    memory_id = disputed(sidecar, "Deck lamps are switched by a relay behind panel seven.")
    go(page, "Review")
    page.locator("article.memory", has_text="Deck lamps").get_by_role("button", name="Forget it").click()
    toast = page.locator(".toast", has_text="Forgotten")
    toast.wait_for()
    forgotten = sidecar.get_memory(memories.GetMemoryRequest(memory_id=memory_id)).memory
    assert forgotten.state != MemoryState.MEMORY_STATE_ACTIVE
    toast.get_by_role("button", name="Undo").click()
    page.locator(".toast", has_text="Restored").wait_for()
    restored = sidecar.get_memory(memories.GetMemoryRequest(memory_id=memory_id)).memory
    assert restored.state == MemoryState.MEMORY_STATE_ACTIVE


def test_contradictions_come_by_themselves(page: Page) -> None:
    """What a look at all memories finds is fetched after the page."""
    go(page, "Review")
    page.get_by_role("heading", name="Contradictions").wait_for()
    assert page.get_by_role("button", name="This one holds").count() >= 2


def test_it_fits_a_phone(visit: Visit) -> None:
    """Nothing is wider than the window."""
    with visit(theme="dark", width=PHONE_WIDTH) as page:
        go(page, "Review")
        assert not scrolls_sideways(page)
