"""An evaluation as a table for people, and as one JSON document; the same for every judge."""

from collections.abc import Sequence
from typing import Final

from sidecar.api.plain import JsonValue
from sidecar.cli import rendering
from sidecar.cli.judging.evaluation import Evaluation
from sidecar.cli.output import Output
from sidecar.domain.judging.labelled import LabelledCase
from sidecar.domain.judging.scoring import Asked, Judged, Score, by_kind, calibration_error, score
from sidecar.domain.llm import LlmEndpoint, LlmStatus

_DIGITS: Final = 4


def evaluation_document(found: Evaluation, *, with_cases: bool) -> dict[str, JsonValue]:
    """Return the evaluation as `--json` tells it."""
    judged = found.judged
    document: dict[str, JsonValue] = {
        "judge": found.judge,
        "cases": len(judged),
        "unjudged": found.unjudged,
        "not_asked": found.not_asked,
        "stopped": found.stopped,
        "language_model": None if found.llm is None else _plain_llm(found.llm),
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
        document["verdicts"] = [_plain_case(case, entry) for case, entry in zip(found.cases, judged, strict=True)]
    return document


def model_and_place(endpoint: LlmEndpoint) -> str:
    """Return which language model is asked, and where."""
    return f"{endpoint.model} at {endpoint.host} ({rendering.place(is_local=endpoint.is_local)})"


def _plain_llm(status: LlmStatus) -> JsonValue:
    endpoint = status.endpoint
    assert endpoint is not None, "it was asked"
    return {
        "provider": endpoint.provider.value,
        "model": endpoint.model,
        "host": endpoint.host,
        "local": endpoint.is_local,
        "calls": status.spent_today.calls,
        "max_calls": status.budget.calls_a_day,
        "tokens": status.spent_today.tokens,
        "max_tokens": status.budget.tokens_a_day,
        **status.counters,
    }


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


def show_evaluation(output: Output, found: Evaluation, *, with_cases: bool) -> None:
    """Print the evaluation for a person."""
    judged = found.judged
    output.line(f"{found.judge} on {rendering.counted(len(judged), 'case')}", style="bold")
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
    if with_cases:
        _show_cases(output, found.cases, judged)
    _show_course(output, found)


def _show_course(output: Output, found: Evaluation) -> None:
    """Tell what was asked, what it cost, and what is missing from the figures."""
    if found.llm is not None:
        spent, counters = found.llm.spent_today, found.llm.counters
        output.note(
            f"{rendering.counted(spent.calls, 'question')}, {rendering.counted(spent.tokens, 'token')}; "
            f"{rendering.counted(counters['malformed'], 'answer')} of another form than asked for"
        )
    if found.unjudged:
        output.warn(f"{rendering.counted(found.unjudged, 'case')} without a verdict, which counts as three times no.")
    if found.stopped:
        output.warn(f"{rendering.counted(found.not_asked, 'case')} not asked and not in the figures: {found.stopped}.")


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
