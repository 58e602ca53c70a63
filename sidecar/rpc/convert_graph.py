"""Messages of the GraphService and what they stand for."""

from sidecar.api.v1 import graph_service_pb2 as pb
from sidecar.domain.edge_paths import RelationChoice
from sidecar.domain.edges import EdgeOfId, EdgeSelector, EdgesOfMemory, EdgesOfPair, StoredEdge
from sidecar.domain.graph_view import GraphPath, GraphQuery, GraphView
from sidecar.domain.mermaid import mermaid
from sidecar.errors import InvalidInputError
from sidecar.rpc import convert, enums
from sidecar.use_cases.inspect_graph import GraphDefaults
from sidecar.use_cases.memory_ids import require_id
from sidecar.use_cases.relate import RelateQuery


def relate_query(request: pb.RelateRequest) -> RelateQuery:
    """Return the relation to make."""
    return RelateQuery(
        source_id=request.source_id,
        target_id=request.target_id,
        relation=enums.relation(request.relation, field_name="relation"),
        weight=request.weight if request.HasField("weight") else None,
    )


def relate_response(stored: StoredEdge) -> pb.RelateResponse:
    """Return what became of it."""
    return pb.RelateResponse(edge=convert.edge(stored.edge), created=stored.is_created)


def edge_selector(request: pb.DeleteEdgesRequest) -> EdgeSelector:
    """Return which relations are meant.

    Raises:
        InvalidInputError: If nothing is selected, half of a selector is missing, or a single one is filtered.
    """
    relations = enums.relations(request.relations, field_name="relations")
    match request.WhichOneof("selector"):
        case "edge_id":
            if relations:
                raise InvalidInputError("relations", sorted(relations), "none with `edge_id`, which names one relation")
            return EdgeOfId(request.edge_id)
        case "memory":
            memory_id = require_id(request.memory.memory_id, field_name="memory.memory_id")
            return EdgesOfMemory(memory_id, enums.direction(request.memory.direction), relations)
        case "pair":
            return EdgesOfPair(
                require_id(request.pair.source_id, field_name="pair.source_id"),
                require_id(request.pair.target_id, field_name="pair.target_id"),
                relations,
            )
        case _:
            raise InvalidInputError("selector", "none", "exactly one of edge_id, memory and pair")


def graph_query(request: pb.InspectGraphRequest, defaults: GraphDefaults) -> GraphQuery:
    """Return what to look at."""
    return GraphQuery(
        origin_id=request.memory_id,
        max_depth=request.max_depth or defaults.max_depth,
        direction=enums.direction(request.direction),
        relations=RelationChoice(enums.relations(request.relations, field_name="relations")),
        is_scored=request.include_scores if request.HasField("include_scores") else True,
        decay=request.decay_factor if request.HasField("decay_factor") else defaults.decay,
        relation_weights=defaults.relation_weights,
    )


def graph_response(view: GraphView, *, is_drawn: bool) -> pb.InspectGraphResponse:
    """Return what surrounds a memory."""
    return pb.InspectGraphResponse(
        origin_id=view.origin_id,
        nodes=[
            pb.GraphNode(
                id=node.id,
                preview=node.preview,
                type=enums.TYPE_NUMBERS[node.type],
                confidence=node.confidence,
                importance=node.importance,
                depth=node.depth,
            )
            for node in view.nodes
        ],
        edges=[convert.edge(edge) for edge in view.edges],
        paths=[_path(path) for path in view.paths],
        truncated=view.truncated,
        mermaid=mermaid(view) if is_drawn else "",
    )


def _path(path: GraphPath) -> pb.GraphPath:
    return pb.GraphPath(
        node_ids=path.memory_ids,
        relations=[enums.RELATION_NUMBERS[relation] for relation in path.relations],
        total_weight=path.total_weight,
        relevance=path.relevance,
    )
