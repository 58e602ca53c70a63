"""A gRPC server that does nothing: the floor under every call. Ends when its standard input does."""

import asyncio
import sys
from typing import Final

import grpc

_SERVICE: Final = "bench.Floor"


async def _empty(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:  # noqa: ARG001 - gRPC's shape
    return b""


async def _serve(target: str) -> None:
    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_empty)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {"Empty": handler}),))
    port = server.add_insecure_port(target)
    await server.start()
    sys.stdout.write(f"{target if target.startswith('unix:') else f'127.0.0.1:{port}'}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
