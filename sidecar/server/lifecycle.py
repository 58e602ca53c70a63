"""One run of a sidecar from the lock to the last byte: start in order, serve, stop in order. Knows no use case."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from sidecar.api.v1 import (
    activity_service_pb2,
    admin_service_pb2,
    evidence_service_pb2,
    graph_service_pb2,
    insights_service_pb2,
    maintenance_service_pb2,
    memory_service_pb2,
    validation_service_pb2,
)
from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.client.trusted_files import PRIVATE_UMASK
from sidecar.config import Settings
from sidecar.errors import SidecarError
from sidecar.rpc.admission import Admission
from sidecar.rpc.credentials import Credentials
from sidecar.rpc.interceptors import AccessLog, Authentication, EndOfStreams, ErrorStatuses
from sidecar.server.application import Application, Run
from sidecar.server.exit_codes import EXIT_STOPPED, exit_code_of
from sidecar.server.handshake import Handshake
from sidecar.server.hook_door import hook_door
from sidecar.server.idle import LastUse, stop_when_idle
from sidecar.server.listener import open_listener
from sidecar.server.lock import HeldLock, hold_folder
from sidecar.server.logs import logging_to
from sidecar.server.presence import Presence

log = logging.getLogger(__name__)

SERVICE_NAMES: Final = tuple(
    service.full_name
    for file in (
        memory_service_pb2,
        graph_service_pb2,
        validation_service_pb2,
        activity_service_pb2,
        maintenance_service_pb2,
        evidence_service_pb2,
        insights_service_pb2,
        admin_service_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
)
_CALLS_AT_THE_DOOR: Final = 4
_SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


async def serve(
    settings: Settings,
    application: Application,
    *,
    run: Run | None = None,
    ready: Callable[[Endpoint], None] | None = None,
) -> int:
    """Serve one data folder until asked to stop.

    Args:
        settings: Of the data folder.
        application: What to serve; started and stopped here.
        run: Who this is and how to stop it; the application may share it.
        ready: Called once clients can find the sidecar.

    Returns:
        What the process should end with; see `sidecar.server.exit_codes`.
    """
    run = run or Run.new()
    folder = DataFolder(settings.home)
    # Before any file is made; SQLite and other libraries make theirs with whatever the umask leaves.
    os.umask(PRIVATE_UMASK)
    try:
        folder.prepare()
        with (
            hold_folder(folder, run.holder) as lock,
            logging_to(folder.log_path, level=settings.log_level),
            _failures_logged(),
        ):
            await _Service(settings, application, run, lock=lock).run(ready)
    except SidecarError as error:
        # A client that started us reads the last line of this and shows it.
        sys.stderr.write(f"sidecar: {error.message}\n")
        return exit_code_of(error)
    return EXIT_STOPPED


class _Service:
    """A sidecar whose folder is locked."""

    def __init__(self, settings: Settings, application: Application, run: Run, *, lock: HeldLock) -> None:
        self._settings = settings
        self._application = application
        self._run = run
        self._lock = lock
        self._folder = DataFolder(settings.home)
        self._health = HealthServicer()
        self._last_use = LastUse(run.other_use)
        self._token = secrets.token_urlsafe(32)

    async def run(self, ready: Callable[[Endpoint], None] | None) -> None:
        """Start, serve, stop."""
        with _signals_to(self._run):
            try:
                await self._application.start()
                async with self._serving() as endpoint:
                    self._log_state("sidecar started")
                    if ready is not None:
                        ready(endpoint)
                    await self._run.stopper.event.wait()
            finally:
                await self._application.stop()
                self._log_state("sidecar stopped")

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[Endpoint]:
        """Let clients in for the block, and see the last ones off after it."""
        server = self._build_server()
        listener = open_listener(self._folder, server, transport=self._settings.transport)
        endpoint = Endpoint(
            holder=self._run.holder,
            address=listener.address,
            token=self._token,
            build=self._run.build,
            max_message_bytes=self._settings.max_message_bytes,
        )
        presence = Presence(self._folder, endpoint, lock=self._lock, listener=listener)
        try:
            await server.start()
            await self._set_serving()
            presence.announce()
            async with self._watches(presence), hook_door(endpoint):
                yield endpoint
        finally:
            # In this order: nobody new finds us, those who watch our health go, those who wait get their answers.
            presence.withdraw_endpoint()
            self._run.stopper.request("the sidecar failed")
            await self._health.enter_graceful_shutdown()
            await server.stop(self._settings.drain_grace_s)
            presence.withdraw_address()

    def _build_server(self) -> grpc.aio.Server:
        limit = self._settings.max_message_bytes
        server = grpc.aio.server(
            interceptors=(
                ErrorStatuses(),
                AccessLog(),
                Authentication(Credentials(self._token)),
                Handshake(token=self._token, instance_id=self._run.holder.instance_id, build=self._run.build),
                Admission(self._settings.max_calls),
                self._last_use,
                EndOfStreams(self._run.stopper.event),
            ),
            # What the door itself cannot count: who is being refused, and who only watches health.
            maximum_concurrent_rpcs=_CALLS_AT_THE_DOOR * self._settings.max_calls,
            options=(
                ("grpc.max_send_message_length", limit),
                ("grpc.max_receive_message_length", limit),
                # On by default, and then a second process may listen on our port and take part of our calls.
                ("grpc.so_reuseport", 0),
                ("grpc.enable_http_proxy", 0),
            ),
        )
        self._application.add_to(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = (*SERVICE_NAMES, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
        reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), server)
        return server

    async def _set_serving(self) -> None:
        for name in ("", *SERVICE_NAMES):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    @contextlib.asynccontextmanager
    async def _watches(self, presence: Presence) -> AsyncIterator[None]:
        """Run what looks after the sidecar while it serves."""
        stopper = self._run.stopper
        tasks = [asyncio.create_task(presence.watch(stopper), name="presence")]
        if self._settings.idle_exit_s > 0:
            idle = stop_when_idle(self._last_use, stopper, after_s=self._settings.idle_exit_s)
            tasks.append(asyncio.create_task(idle, name="idle"))
        for task in tasks:
            task.add_done_callback(self._stop_if_failed)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _stop_if_failed(self, task: "asyncio.Task[None]") -> None:
        """A sidecar that nobody looks after any more must not go on as if it were."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a watch failed", exc_info=error, extra={"watch": task.get_name()})
            self._run.stopper.request(f"the {task.get_name()} watch failed")

    def _log_state(self, what: str) -> None:
        extra = {
            "pid": self._run.holder.pid,
            "instance": self._run.holder.instance_id,
            "version": self._run.build.version,
            "reason": self._run.stopper.reason,
            "problems": list(self._application.problems),
        }
        log.info(what, extra=extra)


@contextlib.contextmanager
def _failures_logged() -> Iterator[None]:
    """Log what ends the sidecar; its stderr may be nowhere."""
    try:
        yield
    except Exception:
        log.exception("sidecar failed")
        raise


@contextlib.contextmanager
def _signals_to(run: Run) -> Iterator[None]:
    """Turn signals that ask for an end into an orderly stop for the block."""
    loop = asyncio.get_running_loop()
    installed: list[signal.Signals] = []
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None:
            continue
        # Not from inside a thread, as tests run it, and on Windows not at all: there the default handler stays.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, run.stopper.request, name)
            installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
