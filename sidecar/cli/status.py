"""Commands that tell how the sidecar is and what it knows of sessions: status, sessions."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.cli import completing, coverage_view, rendering, session_view
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_STATE: Final = admin.PartState.DESCRIPTOR
# A table of eight columns has to fit into 80 characters; `--json` has everything whole.
_AGENT_CHARACTERS: Final = 4
_PROJECT_CHARACTERS: Final = 10
_NO_SESSIONS: Final = (
    "No session has been seen yet. They appear when transcripts are read: Claude Code's in the folder `projects` of "
    "CLAUDE_CONFIG_DIR, else of ~/.claude, unless the setting `claude_config_dir` names another; Codex's in the "
    "folders `sessions` and `archived_sessions` of CODEX_HOME, else of ~/.codex, unless the setting `codex_home` does; "
    "Cursor's below ~/.cursor/projects. `sidecar status` tells whether the watcher runs, and `sidecar ingest` reads "
    "transcripts that are older than the watcher looks back."
)


def status(context: typer.Context, *, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Tell how the sidecar is: versions, model, index, queue, watcher, disk, and what is wrong. Starts nothing."""
    from sidecar.config import unknown_variables  # noqa: PLC0415 - `sessions` need not wait for it

    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar(start=False) as sidecar:
        answer = sidecar.get_status()
        coverage = sidecar.get_coverage(evidence.GetCoverageRequest())
    if call.output.is_json:
        call.output.document({**plain(answer), "coverage": plain(coverage)["clients"]})
    else:
        _show_status(call.output, answer, coverage)
    unknown = rendering.unknown_variables(unknown_variables(os.environ))
    if unknown:
        call.output.note(f"Note: {unknown}")


def sessions(
    context: typer.Context,
    *,
    session: Annotated[
        str,
        typer.Argument(
            help="A session, or the beginning of its id: show each of its recalls.",
            metavar="[ID]",
            autocompletion=completing.sessions,
        ),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="Most sessions to show.")] = 20,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List agent sessions, or show one: recalls, what they showed and used, and what could not be read."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        if session:
            _show_one_session(call.output, sidecar, session)
        else:
            _show_sessions(call.output, sidecar, limit)


def _show_one_session(output: Output, sidecar: "Sidecar", beginning: str) -> None:
    thread = session_view.find_session(sidecar, beginning.strip())
    answer = sidecar.get_session(evidence.GetSessionRequest(client=thread.client, session=thread.session))
    if output.is_json:
        output.document(plain(answer))
    else:
        session_view.show_session(output, sidecar, thread, answer.recalls)


def _show_sessions(output: Output, sidecar: "Sidecar", limit: int) -> None:
    answer = sidecar.list_sessions(evidence.ListSessionsRequest(limit=limit))
    if output.is_json:
        output.document(plain(answer))
        return
    if not answer.sessions:
        output.note(_NO_SESSIONS)
        return
    whole = [coverage.thread.session for coverage in answer.sessions]
    short = session_view.short_ids(whole) if output.is_for_a_person else {session: session for session in whole}
    now = datetime.now(UTC)
    columns = ("session", "ago", "client", "project", "recalls", "shown", "used", "unknown")
    output.table(columns, [_session_row(output, coverage, short, now) for coverage in answer.sessions])
    output.note("`sidecar sessions ID` shows the recalls of one.")


def _session_row(
    output: Output, coverage: evidence.SessionCoverage, short: Mapping[str, str], now: datetime
) -> tuple[str, ...]:
    thread = coverage.thread
    agent = thread.agent_id[:_AGENT_CHARACTERS] if output.is_for_a_person else thread.agent_id
    unread = dict(coverage.unknown)
    if coverage.cannot_record:
        unread["cannot record"] = coverage.cannot_record
    return (
        short[thread.session] + (f" ({agent})" if agent else ""),
        rendering.age((now - coverage.last_seen_time.ToDatetime(tzinfo=UTC)).total_seconds()),
        thread.client,
        output.preview(thread.project, limit=_PROJECT_CHARACTERS) or "-",
        str(coverage.recalls),
        str(coverage.shown),
        str(coverage.used),
        coverage_view.reasons(unread) or "-",
    )


def _show_status(output: Output, answer: admin.GetStatusResponse, coverage: evidence.GetCoverageResponse) -> None:
    embedder, index, queue = answer.embedder, answer.index, answer.queue
    watcher, storage = answer.watcher, answer.storage
    uptime = rendering.age(answer.uptime.ToTimedelta().total_seconds())
    database, journal, free = map(rendering.size, (storage.database_bytes, storage.wal_bytes, storage.free_bytes))
    rows = [
        ("sidecar", f"{_state(answer.state)}, version {answer.version}, process {answer.pid}, up {uptime}"),
        ("protocol", f"{answer.protocol}, schema {answer.schema}"),
        ("data", f"{answer.data_folder}, {rendering.counted(answer.memory_count, 'active memory', 'active memories')}"),
        ("model", _told(embedder.state, embedder.model, embedder.problem)),
        ("index", _index(index)),
        ("queue", _queue(queue, embedder)),
        ("judge", _judge(answer.judge)),
        ("watcher", _told(watcher.state, rendering.counted(watcher.restarts, "restart"), watcher.problem)),
        ("language model", rendering.language_model(answer.language_model)),
        ("storage", f"{storage.engine}, {database} + journal {journal}, {free} free"),
    ]
    output.table(("part", "state"), [*rows, *coverage_view.rows(coverage.clients)])
    for problem in answer.problems:
        output.line(f"Problem: {problem}", style="yellow")
    for warning in coverage_view.warnings(coverage.clients):
        output.line(f"Not all could be read: {warning}.", style="yellow")
    for job in queue.parked_jobs:
        output.line(
            f"Given up: {job.memory_id} after {rendering.counted(job.attempts, 'attempt')}: {job.reason}",
            style="yellow",
        )
    for verdict in answer.judge.parked_verdicts:
        output.line(
            f"Not judged: {verdict.memory_id} in session {verdict.session} of {verdict.client} after "
            f"{rendering.counted(verdict.attempts, 'attempt')}: {verdict.reason}",
            style="yellow",
        )


def _index(index: admin.IndexStatus) -> str:
    # `empty` is how it began; beside a number of vectors it reads as a contradiction.
    origin = "new" if index.origin == "empty" else index.origin
    return _told(index.state, rendering.counted(index.size, "vector"), origin, index.rebuild_reason)


def _queue(queue: admin.QueueStatus, embedder: admin.EmbedderStatus) -> str:
    if embedder.state == admin.PART_STATE_OFF:
        return f"switched off, {rendering.counted(queue.pending, 'memory', 'memories')} without a vector"
    waiting = f"{queue.pending} waiting"
    if queue.HasField("oldest_time"):
        waiting += f", the oldest since {queue.oldest_time.ToJsonString()}"
    return f"{waiting}, {queue.parked} given up"


def _judge(judge: admin.JudgeQueueStatus) -> str:
    queue = f"{judge.waiting} waiting, {judge.done} done, {judge.parked} given up"
    return _told(judge.state, judge.name, queue, judge.problem)


def _told(state: int, *details: str) -> str:
    return ", ".join((_state(state), *(detail for detail in details if detail)))


def _state(number: int) -> str:
    return short_name(_STATE, number) or "unknown"
