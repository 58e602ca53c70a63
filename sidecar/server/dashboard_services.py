"""Gives the dashboard its use cases, built as those of the servicers are."""

from dataclasses import dataclass

from sidecar.rpc.admin_service import Identity
from sidecar.server import servicers
from sidecar.server.judging import JudgingSetUp
from sidecar.server.servicers import Parts
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.judge_queue import JudgeQueue
from sidecar.use_cases.report_status import ReportStatus
from sidecar.web.services import About, Services


@dataclass(frozen=True)
class SharedParts:
    """What exists once in a sidecar and is used by its servicers too."""

    browse: Browse
    status: ReportStatus
    evidence: CollectEvidence
    judging: JudgingSetUp
    embedding: EmbedMemories


def build_services(parts: Parts, shared: SharedParts, identity: Identity) -> Services:
    """Return what pages may ask."""
    recall = servicers.build_recall(parts)
    return Services(
        about=About(
            version=identity.version,
            protocol=identity.protocol,
            instance_id=identity.instance_id,
            pid=identity.pid,
            data_folder=identity.data_folder,
        ),
        clock=parts.clock,
        metrics=servicers.build_metrics(parts),
        evidence=shared.evidence,
        status=shared.status,
        browse=shared.browse,
        recall=recall,
        forget=servicers.build_forget(parts, recall=recall),
        explain=servicers.build_explain(parts),
        validate=servicers.build_validate(parts),
        challenge=servicers.build_challenge(parts),
        contradictions=servicers.build_contradictions(parts),
        supersession=servicers.build_supersession(parts),
        relate=servicers.build_relate(parts),
        graph=servicers.build_inspect_graph(parts),
        health=servicers.build_health(parts),
        look_after=servicers.build_look_after(parts),
        hygiene=shared.judging.hygiene,
        judge_queue=JudgeQueue(store=parts.store, status=shared.judging.status),
        retry_parked=shared.embedding.retry_parked,
    )
