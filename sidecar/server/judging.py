"""Sets up what works on the evidence of use behind the calls: the judge's queue, and hygiene."""

from dataclasses import dataclass

from sidecar.adapters.embedders.lazy import LazyEmbedder, SharedLoad
from sidecar.adapters.judges.local import LocalJudge
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.config import Settings
from sidecar.domain.metrics_text import metrics_text
from sidecar.ports import Clock, Judge
from sidecar.rpc.credentials import LOCAL_OWNER
from sidecar.server import policies
from sidecar.server.background import SupervisedTask
from sidecar.server.language_model import LlmSetUp, pick_judge
from sidecar.server.metrics_endpoint import MetricsEndpoint
from sidecar.use_cases.export_metrics import ExportMetrics
from sidecar.use_cases.judge_queue import JudgeStatus
from sidecar.use_cases.judge_usefulness import JudgeUsefulness
from sidecar.use_cases.run_hygiene import RunHygiene


@dataclass(frozen=True)
class JudgingSetUp:
    """What works on the evidence. `judging`: None if no session is judged."""

    judging: JudgeUsefulness | None
    hygiene: RunHygiene
    endpoint: MetricsEndpoint | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the judge cannot work now, for a person."""
        return (self.judging.problem,) if self.judging is not None and self.judging.problem else ()

    @property
    def counters(self) -> dict[str, int]:
        """What was judged, and what went wrong."""
        judging = self.judging
        return {} if judging is None else {"judged": judging.judged, "judge_failures": judging.failures}

    def status(self) -> JudgeStatus:
        """Return who judges."""
        return JudgeStatus() if self.judging is None else self.judging.status

    def tasks(self) -> tuple[SupervisedTask, ...]:
        """Return what is to run."""
        tasks = [
            SupervisedTask("hygiene", self.hygiene.run, consequence="multipliers rest on evidence that is too old")
        ]
        if self.judging is not None:
            tasks.append(SupervisedTask("judge-usefulness", self.judging.run, consequence="usefulness is not judged"))
        if self.endpoint is not None:
            tasks.append(SupervisedTask("metrics", self.endpoint.run, consequence="Prometheus cannot read the figures"))
        return tuple(tasks)


def set_up_judging(
    settings: Settings, *, store: SqliteStore, llm: LlmSetUp, default_model: SharedLoad, clock: Clock
) -> JudgingSetUp:
    """Return what works on the evidence; nothing is started.

    Args:
        default_model: Loads all-MiniLM-L6-v2, at first use.
    """
    hygiene = RunHygiene(
        store=store, judging=store, insights=store, clock=clock, policy=policies.hygiene_policy(settings)
    )
    judge = build_judge(settings, llm=llm, default_model=default_model, clock=clock) if settings.judging else None
    judging = None
    if judge is not None:
        judging = JudgeUsefulness(store=store, judge=judge, clock=clock, policy=policies.judge_policy(settings))
    return JudgingSetUp(judging, hygiene, _metrics_endpoint(settings, store=store, clock=clock))


def _metrics_endpoint(settings: Settings, *, store: SqliteStore, clock: Clock) -> MetricsEndpoint | None:
    if not settings.prometheus_port:
        return None
    export = ExportMetrics(insights=store, clock=clock, days=settings.metric_days)

    async def text() -> str:
        return metrics_text(await export.run(LOCAL_OWNER))

    return MetricsEndpoint(port=settings.prometheus_port, text=text)


def build_judge(settings: Settings, *, llm: LlmSetUp, default_model: SharedLoad, clock: Clock) -> Judge | None:
    """Return the judge that the settings name; None if it is the language model and that cannot be asked.

    What waits for a judge then waits on, and `GetJudgeQueue` tells so.
    """

    def local() -> Judge:
        # Its weights were fitted on this model's figures, whichever embedder recalls are made with.
        return LocalJudge(LazyEmbedder(default_model))

    return pick_judge(settings, llm, local=local, clock=clock)
