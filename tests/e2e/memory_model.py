"""What a sidecar must hold after each operation, in plain dictionaries: the documented rules and nothing else.

It shares no rule with the product. A state is not stored but follows from the relations and from what was forgotten.
Enumerations are the numbers of the contract. An operation that must be refused raises the error that the client gets,
and has changed nothing then.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.errors import (
    DisputeNotFoundError,
    DisputeResolvedError,
    DuplicateMemoryError,
    EdgeNotFoundError,
    InvalidInputError,
    MemoryNotForgottenError,
    MemoryNotFoundError,
    SupersessionCircleError,
)

GOLDEN = Decimal("0.9")
FALL_BACK_BELOW = Decimal("0.75")
PROMOTABLE = {
    pb.MEMORY_TYPE_PREFERENCE,
    pb.MEMORY_TYPE_DECISION,
    pb.MEMORY_TYPE_PATTERN,
    pb.MEMORY_TYPE_CONVENTION,
    pb.MEMORY_TYPE_GOTCHA,
}

Triple = tuple[str, str, int]
"""Source, target and relation."""


@dataclass
class Entry:
    """A memory.

    Attributes:
        type_before: What it was before it became a golden rule by its successes.
        twin: Id of the memory that says the same and stands in its place, whether or not a relation says so.
        was_active: Whether it was delivered after the operation before.
        accesses: How often it was delivered to an agent; `unsettled` of these may not have been counted yet.
    """

    id: str
    namespace: str
    text: str
    type: int
    importance: float
    confidence: Decimal
    provenance: int
    type_before: int | None = None
    is_forgotten: bool = False
    twin: str = ""
    was_active: bool = True
    accesses: int = 0
    unsettled: int = 0

    @property
    def is_golden(self) -> bool:
        """Whether it is protected."""
        return self.type == pb.MEMORY_TYPE_GOLDEN_RULE or self.confidence >= GOLDEN


@dataclass
class EdgeEntry:
    """A relation; `id` is 0 until the sidecar has told it, `number` counts them up."""

    number: int
    weight: float = 1.0
    id: int = 0


@dataclass
class DisputeEntry:
    """A dispute; `resolution` is 0 while it is open."""

    memory_id: str
    reason: str
    resolution: int = validation.RESOLUTION_UNSPECIFIED
    successor_id: str = ""


@dataclass
class MemoryModel:
    """Everything of one owner, memories in the order of their creation."""

    memories: dict[str, Entry] = field(default_factory=dict)
    edges: dict[Triple, EdgeEntry] = field(default_factory=dict)
    disputes: dict[int, DisputeEntry] = field(default_factory=dict)
    purged: list[str] = field(default_factory=list)
    edge_count: int = 0

    # --- what follows from it

    def state(self, entry: Entry) -> int:
        """Return the state of a memory."""
        if entry.is_forgotten:
            return pb.MEMORY_STATE_FORGOTTEN
        return pb.MEMORY_STATE_SUPERSEDED if self.successor(entry) else pb.MEMORY_STATE_ACTIVE

    def successor(self, entry: Entry) -> str:
        """Return the id of the memory that stands in the place of one that is not forgotten; empty for none."""
        return "" if entry.is_forgotten else self._heir(entry.id) or entry.twin

    def active(self, namespaces: Iterable[str]) -> list[Entry]:
        """Return the memories that recall may deliver from these namespaces."""
        wanted = set(namespaces)
        return [e for e in self.memories.values() if e.namespace in wanted and self._is_active(e)]

    def edges_of(self, memory_id: str) -> dict[Triple, EdgeEntry]:
        """Return the relations that start or end at a memory."""
        return {triple: edge for triple, edge in self.edges.items() if memory_id in triple[:2]}

    def is_disputed(self, memory_id: str) -> bool:
        """Whether a dispute about it is open."""
        return any(d.memory_id == memory_id and not d.resolution for d in self.disputes.values())

    # --- operations

    def remember(self, new: Entry, links: Sequence[tuple[int, str]]) -> bool:
        """Store a memory with its links; return whether one that is active says the same, which then gets them."""
        for _, target_id in links:
            self._end(target_id)
        twin = self._active_twin(new)
        if twin is not None and any(target_id == twin.id for _, target_id in links):
            raise InvalidInputError("links", twin.id, "another memory")
        if twin is None:
            self.memories[new.id] = new
        source = twin or new
        for relation, target_id in links:
            self._add_edge((source.id, target_id, relation))
        self._settle()
        return twin is not None

    def forget(self, memory_id: str, *, is_forced: bool, is_purge: bool) -> str:
        """Forget or purge; return why it was left alone, empty if it was not."""
        entry = self._known(memory_id)
        reason = self.skip_reason(entry, is_forced=is_forced, is_purge=is_purge)
        if not reason:
            if is_purge:
                self._purge(entry)
            else:
                entry.is_forgotten = True
            self._settle()
        return reason

    @staticmethod
    def skip_reason(entry: Entry, *, is_forced: bool, is_purge: bool) -> str:
        """Return why forgetting leaves a memory alone; empty if it does not."""
        if entry.is_golden and not is_forced:
            return "golden_rule"
        return "already_forgotten" if entry.is_forgotten and not is_purge else ""

    def restore(self, memory_id: str) -> None:
        """Bring a forgotten memory back."""
        entry = self._known(memory_id)
        if not entry.is_forgotten:
            raise MemoryNotForgottenError(memory_id)
        twin = self._active_twin(entry)
        if twin is not None and not self._heir(entry.id) and not entry.twin:
            raise DuplicateMemoryError(memory_id, twin.id)
        entry.is_forgotten = False
        self._settle()

    def relate(self, source_id: str, target_id: str, relation: int, weight: float = 1.0) -> bool:
        """Make a relation or set its weight; return whether it is new."""
        if source_id == target_id:
            raise InvalidInputError("target_id", target_id, "another memory")
        self._end(source_id)
        self._end(target_id)
        triple = (source_id, target_id, relation)
        is_new = triple not in self.edges
        if is_new and relation == pb.RELATION_SUPERSEDES and self._replaces(target_id, source_id):
            raise SupersessionCircleError(source_id, target_id)
        self._add_edge(triple)
        self.edges[triple].weight = weight
        self._settle()
        return is_new

    def delete_edge(self, edge_id: int) -> list[int]:
        """Delete one relation; return its id."""
        triples = [triple for triple, edge in self.edges.items() if edge.id == edge_id]
        if not triples:
            raise EdgeNotFoundError(edge_id)
        return self._delete(triples)

    def delete_edges_of(self, memory_id: str, *, is_out: bool, is_in: bool, relations: set[int]) -> list[int]:
        """Delete relations of a memory, all for no relations named; return their ids, ascending."""
        self._known(memory_id)
        return self._delete(
            triple
            for triple in self.edges
            if (not relations or triple[2] in relations)
            and ((is_out and triple[0] == memory_id) or (is_in and triple[1] == memory_id))
        )

    def delete_edges_between(self, source_id: str, target_id: str) -> list[int]:
        """Delete the relations from one memory to another; return their ids, ascending."""
        self._known(source_id)
        self._known(target_id)
        return self._delete(triple for triple in self.edges if triple[:2] == (source_id, target_id))

    def report(self, memory_id: str, *, is_success: bool, adjustment: Decimal) -> tuple[bool, bool]:
        """Move the confidence; return whether the memory became a golden rule, and whether it stopped being one."""
        entry = self._known(memory_id)
        moved = entry.confidence + (adjustment if is_success else -adjustment * 3 / 2)
        entry.confidence = min(max(moved, Decimal(0)), Decimal(1))
        may_rise = entry.type in PROMOTABLE and entry.provenance != pb.PROVENANCE_MACHINE
        if is_success and may_rise and entry.confidence >= GOLDEN:
            entry.type, entry.type_before = pb.MEMORY_TYPE_GOLDEN_RULE, entry.type
            return True, False
        if not is_success and entry.type_before is not None and entry.confidence < FALL_BACK_BELOW:
            entry.type, entry.type_before = entry.type_before, None
            return False, True
        return False, False

    def challenge(self, memory_id: str, reason: str) -> int:
        """Return the open dispute that says this already; 0 for none."""
        self._known(memory_id)
        return next(
            (
                number
                for number, d in self.disputes.items()
                if (d.memory_id, d.reason) == (memory_id, reason) and not d.resolution
            ),
            0,
        )

    def resolve(self, dispute_id: int, resolution: int, successor_id: str) -> None:
        """End a dispute."""
        dispute = self.disputes.get(dispute_id)
        if dispute is None:
            raise DisputeNotFoundError(dispute_id)
        if dispute.resolution:
            if (dispute.resolution, dispute.successor_id) != (resolution, successor_id):
                raise DisputeResolvedError(dispute_id, "")
            return
        if resolution == validation.RESOLUTION_RETIRE:
            self.forget(dispute.memory_id, is_forced=True, is_purge=False)
        if resolution == validation.RESOLUTION_SUPERSEDE:
            self.relate(successor_id, dispute.memory_id, pb.RELATION_SUPERSEDES)
        dispute.resolution, dispute.successor_id = resolution, successor_id

    # --- how it follows

    def _settle(self) -> None:
        """Note who stands in the place of memories that nobody replaces any more."""
        for entry in self.memories.values():
            # Who was replaced by one that says the same stands aside for it also when the relation goes.
            twin = self.memories.get(self._heir(entry.id) or entry.twin)
            stays = twin is not None and not twin.is_forgotten and _says(twin) == _says(entry)
            entry.twin = twin.id if twin is not None and stays else ""
        # Those that were active all along go first: who is given back stands aside for them, not they for it.
        for entry in sorted(self.memories.values(), key=lambda each: not each.was_active):
            if not entry.was_active and self._is_active(entry):
                stands_in = self._active_twin(entry)
                entry.twin = stands_in.id if stands_in else ""
            entry.was_active = self._is_active(entry)

    def _is_active(self, entry: Entry) -> bool:
        return self.state(entry) == pb.MEMORY_STATE_ACTIVE

    def _active_twin(self, entry: Entry) -> Entry | None:
        same = (e for e in self.memories.values() if _says(e) == _says(entry))
        return next((e for e in same if e.id != entry.id and e.was_active and self._is_active(e)), None)

    def _heir(self, memory_id: str) -> str:
        """Return the newest memory with a `supersedes` relation to it, looking through those that are forgotten."""
        sources = self._superseding(memory_id)
        for source_id in sources:
            if not self.memories[source_id].is_forgotten:
                return source_id
        return next((heir for source_id in sources if (heir := self._heir(source_id))), "")

    def _superseding(self, memory_id: str) -> list[str]:
        found = [
            (edge.number, source_id)
            for (source_id, target_id, relation), edge in self.edges.items()
            if target_id == memory_id and relation == pb.RELATION_SUPERSEDES
        ]
        return [source_id for _, source_id in sorted(found, reverse=True)]

    def _replaces(self, memory_id: str, other_id: str) -> bool:
        """Tell whether a memory replaces the other, directly or through others."""
        return memory_id == other_id or any(self._replaces(target_id, other_id) for target_id in self._below(memory_id))

    def _below(self, memory_id: str) -> Iterator[str]:
        yield from (t for s, t, relation in self.edges if s == memory_id and relation == pb.RELATION_SUPERSEDES)
        yield from (entry.id for entry in self.memories.values() if entry.twin == memory_id)

    def _purge(self, entry: Entry) -> None:
        """Take a memory out; its successor stands in for what it had replaced itself."""
        heir, below = self._heir(entry.id), list(dict.fromkeys(self._below(entry.id)))
        del self.memories[entry.id]
        self.purged.append(entry.id)
        for triple in self.edges_of(entry.id):
            del self.edges[triple]
        self.disputes = {number: d for number, d in self.disputes.items() if d.memory_id != entry.id}
        for target_id in self.memories:
            if target_id in below and heir and not self._heir(target_id):
                self._add_edge((heir, target_id, pb.RELATION_SUPERSEDES))

    def _delete(self, triples: Iterable[Triple]) -> list[int]:
        ids = sorted(self.edges.pop(triple).id for triple in list(triples))
        self._settle()
        return ids

    def _add_edge(self, triple: Triple) -> None:
        if triple not in self.edges:
            self.edge_count += 1
            self.edges[triple] = EdgeEntry(self.edge_count)

    def _end(self, memory_id: str) -> Entry:
        entry = self._known(memory_id)
        if entry.is_forgotten:
            raise MemoryNotFoundError(memory_id)
        return entry

    def _known(self, memory_id: str) -> Entry:
        if memory_id not in self.memories:
            raise MemoryNotFoundError(memory_id)
        return self.memories[memory_id]


def _says(entry: Entry) -> tuple[str, str]:
    return entry.namespace, entry.text
