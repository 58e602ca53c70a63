"""The command `doctor`: shows what `sidecar.cli.doctor` finds."""

from typing import Annotated, TypeAlias

import typer

from sidecar.api.plain import JsonValue
from sidecar.cli.doctor import examine
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.findings import Finding, Verdict
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption

_MARKS = {Verdict.GOOD: "ok", Verdict.DOUBTFUL: "?", Verdict.BAD: "!!"}


RetryOption: TypeAlias = Annotated[
    bool, typer.Option("--retry-parked", help="Try again to embed the memories that were given up, then look.")
]


DeepOption: TypeAlias = Annotated[
    bool, typer.Option("--deep", help="Check every page of the database too, and that the index agrees with it.")
]


def doctor(
    context: typer.Context,
    *,
    deep: DeepOption = False,
    retry: RetryOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for what may be wrong, and say how to mend it. Starts nothing; a trial memory is purged again."""
    from sidecar.client import DataFolder, Sidecar  # noqa: PLC0415

    call = Invocation.of(context, home, is_json=as_json)
    if retry:
        _retry_parked(call)
    with call.output.waiting("Looking …"):
        findings = list(
            examine(DataFolder.at(call.home), lambda: Sidecar.connect(call.home, start=False), is_deep=deep)
        )
    if call.output.is_json:
        call.output.document({"findings": [_document(finding) for finding in findings]})
    else:
        for finding in findings:
            call.output.line(f"{_MARKS[finding.verdict]:>2}  {finding.check}: {finding.told}")
            if finding.remedy:
                call.output.line(finding.remedy, indent=6)
    if any(finding.verdict is Verdict.BAD for finding in findings):
        raise typer.Exit(ExitCode.FAILED)


def _retry_parked(call: Invocation) -> None:
    from sidecar.api.v1 import admin_service_pb2 as admin  # noqa: PLC0415
    from sidecar.client import Sidecar  # noqa: PLC0415

    with Sidecar.connect(call.home, start=False) as sidecar, call.output.waiting("Embedding again …"):
        sidecar.retry_parked(admin.RetryParkedRequest())
        sidecar.wait_for_index(admin.WaitForIndexRequest())


def _document(finding: Finding) -> dict[str, JsonValue]:
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "told": finding.told,
        "remedy": finding.remedy,
    }
