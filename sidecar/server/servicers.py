"""Builds the servicers from the parts that the composition root picked."""

from dataclasses import dataclass

import grpc.aio

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.api.v1 import (
    activity_service_pb2_grpc,
    admin_service_pb2_grpc,
    evidence_service_pb2_grpc,
    graph_service_pb2_grpc,
    insights_service_pb2_grpc,
    maintenance_service_pb2_grpc,
    memory_service_pb2_grpc,
    validation_service_pb2_grpc,
)
from sidecar.config import Settings
from sidecar.domain.context import CharacterTokenCounter
from sidecar.ports import Clock, Redactor
from sidecar.rpc.activity_service import ActivityServicer
from sidecar.rpc.admin_service import AdminServicer
from sidecar.rpc.evidence_service import EvidenceServicer
from sidecar.rpc.graph_service import GraphServicer
from sidecar.rpc.insights_service import InsightsServicer
from sidecar.rpc.maintenance_service import MaintenanceServicer
from sidecar.rpc.memory_service import MemoryServicer
from sidecar.rpc.validation_service import ValidationServicer
from sidecar.server import policies
from sidecar.server.judging import JudgingSetUp
from sidecar.use_cases.activity import FileActivity
from sidecar.use_cases.ask_llm import AskLlm
from sidecar.use_cases.auto_link import AutoLink
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.build_context import BuildContext
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.challenge import ChallengeMemory
from sidecar.use_cases.compare_by_llm import CompareByLlm
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.contradictions import DetectContradictions
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.exchange import Export, Import
from sidecar.use_cases.expand import Expand
from sidecar.use_cases.explain_memory import ExplainMemory
from sidecar.use_cases.export_metrics import ExportMetrics
from sidecar.use_cases.forget import Forget
from sidecar.use_cases.health import AnalyzeHealth
from sidecar.use_cases.inspect_graph import InspectGraph
from sidecar.use_cases.judge_queue import JudgeQueue
from sidecar.use_cases.look_after import LookAfter
from sidecar.use_cases.near_memories import NearMemories
from sidecar.use_cases.offer_context import OfferContext
from sidecar.use_cases.recall import Recall
from sidecar.use_cases.relate import Relate
from sidecar.use_cases.remember import Remember
from sidecar.use_cases.replay_recalls import ReplayRecalls
from sidecar.use_cases.semantic_index import SemanticIndex
from sidecar.use_cases.supersession import CheckSupersedes
from sidecar.use_cases.validate import Validate


@dataclass(frozen=True)
class Parts:
    """What the use cases are built on."""

    settings: Settings
    store: SqliteStore
    catalog: MemoryCatalog
    semantic: SemanticIndex
    redactor: Redactor
    completion: Completion
    clock: Clock
    llm: AskLlm | None = None


@dataclass(frozen=True)
class Servicers:
    """One for each service of the contract."""

    memory: MemoryServicer
    graph: GraphServicer
    validation: ValidationServicer
    activity: ActivityServicer
    maintenance: MaintenanceServicer
    evidence: EvidenceServicer
    insights: InsightsServicer
    admin: AdminServicer

    def add_to(self, server: grpc.aio.Server) -> None:
        """Add them all."""
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(self.memory, server)
        graph_service_pb2_grpc.add_GraphServiceServicer_to_server(self.graph, server)
        validation_service_pb2_grpc.add_ValidationServiceServicer_to_server(self.validation, server)
        activity_service_pb2_grpc.add_ActivityServiceServicer_to_server(self.activity, server)
        maintenance_service_pb2_grpc.add_MaintenanceServiceServicer_to_server(self.maintenance, server)
        evidence_service_pb2_grpc.add_EvidenceServiceServicer_to_server(self.evidence, server)
        insights_service_pb2_grpc.add_InsightsServiceServicer_to_server(self.insights, server)
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(self.admin, server)


def build_recall(parts: Parts) -> Recall:
    """Return what finds memories."""
    return Recall(
        store=parts.store,
        catalog=parts.catalog,
        semantic=parts.semantic,
        clock=parts.clock,
        policy=policies.recall_policy(parts.settings),
        expand=Expand(store=parts.store, graph=parts.store, policy=policies.expand_policy(parts.settings)),
        validation=parts.store,
    )


def build_forget(parts: Parts, *, recall: Recall) -> Forget:
    """Return what forgets memories and restores them."""
    return Forget(
        store=parts.store,
        catalog=parts.catalog,
        semantic=parts.semantic,
        recall=recall,
        completion=parts.completion,
        similarity_floor=parts.settings.forget_similarity_floor,
        golden_from=parts.settings.golden_confidence,
    )


