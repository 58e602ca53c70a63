"""The command `judge-eval`: judges labelled transcripts and compares. Needs no running sidecar and stores nothing."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from sidecar.api.plain import JsonValue
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption
from sidecar.cli.judging.judges import judge_of
from sidecar.cli.output import Output
from sidecar.domain.judgement import JudgeCase, JudgeKind, Verdict
from sidecar.domain.judging.labelled import LabelledCase, read_labelled
from sidecar.domain.judging.scoring import Asked, Judged, Score, by_kind, calibration_error, score
from sidecar.errors import InvalidInputError
from sidecar.ports import Judge

_STDIN: Final = "-"
_DIGITS: Final = 4
_BATCH: Final = 64


def judge_eval(
    context: typer.Context,
    *,
    file: Annotated[
        str, typer.Argument(help="Labelled transcripts, one JSON object a line; `-` for stdin.", metavar="FILE|-")
    ],
    judge: Annotated[JudgeKind, typer.Option("--judge", help="Which judge.")] = JudgeKind.LOCAL,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show each verdict beside its label.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge labelled transcripts, and show how well the verdicts agree with the labels.

    Nothing is stored, and no sidecar needs to run. docs/judge.md says what a line of the file holds.
    """
    call = Invocation.of(context, home, is_json=as_json)
    cases = list(read_labelled(_lines(file)))
    if not cases:
        raise InvalidInputError("file", file, "at least one labelled transcript; docs/judge.md shows the form")
    name, verdicts = _verdicts(judge, cases, call.output)
    judged = [Judged(entry.label, verdict) for entry, verdict in zip(cases, verdicts, strict=True)]
    if call.output.is_json:
        call.output.document(_document(name, cases, judged, with_cases=verbose))
        return
    _show(call.output, name, judged)
    if verbose:
        _show_cases(call.output, cases, judged)


def _lines(file: str) -> list[str]:
    # Lines end at a line feed only: JSON may hold other separators bare, which `splitlines` would cut at.
    try:
        content = sys.stdin.buffer.read() if file == _STDIN else Path(file).expanduser().read_bytes()
        return content.decode("utf-8").split("\n")
    except OSError as error:
        raise InvalidInputError("file", file, f"a file that can be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError("file", file, f"UTF-8 (byte {error.start} is not)") from error


def _verdicts(kind: JudgeKind, cases: Sequence[LabelledCase], output: Output) -> tuple[str, list[Verdict | None]]:
    with output.counting("Judging") as report:
        judge = judge_of(kind)
        return judge.name, asyncio.run(_judge_all(judge, [entry.case for entry in cases], report))


async def _judge_all(
    judge: Judge, cases: Sequence[JudgeCase], report: Callable[[int, int], None]
) -> list[Verdict | None]:
    verdicts: list[Verdict | None] = []
    for start in range(0, len(cases), _BATCH):
        report(start, len(cases))
        verdicts.extend(await judge.judge(cases[start : start + _BATCH]))
    return verdicts


def _document(
    name: str, cases: Sequence[LabelledCase], judged: Sequence[Judged], *, with_cases: bool
) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = {
        "judge": name,
        "cases": len(judged),
        "unjudged": sum(entry.verdict is None for entry in judged),
    }
    for asked in Asked:
        document[asked.value] = _plain(score(judged, asked)) | {
            "calibration_error": _rounded(calibration_error(judged, asked))
        }
    kinds: dict[str, JsonValue] = {}
    for kind, entries in by_kind(judged).items():
        scores: dict[str, JsonValue] = {asked.value: _plain(score(entries, asked)) for asked in Asked}
        kinds[kind] = {"cases": len(entries)} | scores
    document["kinds"] = kinds
    if with_cases:
        document["verdicts"] = [_plain_case(case, entry) for case, entry in zip(cases, judged, strict=True)]
    return document


def _plain(counts: Score) -> dict[str, JsonValue]:
    return {
        "precision": _rounded(counts.precision),
        "recall": _rounded(counts.recall),
        "f1": _rounded(counts.f1),
        "support": counts.support,
        "tp": counts.tp,
        "fp": counts.fp,
        "fn": counts.fn,
        "tn": counts.tn,
    }


def _plain_case(case: LabelledCase, entry: Judged) -> JsonValue:
    answers: dict[str, JsonValue] = {
        asked.value: {
            "label": entry.is_expected(asked),
            "verdict": entry.is_told(asked),
            "probability": _rounded(entry.probability(asked)),
        }
        for asked in Asked
    }
    return {"transcript": case.transcript, "memory_id": case.case.memory_id, "kind": entry.label.kind} | answers


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _show(output: Output, name: str, judged: Sequence[Judged]) -> None:
    output.line(f"{name} on {len(judged):,} cases", style="bold")
    output.table(
        ("", "precision", "recall", "f1", "right", "wrong", "missed", "calibration error"),
        [_row(asked.value, score(judged, asked), calibration_error(judged, asked)) for asked in Asked],
    )
    kinds = by_kind(judged)
    if kinds:
        output.line()
        output.line("By kind: cases, then for each question how many should be a yes / were told one / rightly so")
        output.table(
            ("kind", "cases", *(asked.value for asked in Asked)),
            [(kind, str(len(entries)), *(_told(entries, asked) for asked in Asked)) for kind, entries in kinds.items()],
        )


def _row(title: str, counts: Score, error: float | None) -> tuple[str, ...]:
    rates = (_percent(counts.precision), _percent(counts.recall), _percent(counts.f1))
    return (title, *rates, str(counts.tp), str(counts.fp), str(counts.fn), _percent(error))


def _told(entries: Sequence[Judged], asked: Asked) -> str:
    counts = score(entries, asked)
    return f"{counts.support} / {counts.tp + counts.fp} / {counts.tp}"


def _percent(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _show_cases(output: Output, cases: Sequence[LabelledCase], judged: Sequence[Judged]) -> None:
    output.line()
    output.line("Each case: probability of each question, `!` where the verdict is not the label's")
    output.table(
        ("transcript", "memory", "kind", *(asked.value for asked in Asked)),
        [
            (case.transcript, case.case.memory_id, entry.label.kind, *(_answer(entry, asked) for asked in Asked))
            for case, entry in zip(cases, judged, strict=True)
        ],
    )


def _answer(entry: Judged, asked: Asked) -> str:
    mark = "" if entry.is_told(asked) == entry.is_expected(asked) else " !"
    return f"{_percent(entry.probability(asked))}{mark}"
