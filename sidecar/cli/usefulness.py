"""Commands on the evidence of use: why, hygiene, judge, replay."""

from typing import Annotated, Final

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import insights_service_pb2 as service
from sidecar.cli import rendering, values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output
from sidecar.cli.session_view import first_words

_STANDING: Final = service.EvidenceStanding.DESCRIPTOR
_SESSION_CHARACTERS: Final = 8


def why(
    context: typer.Context,
    *,
    memory_id: values.MemoryArgument,
    query: Annotated[
        str, typer.Option("--query", "-q", metavar="TEXT", help="Also tell what evidence of use changed for this.")
    ] = "",
    namespace: values.ReadNamespaceOption = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell why a memory ranks as it does: evidence, multiplier and, with a query, what it changed."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.ExplainMemoryRequest(
        memory_id=values.memory_id(memory_id), query=query, namespace=values.namespace(namespace)
    )
    with call.sidecar() as sidecar:
        answer = sidecar.explain_memory(request)
        texts = {} if call.output.is_json else first_words(call.output, sidecar, [request.memory_id])
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        call.output.entries(("memory", "its text"), [(request.memory_id, texts[request.memory_id])])
        _show_why(call.output, answer, has_query=bool(query.strip()))


def hygiene(context: typer.Context, *, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Compute every multiplier anew and clear away what is too old. It happens by itself every few hours."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar, call.output.waiting("Looking at the evidence …"):
        answer = sidecar.run_hygiene()
    if call.output.is_json:
        call.output.document(plain(answer))
    elif answer.already_running:
        call.output.line("It is under way already; nothing was done.")
    else:
        call.output.line(
            f"{rendering.counted(answer.looked_at, 'memory', 'memories')} with evidence, "
            f"{rendering.counted(answer.changed, 'multiplier')} changed, "
            f"{rendering.counted(answer.dropped_recalls, 'recorded recall')} dropped."
        )


def judge(
    context: typer.Context,
    *,
    retry: Annotated[bool, typer.Option("--retry", help="Have what was given up judged again.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how far judging has come, and what was given up."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        retried = sidecar.retry_judge_jobs().retried if retry else 0
        answer = sidecar.get_judge_queue()
    if call.output.is_json:
        call.output.document({**plain(answer), "retried": retried})
        return
    if retry:
        call.output.line(f"{rendering.counted(retried, 'job')} will be judged again.")
    _show_queue(call.output, answer)


def replay(
    context: typer.Context,
    *,
    useful_gain: Annotated[float | None, typer.Option("--useful-gain", min=0, max=2, help="Instead of 0.15.")] = None,
    misled_loss: Annotated[float | None, typer.Option("--misled-loss", min=0, max=2, help="Instead of 0.25.")] = None,
    lowest: Annotated[float | None, typer.Option("--lowest", min=0, max=1, help="Instead of 0.5.")] = None,
    highest: Annotated[float | None, typer.Option("--highest", min=1, max=10, help="Instead of 1.4.")] = None,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=365, help="UTC days, today included.")] = 90,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank recorded recalls under other constants. With none: what reinforcement does, compared with none at all."""
    call = Invocation.of(context, home, is_json=as_json)
    given = {"useful_gain": useful_gain, "misled_loss": misled_loss, "lowest": lowest, "highest": highest}
    proposed = service.ReinforcementConstants(**{name: value for name, value in given.items() if value is not None})
    request = service.ReplayRecallsRequest(proposed=proposed, days=days)
    if not proposed.ByteSize():
        request.baseline.CopyFrom(service.ReinforcementConstants(useful_gain=0, misled_loss=0))
    with call.sidecar() as sidecar, call.output.waiting("Ranking recorded recalls …"):
        answer = sidecar.replay_recalls(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_replay(call.output, answer, has_constants=bool(proposed.ByteSize()))


def _show_why(output: Output, answer: service.ExplainMemoryResponse, *, has_query: bool) -> None:
    output.line(f"multiplier {answer.multiplier:.3f} = {answer.arithmetic}", style="bold")
    marks = ["disputed"] * answer.disputed + ["a standing rule, which lowers it in recall"] * answer.standing_rule
    output.line(
        f"{rendering.counted(answer.surfaced, 'delivery', 'deliveries')} in {answer.window_days} days, which count for "
        f"nothing{'; it is ' + ' and '.join(marks) if marks else ''}"
    )
    if answer.events:
        rows = [
            (
                event.time.ToDatetime().strftime("%Y-%m-%d %H:%M"),
                event.source,
                event.valence,
                f"{event.weight:.2f}",
                event.client or "-",
                (event.session[:_SESSION_CHARACTERS] if output.is_for_a_person else event.session) or "-",
                short_name(_STANDING, event.standing).replace("_", " "),
            )
            for event in answer.events
        ]
        output.table(("when", "source", "says", "weight", "client", "session", "taken as"), rows)
    else:
        output.line("Nothing was said of its use in that time.")
    if has_query:
        _show_rank_change(output, answer.rank_change)


def _show_rank_change(output: Output, change: service.RankChange) -> None:
    if not change.rank and not change.rank_without:
        output.line("It is not among the first 100 for this query.")
        return
    output.line(
        f"For this query: rank {change.rank or 'below 100'}, score {change.score:.3f} = relevance and other factors × "
        f"{change.reinforcement:.3f}; without evidence of use rank {change.rank_without or 'below 100'}, "
        f"score {change.score_without:.3f}"
    )


def _show_queue(output: Output, answer: service.GetJudgeQueueResponse) -> None:
    output.line(
        f"judge {answer.judge or 'off'}: {answer.waiting} waiting, {answer.done} done, {answer.parked} given up"
    )
    if answer.problem:
        output.warn(answer.problem)
    if answer.parked_jobs:
        rows = [
            (job.memory_id, job.client, job.session[:_SESSION_CHARACTERS], str(job.attempts), job.reason)
            for job in answer.parked_jobs
        ]
        output.table(("memory", "client", "session", "attempts", "reason"), rows)
        output.note("`sidecar judge --retry` has them judged again.")


def _show_replay(output: Output, answer: service.ReplayRecallsResponse, *, has_constants: bool) -> None:
    output.line(f"{answer.outcome.replace('_', ' ')}: {answer.reason}", style="bold")
    output.line(
        f"{answer.recalls} recorded recalls, {answer.judged_recalls} with a used memory, {answer.sessions} sessions"
    )
    before, after = ("in use", "proposed") if has_constants else ("without", "in use")
    rows = [
        (part_name, name, _figure(figure, "baseline"), _figure(figure, "proposed"), _interval(figure))
        for part_name, part in (("tuning", answer.tuning), ("held out", answer.held_out))
        for name, figure in (
            ("mean reciprocal rank", part.mean_reciprocal_rank),
            ("nDCG at 10", part.ndcg),
            ("useful recalls", part.useful_share),
        )
    ]
    output.table(("half", "figure", before, after, "95 % interval of the difference"), rows)
    arms = answer.holdout
    if arms.unreinforced.recalls:
        shown = _interval(arms)
        output.line(
            f"Measured: {arms.reinforced.useful} of {arms.reinforced.recalls} recalls useful with reinforcement, "
            f"{arms.unreinforced.useful} of {arms.unreinforced.recalls} without; difference {shown}"
        )


def _figure(figure: service.ReplayFigure, name: str) -> str:
    return f"{getattr(figure, name):.3f}" if figure.HasField(name) else "-"  # type: ignore[arg-type]


def _interval(figure: service.ReplayFigure | service.HoldoutComparison) -> str:
    if not figure.HasField("difference_low"):
        return "too little data"
    return f"{figure.difference_low:+.3f} to {figure.difference_high:+.3f}"