def build_memory_servicer(
    parts: Parts, *, browse: Browse, embedding: EmbedMemories, auto_link: AutoLink
) -> MemoryServicer:
    """Return what stores, finds and forgets memories."""
    store, catalog, semantic = parts.store, parts.catalog, parts.semantic
    remember = Remember(
        store=store,
        catalog=catalog,
        semantic=semantic,
        embedding=embedding,
        redactor=parts.redactor,
        completion=parts.completion,
        clock=parts.clock,
        auto_link=auto_link,
        defaults=policies.remember_defaults(parts.settings),
    )
    recall = build_recall(parts)
    forget = build_forget(parts, recall=recall)
    build_context = BuildContext(
        store=store,
        validation=store,
        recall=recall,
        clock=parts.clock,
        policy=policies.context_policy(parts.settings),
        counter=CharacterTokenCounter(parts.settings.characters_per_token),
    )
    contexts = OfferContext(store=store, build_context=build_context, clock=parts.clock)
    return MemoryServicer(remember=remember, recall=recall, browse=browse, forget=forget, contexts=contexts)


def build_relate(parts: Parts) -> Relate:
    """Return what relates memories."""
    return Relate(
        graph=parts.store, catalog=parts.catalog, completion=parts.completion, weight=parts.settings.relate_weight
    )


def build_inspect_graph(parts: Parts) -> InspectGraph:
    """Return what looks at relations."""
    return InspectGraph(store=parts.store, graph=parts.store, defaults=policies.graph_defaults(parts.settings))


def build_graph_servicer(parts: Parts) -> GraphServicer:
    """Return what relates memories."""
    return GraphServicer(relate=build_relate(parts), inspect=build_inspect_graph(parts))


def build_contradictions(parts: Parts) -> DetectContradictions:
    """Return what finds memories that contradict one."""
    return DetectContradictions(
        store=parts.store,
        graph=parts.store,
        near=_near(parts),
        threshold=parts.settings.contradiction_threshold,
        by_llm=CompareByLlm(parts.llm if parts.settings.llm_contradictions else None),
    )


def build_supersession(parts: Parts) -> CheckSupersedes:
    """Return what replaces memories by those that proved better."""
    return CheckSupersedes(
        store=parts.store,
        graph=parts.store,
        validation=parts.store,
        near=_near(parts),
        catalog=parts.catalog,
        completion=parts.completion,
        policy=policies.supersession_policy(parts.settings),
        llm=parts.llm if parts.settings.llm_veto else None,
    )


def build_validate(parts: Parts) -> Validate:
    """Return what takes reports."""
    return Validate(
        validation=parts.store,
        catalog=parts.catalog,
        redactor=parts.redactor,
        completion=parts.completion,
        clock=parts.clock,
        policy=policies.validation_policy(parts.settings),
    )


def build_challenge(parts: Parts) -> ChallengeMemory:
    """Return what takes disputes."""
    return ChallengeMemory(
        validation=parts.store,
        catalog=parts.catalog,
        redactor=parts.redactor,
        completion=parts.completion,
        clock=parts.clock,
        listed_disputes=parts.settings.listed_disputes,
    )


def build_validation_servicer(parts: Parts) -> ValidationServicer:
    """Return what takes reports and disputes, and compares memories."""
    return ValidationServicer(
        contradictions=build_contradictions(parts),
        supersession=build_supersession(parts),
        validate=build_validate(parts),
        challenge=build_challenge(parts),
    )


def _near(parts: Parts) -> NearMemories:
    return NearMemories(
        store=parts.store, catalog=parts.catalog, semantic=parts.semantic, limit=parts.settings.compared_memories
    )


def build_activity_servicer(parts: Parts) -> ActivityServicer:
    """Return what keeps file activity."""
    return ActivityServicer(
        activity=FileActivity(
            activity=parts.store,
            redactor=parts.redactor,
            clock=parts.clock,
            policy=policies.activity_policy(parts.settings),
        )
    )


def build_health(parts: Parts) -> AnalyzeHealth:
    """Return what finds memories that need a look."""
    return AnalyzeHealth(maintenance=parts.store, clock=parts.clock, defaults=policies.health_defaults(parts.settings))


def build_look_after(parts: Parts) -> LookAfter:
    """Return what copies and checks the store."""
    return LookAfter(store=parts.store, maintenance=parts.store, semantic=parts.semantic)


def build_maintenance_servicer(parts: Parts, *, embedding: EmbedMemories) -> MaintenanceServicer:
    """Return what looks after the store."""
    return MaintenanceServicer(
        health=build_health(parts),
        export=Export(maintenance=parts.store),
        import_=Import(
            maintenance=parts.store,
            catalog=parts.catalog,
            embedding=embedding,
            redactor=parts.redactor,
            completion=parts.completion,
        ),
        look_after=build_look_after(parts),
    )


def build_metrics(parts: Parts) -> ExportMetrics:
    """Return what makes figures of use."""
    return ExportMetrics(insights=parts.store, clock=parts.clock, days=parts.settings.metric_days)


def build_explain(parts: Parts) -> ExplainMemory:
    """Return what tells why a memory ranks as it does."""
    return ExplainMemory(store=parts.store, judging=parts.store, recall=build_recall(parts), clock=parts.clock)


def build_insights_servicer(parts: Parts, *, judging: JudgingSetUp) -> InsightsServicer:
    """Return what tells of use."""
    return InsightsServicer(
        metrics=build_metrics(parts),
        explain=build_explain(parts),
        hygiene=judging.hygiene,
        queue=JudgeQueue(store=parts.store, status=judging.status),
        replay=ReplayRecalls(insights=parts.store, clock=parts.clock),
    )
