"""Between messages and domain values, field by field. What a message cannot mean becomes a typed error here."""

from collections.abc import Iterable
from datetime import UTC, datetime

from google.protobuf import json_format, struct_pb2, timestamp_pb2

from sidecar.api.v1 import memory_pb2, memory_service_pb2
from sidecar.domain.edge_paths import RelationChoice
from sidecar.domain.evidence import UsageEvent
from sidecar.domain.memory import (
    Caller,
    Link,
    Memory,
    MemoryType,
)
from sidecar.domain.recall import RecallAnswer, RecalledMemory
from sidecar.domain.redaction import Redaction
from sidecar.domain.store_values import Edge, Forgetting
from sidecar.errors import InvalidInputError
from sidecar.rpc import enums
from sidecar.use_cases.auto_link import AutoLinkWish
from sidecar.use_cases.browse import MemoryDetail, Selection
from sidecar.use_cases.build_context import Briefing, ContextQuery
from sidecar.use_cases.expand import ExpandQuery
from sidecar.use_cases.forget import ForgetQuery
from sidecar.use_cases.recall import RecallQuery
from sidecar.use_cases.remember import RememberAnswer, RememberQuery


def caller(owner: str, context: memory_pb2.CallContext) -> Caller:
    """Return who calls; the owner comes from the credentials."""
    return Caller(owner=owner, client=context.client, session=context.session, project=context.project)


def owner_only(owner: str) -> Caller:
    """Return a caller of whom only the owner matters."""
    return Caller(owner=owner)


def timestamp(moment: datetime) -> timestamp_pb2.Timestamp:
    """Return a moment, UTC and aware, as a message."""
    message = timestamp_pb2.Timestamp()
    message.FromDatetime(moment)
    return message


def moment(message: timestamp_pb2.Timestamp, *, field_name: str) -> datetime:
    """Return a message as a moment, UTC and aware.

    Raises:
        InvalidInputError: If it is outside the years 1 to 9999.
    """
    try:
        return message.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError(field_name, message.seconds, "a time between the years 1 and 9999") from None


def remember_query(request: memory_service_pb2.RememberRequest) -> RememberQuery:
    """Return what to store."""
    return RememberQuery(
        content=request.content,
        memory_type=enums.memory_type(request.memory_type),
        namespace=request.namespace,
        importance=request.importance if request.HasField("importance") else None,
        confidence=request.confidence if request.HasField("confidence") else None,
        metadata=metadata(request.metadata),
        links=tuple(_link(link) for link in request.links),
        provenance=enums.provenance(request.provenance),
        request_key=request.request_key,
        is_waiting_for_index=request.wait_for_index,
        auto_link=AutoLinkWish(
            is_wanted=request.auto_link if request.HasField("auto_link") else None,
            threshold=request.similarity_threshold if request.HasField("similarity_threshold") else None,
            max_links=request.max_auto_links if request.HasField("max_auto_links") else None,
            is_refined=request.use_llm_classification if request.HasField("use_llm_classification") else None,
        ),
    )


def metadata(message: struct_pb2.Struct) -> dict[str, object]:
    """Return what a caller attached; empty if nothing was.

    Raises:
        InvalidInputError: If JSON cannot hold it.
    """
    try:
        return dict(json_format.MessageToDict(message))
    except (json_format.Error, ValueError, RecursionError):
        raise InvalidInputError("metadata", "that", "an object that JSON can hold: no NaN, no infinity") from None


def remember_response(answer: RememberAnswer) -> memory_service_pb2.RememberResponse:
    """Return what became of it."""
    return memory_service_pb2.RememberResponse(
        memory_id=answer.outcome.memory_id,
        deduplicated=answer.outcome.is_deduplicated,
        content_hash=answer.outcome.content_hash,
        indexed=answer.is_indexed,
        auto_relationships=[edge(made) for made in answer.auto_edges],
        similar_existing=[
            memory_service_pb2.SimilarMemory(memory_id=memory_id, similarity=cosine)
            for memory_id, cosine in answer.similar
        ],
        redactions=_redactions(answer.redactions),
    )


