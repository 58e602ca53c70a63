"""What pages may ask. The composition root fills it in; a page knows nothing else of the sidecar."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sidecar.ports import Clock
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.challenge import ChallengeMemory
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.contradictions import DetectContradictions
from sidecar.use_cases.explain_memory import ExplainMemory
from sidecar.use_cases.export_metrics import ExportMetrics
from sidecar.use_cases.forget import Forget
from sidecar.use_cases.health import AnalyzeHealth
from sidecar.use_cases.inspect_graph import InspectGraph
from sidecar.use_cases.judge_queue import JudgeQueue
from sidecar.use_cases.look_after import LookAfter
from sidecar.use_cases.recall import Recall
from sidecar.use_cases.relate import Relate
from sidecar.use_cases.report_status import ReportStatus
from sidecar.use_cases.run_hygiene import RunHygiene
from sidecar.use_cases.supersession import CheckSupersedes
from sidecar.use_cases.validate import Validate


@dataclass(frozen=True, slots=True)
class About:
    """Which sidecar this is."""

    version: str
    protocol: int
    instance_id: str
    pid: int
    data_folder: str


@dataclass(frozen=True)
class Services:
    """One use case for each thing that pages show or do.

    Attributes:
        retry_parked: Has parked embeddings tried again; returns how many.
    """

    about: About
    clock: Clock
    metrics: ExportMetrics
    evidence: CollectEvidence
    status: ReportStatus
    browse: Browse
    recall: Recall
    forget: Forget
    explain: ExplainMemory
    validate: Validate
    challenge: ChallengeMemory
    contradictions: DetectContradictions
    supersession: CheckSupersedes
    relate: Relate
    graph: InspectGraph
    health: AnalyzeHealth
    look_after: LookAfter
    hygiene: RunHygiene
    judge_queue: JudgeQueue
    retry_parked: Callable[[], Awaitable[int]]
