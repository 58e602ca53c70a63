"""The options that several commands share, and how what is typed becomes values of the contract."""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import typer

from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import completing
from sidecar.domain.edge_paths import Direction
from sidecar.domain.ids import MEMORY_PREFIX, is_memory_id
from sidecar.domain.memory import MemoryState, MemoryType, Provenance, Relation
from sidecar.domain.namespace import EVERYTHING, GLOBAL, PROJECT_PREFIX
from sidecar.domain.store_values import OrderBy

ReadNamespaceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="`global`, a project's name, or `*` for all.",
        show_default="this folder's project, and global",
        autocompletion=completing.namespaces,
    ),
]
TypesOption: TypeAlias = Annotated[
    list[MemoryType] | None,
    typer.Option("--type", "-t", help="Only this type; may be given several times.", show_default="all"),
]
MinImportanceOption: TypeAlias = Annotated[
    float, typer.Option("--min-importance", min=0.0, max=1.0, help="Only memories at least this important.")
]
MemoryArgument: TypeAlias = Annotated[
    str, typer.Argument(help="Id of the memory, `mem_…`.", metavar="ID", autocompletion=completing.memory_ids)
]
RelationsOption: TypeAlias = Annotated[
    list[Relation] | None,
    typer.Option("--relation", "-r", help="Only this relation; may be given several times.", show_default="all"),
]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_ORDERS: Final = {
    OrderBy.CREATED_AT: service.ORDER_BY_CREATE_TIME,
    OrderBy.ACCESSED_AT: service.ORDER_BY_ACCESS_TIME,
    OrderBy.IMPORTANCE: service.ORDER_BY_IMPORTANCE,
    OrderBy.CONFIDENCE: service.ORDER_BY_CONFIDENCE,
}


def namespace(typed: str) -> str:
    """Return the namespace as it is stored; a bare name is that of a project."""
    text = typed.strip()
    is_whole = text in {"", GLOBAL, EVERYTHING} or ":" in text
    return text if is_whole else f"{PROJECT_PREFIX}{text}"


def covered(typed: str, *, project: str) -> str:
    """Return where a read looks, for a person.

    Args:
        project: That of the working directory; empty for none.
    """
    asked = namespace(typed)
    if asked:
        return "any namespace" if asked == EVERYTHING else asked
    return f"{PROJECT_PREFIX}{project} or {GLOBAL}" if project else GLOBAL


def memory_id(typed: str) -> str:
    """Return an id as it is stored, whatever its case and the white space around it; any other text as it is."""
    text = typed.strip()
    canonical = MEMORY_PREFIX + text[len(MEMORY_PREFIX) :].upper()
    return canonical if text[: len(MEMORY_PREFIX)].lower() == MEMORY_PREFIX and is_memory_id(canonical) else text


def memory_type(value: MemoryType) -> pb.MemoryType.ValueType:
    """Return the type as the contract has it."""
    return pb.MemoryType.Value(f"MEMORY_TYPE_{value.name}")


def memory_types(values: Sequence[MemoryType] | None) -> list[pb.MemoryType.ValueType]:
    """Return the types as the contract has them; none means all."""
    return [memory_type(value) for value in values or ()]


def memory_states(values: Sequence[MemoryState] | None) -> list[pb.MemoryState.ValueType]:
    """Return the states as the contract has them; none means active."""
    return [pb.MemoryState.Value(f"MEMORY_STATE_{value.name}") for value in values or ()]


def provenance(value: Provenance) -> pb.Provenance.ValueType:
    """Return the provenance as the contract has it."""
    return pb.Provenance.Value(f"PROVENANCE_{value.name}")


def order_by(value: OrderBy) -> service.OrderBy.ValueType:
    """Return the order as the contract has it."""
    return _ORDERS[value]


def links_of(**ids: Sequence[str] | None) -> list[pb.Link]:
    """Return the links of a new memory.

    Args:
        ids: Ids of the other memories by the name of the relation, such as `supersedes`.
    """
    return [
        pb.Link(relation=pb.Relation.Value(f"RELATION_{relation.upper()}"), memory_id=memory_id(other))
        for relation, others in ids.items()
        for other in others or ()
    ]


def relation(value: Relation) -> pb.Relation.ValueType:
    """Return the relation as the contract has it."""
    return pb.Relation.Value(f"RELATION_{value.name}")


def relations(values: Sequence[Relation] | None) -> list[pb.Relation.ValueType]:
    """Return the relations as the contract has them; none means all."""
    return [relation(value) for value in values or ()]


def direction(value: Direction) -> graph.Direction.ValueType:
    """Return the direction as the contract has it."""
    return graph.Direction.Value(f"DIRECTION_{value.name}")
