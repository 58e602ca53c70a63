"""The sidecar's side of the handshake; see `sidecar.client.handshake`."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio

from sidecar.client.build import Build
from sidecar.client.handshake import CHALLENGE, HEALTH_CHECK, KNOWLEDGE, knows_token, prove

_Context = grpc.aio.ServicerContext[Any, Any]
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Handshake(grpc.aio.ServerInterceptor):
    """Answers a challenge that comes with a health check, from who knows the token, by a proof of who this is."""

    def __init__(self, *, token: str, instance_id: str, build: Build) -> None:
        self._token = token
        self._instance_id = instance_id
        self._build = build

    async def intercept_service(
        self,
        continuation: "Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]]",
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "_Handler | None":
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method != HEALTH_CHECK:
            return handler
        metadata = dict(handler_call_details.invocation_metadata or ())
        challenge = metadata.get(CHALLENGE)
        check: Any = handler.unary_unary
        knowledge = metadata.get(KNOWLEDGE, "")
        if not isinstance(challenge, str) or not isinstance(knowledge, str) or check is None:
            return handler
        if not knows_token(self._token, challenge, knowledge):
            return handler
        proof = prove(self._token, challenge, instance_id=self._instance_id, build=self._build)

        async def check_and_prove(request: Any, context: _Context) -> Any:
            if proof is not None:
                await context.send_initial_metadata(proof)
            return await check(request, context)

        return grpc.unary_unary_rpc_method_handler(
            check_and_prove, handler.request_deserializer, handler.response_serializer
        )
