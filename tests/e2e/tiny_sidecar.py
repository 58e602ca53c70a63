"""A real sidecar process with a tiny application, for tests of lifecycle and client. Run as a script.

A query `until stop` is answered only once the sidecar was asked to stop, and `crash` fails in an unforeseen way.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import admin_service_pb2_grpc, evidence_service_pb2_grpc, memory_service_pb2_grpc
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.client.build import Build
from sidecar.config import load_settings
from sidecar.errors import SidecarError
from sidecar.rpc.credentials import current_owner
from sidecar.server.application import Run
from sidecar.server.exit_codes import exit_code_of
from sidecar.server.lifecycle import serve


class TinyApplication:
    """Answers a few methods; stores nothing."""

    def __init__(self, run: Run, home: Path, *, start_problem: str = "") -> None:
        self._run = run
        self._home = home
        self._start_problem = start_problem
        self.problems: tuple[str, ...] = ()

    async def start(self) -> None:
        # With no mode given, as a library would make it.
        (self._home / "made-by-a-library").write_text("")
        if self._start_problem:
            raise ValueError(self._start_problem)

    def add_to(self, server: grpc.aio.Server) -> None:
        under_way: set[str] = set()
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server(_Admin(self._run, under_way), server)  # type: ignore[abstract]
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(_Memory(self._run, under_way), server)  # type: ignore[abstract]
        evidence_service_pb2_grpc.add_EvidenceServiceServicer_to_server(_Evidence(), server)  # type: ignore[abstract]

    async def stop(self) -> None:
        pass


class _Admin(admin_service_pb2_grpc.AdminServiceServicer):
    def __init__(self, run: Run, under_way: set[str]) -> None:
        self._run = run
        self._under_way = under_way

    async def GetStatus(self, request: admin.GetStatusRequest, context: object) -> admin.GetStatusResponse:  # noqa: N802
        return admin.GetStatusResponse(
            pid=self._run.holder.pid,
            instance_id=self._run.holder.instance_id,
            version=self._run.build.version,
            protocol=self._run.build.protocol,
            data_folder=current_owner(),
            memory_count=len(self._under_way),
        )

    async def Shutdown(self, request: admin.ShutdownRequest, context: object) -> admin.ShutdownResponse:  # noqa: N802
        self._run.stopper.request("asked")
        return admin.ShutdownResponse()


class _Memory(memory_service_pb2_grpc.MemoryServiceServicer):
    def __init__(self, run: Run, under_way: set[str]) -> None:
        self._run = run
        self._under_way = under_way

    async def Recall(self, request: memory.RecallRequest, context: object) -> memory.RecallResponse:  # noqa: N802
        if request.query == "until stop":
            self._under_way.add(request.query)
            await self._run.stopper.event.wait()
            await asyncio.sleep(0.1)
        if request.query == "crash":
            raise ValueError("a text that quotes: my secret memory")
        return memory.RecallResponse(recall_id=f"{request.context.client}/{request.context.project}")

    async def Remember(self, request: memory.RememberRequest, context: object) -> memory.RememberResponse:  # noqa: N802
        return memory.RememberResponse(memory_id=request.request_key)


class _Evidence(evidence_service_pb2_grpc.EvidenceServiceServicer):
    async def StreamEvidence(  # noqa: N802
        self, request_iterator: AsyncIterator[evidence.StreamEvidenceRequest], context: object
    ) -> AsyncIterator[evidence.StreamEvidenceResponse]:
        async for request in request_iterator:
            yield evidence.StreamEvidenceResponse(batch_id=request.batch_id)


async def _serve(arguments: argparse.Namespace) -> int:
    try:
        settings = load_settings(home=arguments.home)
    except SidecarError as error:
        sys.stderr.write(f"{error.message}\n")
        return exit_code_of(error)
    if settings.home.is_dir():
        # Tells the test how often one was started, whether or not it got the folder.
        descriptor = os.open(
            settings.home.parent / f"{settings.home.name}.spawned", os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        os.write(descriptor, b"x")
        os.close(descriptor)
    run = Run.new(Build(arguments.version, arguments.protocol))
    application = TinyApplication(run, settings.home, start_problem=arguments.start_problem)
    return await serve(settings, application, run=run)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--version", default="1.0")
    parser.add_argument("--protocol", type=int, default=1)
    parser.add_argument("--start-problem", default="")
    sys.exit(asyncio.run(_serve(parser.parse_args())))
