"""The numbers of the contract's enums and the values they stand for. A number that is none of ours is a typed error."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeVar

from sidecar.api.v1 import graph_service_pb2, memory_pb2, memory_service_pb2
from sidecar.domain.context import ContextKind
from sidecar.domain.edge_paths import Direction
from sidecar.domain.evidence import UsageSource, Valence
from sidecar.domain.memory import MemoryState, MemoryType, Provenance, Relation
from sidecar.domain.recall import RecallLeg
from sidecar.domain.store_values import OrderBy
from sidecar.errors import InvalidInputError, UnknownMemoryTypeError, UnknownRelationError

_Value = TypeVar("_Value", bound=StrEnum)


TYPE_NUMBERS: Final[dict[MemoryType, memory_pb2.MemoryType.ValueType]] = {
    value: memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{value.name}") for value in MemoryType
}
STATE_NUMBERS: Final[dict[MemoryState, memory_pb2.MemoryState.ValueType]] = {
    value: memory_pb2.MemoryState.Value(f"MEMORY_STATE_{value.name}") for value in MemoryState
}
PROVENANCE_NUMBERS: Final[dict[Provenance, memory_pb2.Provenance.ValueType]] = {
    value: memory_pb2.Provenance.Value(f"PROVENANCE_{value.name}") for value in Provenance
}
RELATION_NUMBERS: Final[dict[Relation, memory_pb2.Relation.ValueType]] = {
    value: memory_pb2.Relation.Value(f"RELATION_{value.name}") for value in Relation
}
LEG_NUMBERS: Final[dict[RecallLeg, memory_service_pb2.RecallLeg.ValueType]] = {
    value: memory_service_pb2.RecallLeg.Value(f"RECALL_LEG_{value.name}") for value in RecallLeg
}
SOURCE_NUMBERS: Final[dict[UsageSource, memory_service_pb2.UsageSource.ValueType]] = {
    value: memory_service_pb2.UsageSource.Value(f"USAGE_SOURCE_{value.name}") for value in UsageSource
}
VALENCE_NUMBERS: Final[dict[Valence, memory_service_pb2.UsageValence.ValueType]] = {
    value: memory_service_pb2.UsageValence.Value(f"USAGE_VALENCE_{value.name}") for value in Valence
}
_TYPES: Final = {int(number): value for value, number in TYPE_NUMBERS.items()}
_STATES: Final = {int(number): value for value, number in STATE_NUMBERS.items()}
_PROVENANCES: Final = {int(number): value for value, number in PROVENANCE_NUMBERS.items()}
_RELATIONS: Final = {int(number): value for value, number in RELATION_NUMBERS.items()}
_DIRECTIONS: Final = {int(graph_service_pb2.Direction.Value(f"DIRECTION_{value.name}")): value for value in Direction}
_CONTEXT_KINDS: Final = {
    int(memory_service_pb2.ContextKind.Value(f"CONTEXT_KIND_{value.name}")): value for value in ContextKind
}
_ORDERS: Final = {
    int(memory_service_pb2.ORDER_BY_CREATE_TIME): OrderBy.CREATED_AT,
    int(memory_service_pb2.ORDER_BY_ACCESS_TIME): OrderBy.ACCESSED_AT,
    int(memory_service_pb2.ORDER_BY_IMPORTANCE): OrderBy.IMPORTANCE,
    int(memory_service_pb2.ORDER_BY_CONFIDENCE): OrderBy.CONFIDENCE,
}


def memory_type(number: int) -> MemoryType | None:
    """Return the type, None for unspecified.

    Raises:
        UnknownMemoryTypeError: If the number is none of ours.
    """
    if number and number not in _TYPES:
        raise UnknownMemoryTypeError(str(number), tuple(MemoryType))
    return _TYPES.get(number)


def memory_state(number: int) -> MemoryState:
    """Return the state, active for unspecified."""
    return looked_up("states", number, _STATES) or MemoryState.ACTIVE


def provenance(number: int) -> Provenance:
    """Return the provenance, agent for unspecified."""
    return looked_up("provenance", number, _PROVENANCES) or Provenance.AGENT


def relation(number: int, *, field_name: str) -> Relation:
    """Return the relation, which must be given.

    Raises:
        UnknownRelationError: If it is not given, or none of ours.
    """
    found = _RELATIONS.get(number)
    if found is None:
        raise UnknownRelationError(field_name, str(number), tuple(Relation))
    return found


def relations(numbers: Iterable[int], *, field_name: str) -> frozenset[Relation]:
    """Return these relations; see `relation`."""
    return frozenset(relation(number, field_name=field_name) for number in numbers)


def direction(number: int) -> Direction:
    """Return the direction, both for unspecified."""
    return looked_up("direction", number, _DIRECTIONS) or Direction.BOTH


def context_kind(number: int) -> ContextKind:
    """Return what a context is for, a session for unspecified."""
    return looked_up("kind", number, _CONTEXT_KINDS) or ContextKind.SESSION


def order_by(number: int) -> OrderBy:
    """Return what to order by, creation for unspecified."""
    return looked_up("order_by", number, _ORDERS) or OrderBy.CREATED_AT


def looked_up(field_name: str, number: int, values: dict[int, _Value]) -> _Value | None:
    """Return the value of a number, None for unspecified.

    Raises:
        InvalidInputError: If the number is none of ours.
    """
    if number and number not in values:
        raise InvalidInputError(field_name, number, _expected(values))
    return values.get(number)


def _expected(values: dict[int, _Value]) -> str:
    return "one of " + ", ".join(f"{number} ({value})" for number, value in values.items())
