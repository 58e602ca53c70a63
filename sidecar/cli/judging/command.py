"""The command `judge-eval`: judges labelled transcripts and compares. Needs no running sidecar and stores nothing."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.judging.evaluation import Evaluation, evaluate
from sidecar.cli.judging.judges import open_judge
from sidecar.cli.judging.table import evaluation_document, model_and_place, show_evaluation
from sidecar.domain.judgement import JudgeKind
from sidecar.domain.judging.labelled import read_labelled
from sidecar.errors import InvalidInputError

_STDIN: Final = "-"


def judge_eval(
    context: typer.Context,
    *,
    file: Annotated[
        str, typer.Argument(help="Labelled transcripts, one JSON object a line; `-` for stdin.", metavar="FILE|-")
    ],
    judge: Annotated[JudgeKind, typer.Option("--judge", help="Which judge.")] = JudgeKind.LOCAL,
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls",
            min=0,
            help="Most questions to the language model in this run.",
            show_default="setting llm_calls_a_day",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=0,
            help="Most tokens that this run may cost, in and out.",
            show_default="setting llm_tokens_a_day",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show each verdict beside its label.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge labelled transcripts, and show how well the verdicts agree with the labels.

    Nothing is stored, and no sidecar needs to run. docs/judge.md says what a line of the file holds. The judge `llm`
    sends the transcripts to the language model that the settings of the data folder name.
    """
    call = Invocation.of(context, home, is_json=as_json)
    cases = list(read_labelled(_lines(file)))
    if not cases:
        raise InvalidInputError("file", file, "at least one labelled transcript; docs/judge.md shows the form")

    async def run() -> Evaluation:
        async with open_judge(judge, call.home, max_calls=max_calls, max_tokens=max_tokens) as at_work:
            if at_work.model is not None:
                call.output.note(f"Asking {model_and_place(at_work.model.endpoint)}.")
            with call.output.counting("Judging") as report:
                return await evaluate(at_work, cases, report)

    found = asyncio.run(run())
    if call.output.is_json:
        call.output.document(evaluation_document(found, with_cases=verbose))
    else:
        show_evaluation(call.output, found, with_cases=verbose)
    if found.stopped:
        raise typer.Exit(ExitCode.UNAVAILABLE)


def _lines(file: str) -> list[str]:
    # Lines end at a line feed only: JSON may hold other separators bare, which `splitlines` would cut at.
    try:
        content = sys.stdin.buffer.read() if file == _STDIN else Path(file).expanduser().read_bytes()
        return content.decode("utf-8").split("\n")
    except OSError as error:
        raise InvalidInputError("file", file, f"a file that can be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError("file", file, f"UTF-8 (byte {error.start} is not)") from error
