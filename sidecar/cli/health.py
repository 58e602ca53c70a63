"""The command `health`: which memories need a look, and why. Changes nothing."""

from typing import Annotated

import typer

from sidecar.api.plain import plain, short_name
from sidecar.api.v1 import maintenance_service_pb2 as service
from sidecar.cli import values
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.output import Output

_SEVERITY = service.Severity.DESCRIPTOR
_STYLES = {service.SEVERITY_CRITICAL: "red", service.SEVERITY_WARNING: "yellow"}
# What one finding shows of its memories; the rest is in the answer of `--json`.
_IDS_SHOWN = 3


def health(
    context: typer.Context,
    *,
    namespace: values.ReadNamespaceOption = "",
    contradictions: Annotated[
        bool, typer.Option("--contradictions/--no-contradictions", help="Unresolved contradictions.")
    ] = True,
    low_confidence: Annotated[
        bool, typer.Option("--low-confidence/--no-low-confidence", help="Memories of low confidence.")
    ] = True,
    stale: Annotated[bool, typer.Option("--stale/--no-stale", help="Memories that nobody confirmed lately.")] = True,
    stale_days: Annotated[
        int | None,
        typer.Option(
            "--stale-days", min=1, max=3650, help="What lately means, days.", show_default="setting stale_days"
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, max=1000, help="Most findings to show.")] = 20,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell which memories need a look, the most urgent first, and what to do about each."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.AnalyzeHealthRequest(
        namespace=namespace,
        include_contradictions=contradictions,
        include_low_confidence=low_confidence,
        include_stale=stale,
        stale_days=stale_days or 0,
    )
    with call.sidecar() as sidecar, call.output.waiting("Looking at the memories …"):
        answer = sidecar.analyze_health(request)
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show(call.output, answer, limit=limit)


def _show(output: Output, answer: service.AnalyzeHealthResponse, *, limit: int) -> None:
    output.line(answer.summary)
    for finding in answer.findings[:limit]:
        shown = list(finding.memory_ids[:_IDS_SHOWN])
        if len(finding.memory_ids) > _IDS_SHOWN:
            shown.append(f"and {len(finding.memory_ids) - _IDS_SHOWN} more")
        heading = f"{short_name(_SEVERITY, finding.severity)}  {finding.kind}  {', '.join(shown)}"
        output.line(heading, style=_STYLES.get(finding.severity, ""))
        output.line(finding.recommendation, indent=3)
    total = sum(answer.counts.values())
    if total > limit:
        output.note(f"{limit} of {total}; `--limit` shows more.")
