"""The composition root: the only place that picks adapters. Read it top to bottom."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import grpc.aio

from sidecar.adapters.embedders.child_process import PythonCommand
from sidecar.adapters.embedders.lazy import SharedLoad
from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.adapters.faiss.snapshots import FaissSnapshots
from sidecar.adapters.redaction import SecretRedactor
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.system_clock import SystemClock
from sidecar.adapters.thread_priority import give_way
from sidecar.client.endpoint import DataFolder
from sidecar.client.isolation import isolated_environment, isolated_python
from sidecar.config import Settings, client_environment
from sidecar.ports import Embedder, LanguageModel
from sidecar.rpc.admin_service import AdminServicer, Identity
from sidecar.rpc.credentials import LOCAL_OWNER
from sidecar.rpc.evidence_service import EvidenceServicer
from sidecar.server import policies
from sidecar.server.application import Run
from sidecar.server.background import SupervisedTask
from sidecar.server.children import SupervisedChild
from sidecar.server.dashboard import DashboardDoor
from sidecar.server.dashboard_services import SharedParts, build_services
from sidecar.server.judging import JudgingSetUp, set_up_judging
from sidecar.server.language_model import LlmSetUp, set_up_llm
from sidecar.server.servicers import (
    Parts,
    Servicers,
    build_activity_servicer,
    build_graph_servicer,
    build_insights_servicer,
    build_maintenance_servicer,
    build_memory_servicer,
    build_validation_servicer,
)
from sidecar.use_cases.ask_llm import AskLlm
from sidecar.use_cases.auto_link import AutoLink
from sidecar.use_cases.browse import Browse
from sidecar.use_cases.catalog import MemoryCatalog
from sidecar.use_cases.collect_evidence import CollectEvidence
from sidecar.use_cases.completion import Completion
from sidecar.use_cases.embed_memories import EmbedMemories
from sidecar.use_cases.judge_queue import JudgeQueue
from sidecar.use_cases.refine_links import RefineLinks
from sidecar.use_cases.report_status import ChildStatus, ReportStatus
from sidecar.use_cases.request_reading import RequestReading
from sidecar.use_cases.semantic_index import SemanticIndex

_WATCHER_LOG: Final = "watcher.log"
# Its clients lose their connection at every stop, and gRPC would fill the watcher's log with that.
_QUIET_GRPC: Final = {"GRPC_VERBOSITY": "ERROR"}

# A third of the processor when somebody else wants it too: a call that is waited for goes before the queue.
_EMBEDDING_NICENESS: Final = 5


class SidecarApplication:
    """See `sidecar.server.application.Application`."""

    def __init__(self, settings: Settings, run: Run) -> None:
        self._default_model = SharedLoad(OnnxMiniLmEmbedder)
        self._settings = settings
        self._run = run
        self._folder = DataFolder(settings.home)
        self._clock = SystemClock()
        self._catalog = MemoryCatalog()
        self._completion = Completion()
        self._tasks: tuple[SupervisedTask, ...] = ()
        self._store: SqliteStore | None = None
        self._semantic: SemanticIndex | None = None
        self._llm: LlmSetUp | None = None
        self._dashboard: DashboardDoor | None = None
        self._watcher = _watcher(settings, self._folder)
        self._add_servicers: Callable[[grpc.aio.Server], None] | None = None

    @property
    def problems(self) -> Sequence[str]:
        """See `Application.problems`."""
        problem = self._semantic.status.problem if self._semantic is not None else ""
        return tuple(dict.fromkeys(filter(None, (problem, *self._task_problems()))))

    async def start(self) -> None:
        """See `Application.start`."""
        settings = self._settings
        store = await asyncio.to_thread(
            SqliteStore.open, self._folder.database_path, clock=self._clock, posting_budget=settings.word_posting_budget
        )
        self._store = store
        self._catalog.apply(await store.catalog())
        redactor = SecretRedactor()
        self._llm = llm = set_up_llm(settings, ledger=store.llm_ledger, redactor=redactor, clock=self._clock)
        self._semantic = semantic = self._semantic_index(store)
        parts = Parts(
            settings=settings,
            store=store,
            catalog=self._catalog,
            semantic=semantic,
            redactor=redactor,
            completion=self._completion,
            clock=self._clock,
            llm=None if llm.model is None else AskLlm(model=llm.model, clock=self._clock, wait_s=settings.llm_wait_s),
        )
        judging = set_up_judging(settings, store=store, llm=llm, default_model=self._default_model, clock=self._clock)
        self._tasks = self._build_services(parts, llm, judging)
        for task in self._tasks:
            task.start()
        if settings.watcher and watched_clients(settings):
            self._watcher.start()

    def _build_services(self, parts: Parts, llm: LlmSetUp, judging: JudgingSetUp) -> tuple[SupervisedTask, ...]:
        """Build all that answers calls; return what works in the background for it."""
        refine = None if llm.model is None else self._refine_links(parts, llm.model)
        auto_link, embedding = _embedding(parts, refine)
        reading = RequestReading()
        browse = Browse(store=parts.store, evidence=parts.store, page_size=parts.settings.page_size)
        status = ReportStatus(
            store=parts.store,
            browse=browse,
            semantic=parts.semantic,
            watcher=self._watcher_status,
            problems=lambda: (*self._task_problems(), *llm.problems, *judging.problems),
            counters=lambda: {
                "embed_failures": embedding.failures,
                "auto_link_failures": auto_link.failures,
                "readings_requested": reading.requests,
                "readings_lost": reading.lost,
                **judging.counters,
                **self._task_failures(),
                **({} if refine is None else refine.counters),
            },
            clock=parts.clock,
            llm=llm.status,
            judge=JudgeQueue(store=parts.store, status=judging.status).run,
        )
        collect = CollectEvidence(evidence=parts.store, redactor=parts.redactor, clock=parts.clock)
        self._dashboard = dashboard = self._dashboard_door(
            parts,
            SharedParts(browse, status, collect, judging, embedding),
        )
        admin_servicer = AdminServicer(
            identity=self._identity(),
            status=status,
            store=parts.store,
            embedding=embedding,
            open_dashboard=dashboard.link,
            request_stop=lambda: self._run.stopper.request("a client asked for it"),
        )
        servicers = Servicers(
            memory=build_memory_servicer(parts, browse=browse, embedding=embedding, auto_link=auto_link),
            graph=build_graph_servicer(parts),
            validation=build_validation_servicer(parts),
            activity=build_activity_servicer(parts),
            maintenance=build_maintenance_servicer(parts, embedding=embedding),
            evidence=EvidenceServicer(collect=collect, reading=reading),
            insights=build_insights_servicer(parts, judging=judging),
            admin=admin_servicer,
        )
        self._add_servicers = servicers.add_to
        return (*_tasks(parts.semantic, embedding, refine), *judging.tasks())

    def _dashboard_door(self, parts: Parts, shared: SharedParts) -> DashboardDoor:
        return DashboardDoor(
            lambda: build_services(parts, shared, self._identity()),
            owner=LOCAL_OWNER,
            clock=parts.clock,
            idle_s=parts.settings.dashboard_idle_s,
            note_use=self._run.other_use.note,
        )

    def add_to(self, server: grpc.aio.Server) -> None:
        """See `Application.add_to`."""
        if self._add_servicers is None:
            raise RuntimeError("start the application first")
        self._add_servicers(server)

    async def stop(self) -> None:
        """See `Application.stop`."""
        async with contextlib.AsyncExitStack() as closing:
            # Last in, first out. One that fails does not keep the next from being closed; it is raised in the end.
            if self._store is not None:
                closing.push_async_callback(self._store.close)
            if self._llm is not None:
                closing.push_async_callback(self._llm.close)
            if self._semantic is not None:
                closing.push_async_callback(asyncio.to_thread, self._semantic.close)
                closing.push_async_callback(self._semantic.save)
                closing.push_async_callback(asyncio.to_thread, self._semantic.abort)
            for task in self._tasks:
                closing.push_async_callback(task.stop)
            closing.push_async_callback(self._completion.finish)
            if self._dashboard is not None:
                closing.push_async_callback(self._dashboard.close)
            closing.push_async_callback(self._watcher.stop)

    def _semantic_index(self, store: SqliteStore) -> SemanticIndex:
        settings = self._settings
        model = _model_load(settings, self._default_model)
        return SemanticIndex(
            store=store,
            load_embedder=model.run,
            abort_load=model.abort,
            new_index=LayeredVectorIndex,
            snapshots=FaissSnapshots(self._folder.index_folder) if settings.index_snapshot else None,
            cache_size=settings.query_cache_size,
            prepare_batch_thread=partial(give_way, _EMBEDDING_NICENESS),
        )

    def _refine_links(self, parts: Parts, model: LanguageModel) -> RefineLinks:
        # Nobody waits for it, so that it may take as long as a question may.
        llm = AskLlm(model=model, clock=self._clock, wait_s=parts.settings.llm_timeout_s)
        return RefineLinks(store=parts.store, graph=parts.store, llm=llm)

    def _task_problems(self) -> tuple[str, ...]:
        return tuple(task.problem for task in self._tasks if task.problem)

    def _task_failures(self) -> dict[str, int]:
        return {"background_failures": sum(task.failures for task in self._tasks)}

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


def watched_clients(settings: Settings) -> tuple[str, ...]:
    """Return the names in the setting `watch_clients`; none means that no transcripts are read."""
    names = (name.strip() for name in settings.watch_clients.split(","))
    return tuple(name for name in names if name)


def _embedding(parts: Parts, refine: RefineLinks | None) -> tuple[AutoLink, EmbedMemories]:
    """Return what relates new memories, and what embeds them first."""
    auto_link = AutoLink(
        graph=parts.store,
        semantic=parts.semantic,
        catalog=parts.catalog,
        policy=policies.auto_link_policy(parts.settings),
        refine=None if refine is None else refine.expect,
    )
    embedding = EmbedMemories(
        store=parts.store,
        semantic=parts.semantic,
        clock=parts.clock,
        policy=policies.embed_policy(parts.settings),
        link=auto_link.run,
    )
    return auto_link, embedding


def _watcher(settings: Settings, folder: DataFolder) -> SupervisedChild:
    command = [*isolated_python(), "-m", "client_plugins.kit.watcher", "--home", str(folder.home)]
    command += ["--clients", *watched_clients(settings)]
    environment = {**_QUIET_GRPC, **client_environment(settings)}
    return SupervisedChild("watcher", command, log_path=folder.log_folder / _WATCHER_LOG, environment=environment)


def _tasks(semantic: SemanticIndex, embedding: EmbedMemories, refine: RefineLinks | None) -> tuple[SupervisedTask, ...]:
    loading = SupervisedTask(
        "load-meaning", semantic.load, consequence="memories are found by words only", on_give_up=semantic.switch_off
    )
    tasks = (
        loading,
        SupervisedTask("embed-memories", embedding.run, consequence="new memories are found by words only"),
    )
    if refine is None:
        return tasks
    return (*tasks, SupervisedTask("refine-links", refine.run, consequence="relations are not refined"))


@dataclass(frozen=True, slots=True)
class _ModelLoad:
    """How the embedder is loaded, and how that is called off where it takes long."""

    run: Callable[[], Embedder] | None
    abort: Callable[[], None] | None = None


def _model_load(settings: Settings, default: SharedLoad) -> _ModelLoad:
    if settings.embedder == "none":
        return _ModelLoad(None)
    if settings.embedder == "sentence-transformers":
        # Imported for those alone who installed the extra.
        from sidecar.adapters.embedders import sentence_transformers  # noqa: PLC0415

        model = settings.embedder_model or sentence_transformers.DEFAULT_MODEL
        python = PythonCommand(isolated_python(), isolated_environment())
        embedder = sentence_transformers.SentenceTransformersEmbedder(model, python=python)
        return _ModelLoad(embedder.load, embedder.close)
    return _ModelLoad(default)