def recall_query(request: memory_service_pb2.RecallRequest) -> RecallQuery:
    """Return what is wanted."""
    return RecallQuery(
        text=request.query,
        limit=request.n_results,
        namespace=request.namespace,
        types=_memory_types(request.memory_types),
        min_importance=request.min_importance,
        is_including_superseded=request.include_superseded,
        is_internal=request.internal,
        request_key=request.request_key,
        created_after=_optional_moment(request, "min_create_time"),
        created_before=_optional_moment(request, "max_create_time"),
        expand=_expand_query(request) if request.include_related else None,
    )


def recall_response(answer: RecallAnswer, *, is_explained: bool) -> memory_service_pb2.RecallResponse:
    """Return what was recalled."""
    similarities = [r.parts.similarity for r in answer.memories if r.parts.similarity is not None]
    return memory_service_pb2.RecallResponse(
        recall_id=answer.recall_id,
        memories=[_recalled(recalled, is_explained=is_explained) for recalled in answer.memories],
        total=len(answer.memories),
        total_matched=answer.total_matched,
        mean_similarity=sum(similarities) / len(similarities) if similarities else None,
        expanded=[
            memory_service_pb2.ExpandedMemory(
                memory=memory(found.memory),
                relevance_score=found.relevance,
                hop_distance=found.distance,
                path=found.path,
                explanation=found.explanation,
            )
            for found in answer.expanded
        ],
        degraded=[
            memory_service_pb2.DegradedLeg(leg=enums.LEG_NUMBERS[part.leg], reason=part.reason)
            for part in answer.degraded
        ],
    )


def memory(value: Memory) -> memory_pb2.Memory:
    """Return a memory as a message."""
    message = memory_pb2.Memory(
        id=value.id,
        namespace=value.namespace,
        type=enums.TYPE_NUMBERS[value.type],
        content=value.content,
        content_hash=value.content_hash,
        importance=value.importance,
        confidence=value.confidence,
        state=enums.STATE_NUMBERS[value.state],
        provenance=enums.PROVENANCE_NUMBERS[value.provenance],
        superseded_by=value.superseded_by,
        create_time=timestamp(value.created_at),
        access_time=timestamp(value.accessed_at),
        access_count=value.access_count,
        client=value.client,
        session=value.session,
    )
    if value.metadata:
        json_format.ParseDict(dict(value.metadata), message.metadata)
    return message


def edge(value: Edge) -> memory_pb2.Edge:
    """Return a relation as a message."""
    return memory_pb2.Edge(
        id=value.id,
        source_id=value.source_id,
        target_id=value.target_id,
        relation=enums.RELATION_NUMBERS[value.relation],
        weight=value.weight,
        create_time=timestamp(value.created_at),
    )


def get_response(detail: MemoryDetail) -> memory_service_pb2.GetMemoryResponse:
    """Return one memory with what is known of it."""
    return memory_service_pb2.GetMemoryResponse(
        memory=memory(detail.memory),
        edges=[edge(stored) for stored in detail.edges],
        usage_events=[_usage_event(event) for event in detail.usage_events],
        reinforcement=detail.reinforcement,
    )


def selection(message: memory_service_pb2.MemoryFilter) -> Selection:
    """Return which memories are meant."""
    return Selection(
        namespace=message.namespace,
        types=_memory_types(message.memory_types),
        min_importance=message.min_importance,
        states=tuple(dict.fromkeys(enums.memory_state(number) for number in message.states)),
        created_after=_optional_moment(message, "min_create_time"),
        created_before=_optional_moment(message, "max_create_time"),
    )


def forget_query(request: memory_service_pb2.ForgetMemoriesRequest) -> ForgetQuery:
    """Return what to forget."""
    return ForgetQuery(
        memory_id=request.memory_id,
        query=request.query,
        input=request.input,
        namespace=request.namespace,
        limit=request.n_results,
        similarity_floor=request.similarity_floor if request.HasField("similarity_floor") else None,
        is_confirmed=request.confirm if request.HasField("confirm") else True,
        is_forced=request.force,
        is_purge=request.purge,
        request_key=request.request_key,
    )


