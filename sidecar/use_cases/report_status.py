"""Tells how the sidecar is: what answers, what waits, what is wrong and what to do about it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sidecar.domain.judge_jobs import JudgeJobCounts
from sidecar.domain.llm import LlmBudget, LlmSpending, LlmStatus
from sidecar.domain.memory import Caller
from sidecar.domain.store_values import JobCounts, ParkedJob, StoreHealth
from sidecar.ports import Clock, MemoryStore
from sidecar.use_cases.browse import Browse, Selection
from sidecar.use_cases.judge_queue import JudgeQueueReport, JudgeStatus
from sidecar.use_cases.semantic_index import SemanticIndex, SemanticState, SemanticStatus

BACKLOG_IS_OLD_S: Final = 60.0
PARKED_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class ChildStatus:
    """How a child process is.

    Attributes:
        state: `running`, `off` or `failed`.
    """

    state: str
    pid: int = 0
    restarts: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """All parts at one moment. Degraded as soon as there is a problem."""

    problems: tuple[str, ...]
    memory_count: int
    jobs: JobCounts
    parked: tuple[ParkedJob, ...]
    semantic: SemanticStatus
    store: StoreHealth
    watcher: ChildStatus
    started_at: datetime
    now: datetime
    counters: dict[str, int]
    llm: LlmStatus
    judge: JudgeQueueReport


async def no_language_model() -> LlmStatus:
    """Return the status of a language model that is off."""
    return LlmStatus(None, LlmBudget(0, 0), LlmSpending())


async def no_judge(owner: str) -> JudgeQueueReport:
    """Return the queue of a judge that is off."""
    del owner
    return JudgeQueueReport(JudgeStatus(), JudgeJobCounts(waiting=0, done=0, parked=0, oldest_at=None), ())


class ReportStatus:
    """Reports status. Reads only, and counts backlog as a problem, not only what is unreachable."""

    def __init__(
        self,
        *,
        store: MemoryStore,
        browse: Browse,
        semantic: SemanticIndex,
        watcher: Callable[[], ChildStatus],
        counters: Callable[[], dict[str, int]],
        clock: Clock,
        problems: Callable[[], Sequence[str]] = tuple,
        llm: Callable[[], Awaitable[LlmStatus]] = no_language_model,
        judge: Callable[[str], Awaitable[JudgeQueueReport]] = no_judge,
    ) -> None:
        """Take what is asked; `problems` are those of the tasks behind it all."""
        self._llm = llm
        self._judge = judge
        self._store = store
        self._browse = browse
        self._semantic = semantic
        self._watcher = watcher
        self._counters = counters
        self._problems = problems
        self._clock = clock
        self._started_at = clock.now()

    async def run(self, owner: str) -> Status:
        """Return how everything is for this owner."""
        counts = await self._browse.count(Caller(owner=owner), Selection(namespace="*"))
        jobs = await self._store.job_counts()
        store = await self._store.health()
        watcher = self._watcher()
        now = self._clock.now()
        parked = await self._store.parked_jobs(limit=PARKED_SHOWN)
        judge = await self._judge(owner)
        return Status(
            problems=(
                *_problems(jobs, store, self._semantic.status, watcher, now),
                *self._problems(),
                *_judge_problems(judge),
            ),
            memory_count=counts.total,
            jobs=jobs,
            parked=tuple(parked),
            semantic=self._semantic.status,
            store=store,
            watcher=watcher,
            started_at=self._started_at,
            now=now,
            llm=await self._llm(),
            judge=judge,
            counters={**self._counters(), **store.counters, **self._semantic.status.counters},
        )


def _problems(
    jobs: JobCounts, store: StoreHealth, semantic: SemanticStatus, watcher: ChildStatus, now: datetime
) -> tuple[str, ...]:
    problems = list(store.problems)
    if semantic.state is SemanticState.OFF and not semantic.is_chosen_off:
        problems.append(f"memories are found by words only: {semantic.problem}")
    if not semantic.is_chosen_off:
        problems += _queue_problems(jobs, now)
    if watcher.problem:
        problems.append(f"transcripts are not read: {watcher.problem}")
    return tuple(problems)


def _queue_problems(jobs: JobCounts, now: datetime) -> list[str]:
    problems = []
    if jobs.parked:
        problems.append(
            f"{_memories(jobs.parked)} could not be embedded and can be found by words only; "
            "`sidecar doctor --retry-parked` tries again"
        )
    if jobs.oldest_at is not None and (now - jobs.oldest_at).total_seconds() > BACKLOG_IS_OLD_S:
        minutes = (now - jobs.oldest_at).total_seconds() / 60
        problems.append(f"{_memories(jobs.pending)} still to be embedded, the oldest for {minutes:.0f} min")
    return problems


def _judge_problems(judge: JudgeQueueReport) -> list[str]:
    parked = judge.counts.parked
    if not parked:
        return []
    verdicts = "1 verdict was" if parked == 1 else f"{parked} verdicts were"
    return [f"{verdicts} given up, so that use is not counted there; `sidecar judge --retry` tries again"]


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"
