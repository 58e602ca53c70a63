"""The composition root: the only place that picks adapters. Read it top to bottom."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

import grpc.aio

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.snapshots import FaissSnapshots
from sidecar.adapters.redaction import SecretRedactor
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.client.endpoint import DataFolder
from sidecar.client.isolation import isolated_python
from sidecar.config import Settings
from sidecar.ports import Embedder
from sidecar.rpc.admin_service import AdminServicer, Identity
from sidecar.rpc.evidence_service import EvidenceServicer
from sidecar.server import policies
from sidecar.server.application import Run
from sidecar.server.children import SupervisedChild
from sidecar.server.servicers import (
    Parts,
    Servicers,
    build_activity_servicer,
    build_graph_servicer,
    build_maintenance_servicer,
    build_memory_servicer,
    build_validation_servicer,
)
from sidecar.use_cases.auto_link import AutoLink
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.report_status import ChildStatus, ReportStatus
from sidecar.use_cases.semantic_index import SemanticIndex

_WATCHER_LOG: Final = "watcher.log"
_CLAUDE_CONFIG: Final = "CLAUDE_CONFIG_DIR"


class SidecarApplication:
    """See `sidecar.server.application.Application`."""

    def __init__(self, settings: Settings, run: Run) -> None:
        self._settings = settings
        self._run = run
        self._folder = DataFolder(settings.home)
        self._clock = SystemClock()
        self._catalog = MemoryCatalog()
        self._completion = Completion()
        self._tasks: list[asyncio.Task[None]] = []
        self._store: SqliteStore | None = None
        self._semantic: SemanticIndex | None = None
        self._watcher = _watcher(settings, self._folder)
        self._add_servicers: Callable[[grpc.aio.Server], None] | None = None

    @property
    def problems(self) -> Sequence[str]:
        """See `Application.problems`."""
        problem = self._semantic.status.problem if self._semantic is not None else ""
        return (problem,) if problem else ()

    async def start(self) -> None:
        """See `Application.start`."""
        settings = self._settings
        store = await asyncio.to_thread(
            SqliteStore.open, self._folder.database_path, clock=self._clock, posting_budget=settings.word_posting_budget
        )
        self._store = store
        self._catalog.apply(await store.catalog())
        semantic = SemanticIndex(
            store=store,
            load_embedder=_embedder_loader(settings),
            new_index=FaissVectorIndex,
            snapshots=FaissSnapshots(self._folder.index_folder) if settings.index_snapshot else None,
            cache_size=settings.query_cache_size,
        )
        self._semantic = semantic
        parts = Parts(
            settings=settings,
            store=store,
            catalog=self._catalog,
            semantic=semantic,
            redactor=SecretRedactor(),
            completion=self._completion,
            clock=self._clock,
        )
        embedding = self._build_services(parts)
        self._tasks = [
            asyncio.create_task(semantic.load(), name="load-meaning"),
            asyncio.create_task(embedding.run(), name="embed-memories"),
        ]
        if settings.watcher:
            self._watcher.start()

    def _build_services(self, parts: Parts) -> EmbedMemories:
        """Build all that answers calls; return what works in the background for it."""
        auto_link = AutoLink(
            graph=parts.store,
            semantic=parts.semantic,
            catalog=parts.catalog,
            policy=policies.auto_link_policy(parts.settings),
        )
        embedding = EmbedMemories(
            store=parts.store,
            semantic=parts.semantic,
            clock=parts.clock,
            policy=policies.embed_policy(parts.settings),
            link=auto_link.run,
        )
        browse = Browse(store=parts.store, evidence=parts.store, page_size=parts.settings.page_size)
        status = ReportStatus(
            store=parts.store,
            browse=browse,
            semantic=parts.semantic,
            watcher=self._watcher_status,
            counters=lambda: {"embed_failures": embedding.failures, "auto_link_failures": auto_link.failures},
            clock=parts.clock,
        )
        admin_servicer = AdminServicer(
            identity=self._identity(),
            status=status,
            store=parts.store,
            wake_embedding=embedding.wake,
            request_stop=lambda: self._run.stopper.request("a client asked for it"),
        )
        servicers = Servicers(
            memory=build_memory_servicer(parts, browse=browse, embedding=embedding, auto_link=auto_link),
            graph=build_graph_servicer(parts),
            validation=build_validation_servicer(parts),
            activity=build_activity_servicer(parts),
            maintenance=build_maintenance_servicer(parts, embedding=embedding),
            evidence=EvidenceServicer(
                collect=CollectEvidence(evidence=parts.store, redactor=parts.redactor, clock=parts.clock)
            ),
            admin=admin_servicer,
        )
        self._add_servicers = servicers.add_to
        return embedding

    def add_to(self, server: grpc.aio.Server) -> None:
        """See `Application.add_to`."""
        if self._add_servicers is None:
            raise RuntimeError("start the application first")
        self._add_servicers(server)

    async def stop(self) -> None:
        """See `Application.stop`."""
        await self._watcher.stop()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._semantic is not None:
            await self._semantic.save()
            await asyncio.to_thread(self._semantic.close)
        if self._store is not None:
            await self._store.close()

    def _identity(self) -> Identity:
        return Identity(
            version=self._run.build.version,
            protocol=self._run.build.protocol,
            instance_id=self._run.holder.instance_id,
            pid=self._run.holder.pid,
            data_folder=str(self._folder.home),
        )

    def _watcher_status(self) -> ChildStatus:
        report = self._watcher.report
        return ChildStatus(str(report.state), report.pid, report.restarts, report.problem)


def _watcher(settings: Settings, folder: DataFolder) -> SupervisedChild:
    command = [*isolated_python(), "-m", "client_plugins.kit.watcher", "--home", str(folder.home)]
    command += ["--clients", settings.watch_clients]
    environment = {_CLAUDE_CONFIG: settings.claude_config_dir} if settings.claude_config_dir else {}
    return SupervisedChild("watcher", command, log_path=folder.log_folder / _WATCHER_LOG, environment=environment)


def _embedder_loader(settings: Settings) -> Callable[[], Embedder] | None:
    if settings.embedder == "none":
        return None
    if settings.embedder == "sentence-transformers":
        return lambda: _sentence_transformers(settings.embedder_model)
    return OnnxMiniLmEmbedder


def _sentence_transformers(model: str) -> Embedder:
    # Imported for those alone who installed the extra.
    from sidecar.adapters.embedders.sentence_transformers import SentenceTransformersEmbedder  # noqa: PLC0415

    return SentenceTransformersEmbedder(model)
