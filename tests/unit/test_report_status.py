"""What counts as a problem in a status, and how it is worded."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from sidecar.adapters.brute_force import BruteForceVectorIndex
from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.evidence import RecallCalled, Shown, ShownState, ToolAnswered
from sidecar.domain.judge_jobs import DueRule
from sidecar.errors import EmbedderUnavailableError
from sidecar.ports import Embedder
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.judge_queue import JudgeQueue, JudgeStatus
from sidecar.use_cases.report_status import ChildStatus, ReportStatus, Status
from sidecar.use_cases.semantic_index import SemanticIndex, SemanticState
from tests.store_builders import OWNER, SetClock, batch, event, new_memory


def broken() -> Embedder:
    """Fail as a model does that is not installed."""
    raise EmbedderUnavailableError("no model is installed")


async def status_after(load: Callable[[], Embedder] | None) -> Status:
    """Return the status two minutes after a memory was stored that no model could embed."""
    clock = SetClock()
    store = InMemoryStore(clock=clock)
    semantic = SemanticIndex(
        store=store, load_embedder=load, new_index=BruteForceVectorIndex, snapshots=None, cache_size=8
    )
    await store.add(new_memory("a text"))
    clock.advance(timedelta(minutes=2))
    await semantic.load()
    report = ReportStatus(
        store=store,
        browse=Browse(store=store, evidence=store),
        semantic=semantic,
        watcher=lambda: ChildStatus("off"),
        counters=dict,
        clock=clock,
    )
    status = await report.run(OWNER)
    semantic.abort()
    semantic.close()
    return status


async def test_model_switched_off_on_purpose_is_no_problem() -> None:
    """Who chose words alone is not told so for ever; nor is the queue that waits for nothing."""
    status = await status_after(None)
    assert status.semantic.state is SemanticState.OFF
    assert status.jobs.pending == 1
    assert status.problems == ()


async def test_model_that_is_missing_is_a_problem_told_once() -> None:
    """The reason stands there without being introduced twice; one memory is not many."""
    status = await status_after(broken)
    off, backlog = status.problems
    assert off.count("cannot be used") == 1
    assert backlog.startswith("1 memory still to be embedded")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_reason_passed_on_is_not_introduced_again(times: int) -> None:
    """A later call fails for what the loading failed for."""
    message = "no model is installed"
    for _ in range(times):
        message = EmbedderUnavailableError(message).message
    assert message == "the embedding model cannot be used: no model is installed"


async def test_verdicts_that_were_given_up_are_a_problem_with_a_remedy() -> None:
    """Use is not counted there, and nobody would know."""
    clock = SetClock()
    store = InMemoryStore(clock=clock)
    memory_id = (await store.add(new_memory("a text"))).memory_id
    shown = Shown(ShownState.IDS, (memory_id,))
    events = (event(RecallCalled("c", "recall")), event(ToolAnswered("c", shown, "")))
    await store.apply_batch(OWNER, batch(*events), at=clock.now())
    clock.advance(timedelta(hours=1))
    (job,) = await store.claim_judge_jobs(DueRule(timedelta(), timedelta(minutes=1)), now=clock.now(), limit=1)
    await store.fail_judge_job(job, reason="ValueError", next_try_at=None)
    semantic = SemanticIndex(
        store=store, load_embedder=None, new_index=BruteForceVectorIndex, snapshots=None, cache_size=8
    )
    report = ReportStatus(
        store=store,
        browse=Browse(store=store, evidence=store),
        semantic=semantic,
        watcher=lambda: ChildStatus("off"),
        counters=dict,
        clock=clock,
        judge=JudgeQueue(store=store, status=lambda: JudgeStatus("local-2")).run,
    )
    status = await report.run(OWNER)
    assert [problem for problem in status.problems if "judge" in problem] == [
        "1 verdict was given up, so that use is not counted there; `sidecar judge --retry` tries again"
    ]
    assert (status.judge.status.name, status.judge.counts.parked, status.judge.parked[0].reason) == (
        "local-2",
        1,
        "ValueError",
    )