def forget_response(
    outcome: Forgetting, *, is_preview: bool, is_purge: bool
) -> memory_service_pb2.ForgetMemoriesResponse:
    """Return what was forgotten."""
    is_shown = is_preview or not is_purge
    return memory_service_pb2.ForgetMemoriesResponse(
        deleted_ids=outcome.forgotten_ids,
        skipped=[
            memory_service_pb2.SkippedMemory(memory_id=memory_id, reason=reason)
            for memory_id, reason in outcome.skipped
        ],
        count=len(outcome.forgotten_ids),
        preview=is_preview,
        memories=[memory(m) for m in outcome.memories] if is_shown else [],
    )


def context_query(request: memory_service_pb2.BuildContextRequest) -> ContextQuery:
    """Return what a context is wanted for."""
    return ContextQuery(
        text=request.query,
        kind=enums.context_kind(request.kind),
        token_budget=request.token_budget,
        max_golden_rules=request.max_golden_rules,
        min_relevance=request.min_relevance if request.HasField("min_relevance") else None,
        is_internal=request.internal,
        is_once_per_session=request.once_per_session,
        request_key=request.request_key,
        awaits_acknowledgement=request.await_acknowledgement,
        is_only_repeated=request.only_unacknowledged,
    )


def context_response(briefing: Briefing) -> memory_service_pb2.BuildContextResponse:
    """Return a context."""
    built = briefing.context
    return memory_service_pb2.BuildContextResponse(
        markdown=built.markdown,
        memory_ids=built.memory_ids,
        tokens_used=built.tokens_used,
        dropped=len(built.dropped_ids),
        overflow=len(built.overflow_ids),
        recall_id=briefing.recall_id,
    )


def _expand_query(request: memory_service_pb2.RecallRequest) -> ExpandQuery:
    return ExpandQuery(
        max_depth=request.max_depth,
        max_expanded=request.max_expanded,
        decay=request.decay_factor if request.HasField("decay_factor") else None,
        relations=RelationChoice(
            enums.relations(request.include_edge_types, field_name="include_edge_types"),
            enums.relations(request.exclude_edge_types, field_name="exclude_edge_types"),
        ),
    )


def _recalled(recalled: RecalledMemory, *, is_explained: bool) -> memory_service_pb2.RecalledMemory:
    parts = recalled.parts
    message = memory_service_pb2.RecalledMemory(
        memory=memory(recalled.memory),
        similarity=parts.similarity,
        score=parts.score,
        disputed=recalled.is_disputed,
    )
    if is_explained:
        message.score_parts.CopyFrom(
            memory_service_pb2.ScoreParts(
                word_score=parts.word_score,
                relevance=parts.relevance,
                type_weight=parts.type_weight,
                age_factor=parts.age_factor,
                provenance_factor=parts.provenance_factor,
                reinforcement=parts.reinforcement,
            )
        )
    return message


def _link(message: memory_pb2.Link) -> Link:
    return Link(relation=enums.relation(message.relation, field_name="links.relation"), memory_id=message.memory_id)


def _usage_event(event: UsageEvent) -> memory_service_pb2.UsageEvent:
    return memory_service_pb2.UsageEvent(
        memory_id=event.memory_id,
        credited_id=event.credited_id,
        source=enums.SOURCE_NUMBERS[event.source] if event.source else memory_service_pb2.USAGE_SOURCE_UNSPECIFIED,
        valence=enums.VALENCE_NUMBERS[event.valence],
        weight=event.weight,
        client=event.client,
        session=event.session,
        recall_id=event.recall_id,
        weak=event.is_weak,
        create_time=timestamp(event.at),
    )


def _redactions(found: Iterable[Redaction]) -> list[memory_pb2.Redaction]:
    return [memory_pb2.Redaction(rule=redaction.rule, count=redaction.count) for redaction in found]


def _memory_types(numbers: Iterable[int]) -> tuple[MemoryType, ...]:
    found = (enums.memory_type(number) for number in numbers)
    return tuple(dict.fromkeys(memory_type for memory_type in found if memory_type is not None))


def _optional_moment(
    message: memory_service_pb2.RecallRequest | memory_service_pb2.MemoryFilter, field_name: str
) -> datetime | None:
    if not message.HasField(field_name):  # type: ignore[arg-type]
        return None
    found: timestamp_pb2.Timestamp = getattr(message, field_name)
    return moment(found, field_name=field_name)
