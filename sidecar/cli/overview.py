"""What `sidecar` alone shows: how things are, and what to do next. Starts nothing and changes nothing."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from sidecar import __version__
from sidecar.api.plain import JsonValue, short_name
from sidecar.cli import connecting, rendering
from sidecar.cli.invocation import Invocation, project_here
from sidecar.cli.next_steps import ClientFound, NextStep, Running, Situation, next_steps
from sidecar.cli.output import Output
from sidecar.domain.namespace import EVERYTHING, project_namespace
from sidecar.errors import SidecarNotRunningError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sidecar.api.v1.evidence_service_pb2 import SessionCoverage
    from sidecar.client import Sidecar

_ABOUT: Final = "memory for coding agents that knows which memories helped"
_HELP: Final = "`sidecar --help` lists the commands, `sidecar COMMAND --help` explains one with examples."
_SHOWN_PROBLEMS: Final = 3
_HIT_RATE: Final = "hit_rate"
_MOST_SESSIONS: Final = 1000


@dataclass(frozen=True)
class Overview:
    """How things are.

    Attributes:
        situation: What decides on the next steps.
        state: In words.
        facts: What else a person wants to see, by name.
        problems: What the sidecar says is wrong.
    """

    situation: Situation
    data_folder: str
    state: str
    facts: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def show_overview(call: Invocation) -> None:
    """Show how things are and what to do next.

    Raises:
        SidecarError: A sidecar runs but cannot be asked, or the data folder is not to be trusted.
    """
    found = _look(call)
    steps = next_steps(found.situation)
    if call.output.is_json:
        call.output.document(_document(found, steps))
    else:
        _show(call.output, found, steps)


def _look(call: Invocation) -> Overview:
    from sidecar.client import DataFolder  # noqa: PLC0415 - a stand-in may take its place

    folder = DataFolder.at(call.home)
    clients = connecting.clients_found(call)
    path = folder.database_path
    if not path.exists():
        return Overview(Situation(Running.FRESH, clients), str(folder.home), "nothing is stored yet")
    try:
        with call.sidecar(start=False) as sidecar:
            return _ask(sidecar, Situation(Running.RUNNING, clients))
    except SidecarNotRunningError:
        facts = (("data", f"{folder.home}, {rendering.size(path.stat().st_size)}"), _agents(clients))
        return Overview(Situation(Running.STOPPED, clients), str(folder.home), "not running", facts)


def _ask(sidecar: "Sidecar", known: Situation) -> Overview:
    from sidecar.api.v1 import admin_service_pb2 as admin  # noqa: PLC0415 - a fresh folder needs no gRPC
    from sidecar.api.v1 import evidence_service_pb2 as evidence  # noqa: PLC0415
    from sidecar.api.v1 import insights_service_pb2 as insights  # noqa: PLC0415
    from sidecar.api.v1 import validation_service_pb2 as validation  # noqa: PLC0415

    status = sidecar.get_status()
    sessions = sidecar.list_sessions(evidence.ListSessionsRequest(limit=_MOST_SESSIONS)).sessions
    situation = Situation(
        Running.RUNNING,
        known.clients,
        problems=len(status.problems),
        memories=status.memory_count,
        sessions=len({(each.thread.client, each.thread.session) for each in sessions}),
        disputes=len(sidecar.list_disputes(validation.ListDisputesRequest()).disputes),
        misleading=len(sidecar.list_review_items(insights.ListReviewItemsRequest()).items),
        unembedded=status.queue.parked,
        unjudged=sidecar.get_judge_queue().parked,
    )
    state = short_name(admin.PartState.DESCRIPTOR, status.state) or "unknown"
    facts = (
        ("memories", _memories(sidecar, status.memory_count)),
        ("sessions", _sessions(sessions, situation.sessions)),
        ("use", _use(sidecar)),
        _agents(known.clients),
    )
    uptime = rendering.age(status.uptime.ToTimedelta().total_seconds())
    return Overview(situation, status.data_folder, f"{state}, up {uptime}", facts, tuple(status.problems))


def _memories(sidecar: "Sidecar", total: int) -> str:
    from sidecar.api.v1 import memory_service_pb2 as service  # noqa: PLC0415 - see `_ask`

    project = project_here()
    if not total or not project:
        return str(total)
    everything = service.MemoryFilter(namespace=EVERYTHING)
    counts = sidecar.count_memories(service.CountMemoriesRequest(filter=everything)).by_namespace
    return f"{total}, of them {counts[project_namespace(project)]} in {project_namespace(project)}"


def _sessions(sessions: "Sequence[SessionCoverage]", count: int) -> str:
    if not sessions:
        return "none seen yet"
    latest = max(sessions, key=lambda each: each.last_seen_time.ToDatetime())
    seconds = (datetime.now(UTC) - latest.last_seen_time.ToDatetime(tzinfo=UTC)).total_seconds()
    thread = latest.thread
    where = f"{thread.client} in {thread.project}" if thread.project else thread.client
    more = "or more " if len(sessions) == _MOST_SESSIONS else ""
    return f"{count} {more}seen, the last {rendering.age(seconds)} ago ({where})"


def _use(sidecar: "Sidecar") -> str:
    from sidecar.api.v1 import insights_service_pb2 as insights  # noqa: PLC0415 - see `_ask`

    answer = sidecar.export_metrics(insights.ExportMetricsRequest())
    rate = next((metric for metric in answer.metrics if metric.name == _HIT_RATE), None)
    if rate is None or not rate.HasField("value"):
        return "nothing to tell yet"
    return f"{rate.numerator} of {rate.denominator} recalled memories were used ({answer.days} days)"


def _agents(clients: tuple[ClientFound, ...]) -> tuple[str, str]:
    told = [f"{client.title} {'connected' if client.is_connected else 'not connected'}" for client in clients]
    return "agents", ", ".join(told) or "none found"


def _show(output: Output, found: Overview, steps: list[NextStep]) -> None:
    if found.situation.running is Running.FRESH:
        output.line(f"memory-sidecar {__version__}: {_ABOUT}.", style="bold")
        output.line(f"Nothing is stored yet in {found.data_folder}.")
    else:
        output.line(f"memory-sidecar {__version__}: {found.state}", style="bold")
        output.table(("", ""), found.facts)
    for problem in found.problems[:_SHOWN_PROBLEMS]:
        output.line(f"Problem: {problem}", style="yellow")
    output.line()
    output.line("Next:", style="bold")
    output.entries(("", ""), [(f"  {step.command}", step.why) for step in steps])
    output.line()
    output.line(_HELP)


def _document(found: Overview, steps: list[NextStep]) -> dict[str, JsonValue]:
    now = found.situation
    return {
        "version": __version__,
        "state": now.running.value,
        "data_folder": found.data_folder,
        "memories": now.memories,
        "sessions": now.sessions,
        "open_disputes": now.disputes,
        "misleading_memories": now.misleading,
        "parked_memories": now.unembedded,
        "parked_judge_jobs": now.unjudged,
        "clients": [{"name": each.name, "connected": each.is_connected} for each in now.clients],
        "problems": list(found.problems),
        "next": [{"command": step.command, "why": step.why} for step in steps],
    }
