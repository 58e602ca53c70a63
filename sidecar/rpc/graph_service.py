"""The GraphService: convert, call, convert."""

import grpc

from sidecar.api.v1 import graph_service_pb2 as pb
from sidecar.api.v1 import graph_service_pb2_grpc
from sidecar.rpc import convert, convert_graph
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.inspect_graph import InspectGraph
from sidecar.use_cases.relate import Relate


class GraphServicer(graph_service_pb2_grpc.GraphServiceServicer):
    """Serves relations. Errors travel through the interceptor."""

    def __init__(self, *, relate: Relate, inspect: InspectGraph) -> None:
        self._relate = relate
        self._inspect = inspect

    async def Relate(
        self, request: pb.RelateRequest, context: grpc.aio.ServicerContext[pb.RelateRequest, pb.RelateResponse]
    ) -> pb.RelateResponse:
        """Makes a relation, or sets its weight."""
        caller = convert.owner_only(current_owner())
        return convert_graph.relate_response(await self._relate.run(caller, convert_graph.relate_query(request)))

    async def DeleteEdges(
        self,
        request: pb.DeleteEdgesRequest,
        context: grpc.aio.ServicerContext[pb.DeleteEdgesRequest, pb.DeleteEdgesResponse],
    ) -> pb.DeleteEdgesResponse:
        """Deletes relations."""
        caller = convert.owner_only(current_owner())
        deleted = await self._relate.delete(caller, convert_graph.edge_selector(request))
        return convert_graph.delete_response(deleted)

    async def InspectGraph(
        self,
        request: pb.InspectGraphRequest,
        context: grpc.aio.ServicerContext[pb.InspectGraphRequest, pb.InspectGraphResponse],
    ) -> pb.InspectGraphResponse:
        """Shows what is related to a memory."""
        caller = convert.owner_only(current_owner())
        view = await self._inspect.run(caller, convert_graph.graph_query(request, self._inspect.defaults))
        return convert_graph.graph_response(view, is_drawn=request.include_mermaid)
