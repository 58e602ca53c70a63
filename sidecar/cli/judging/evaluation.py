"""Has a judge judge labelled transcripts, as far as it gets, and tells what that cost. Prints nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sidecar.cli.judging.judges import JudgeAtWork
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.domain.judging.labelled import LabelledCase
from sidecar.domain.judging.scoring import Judged
from sidecar.domain.llm import LlmStatus
from sidecar.domain.llm_judging import MAX_CASES
from sidecar.errors import JudgeUnavailableError

# The local judge embeds so many at once.
_LOCAL_BATCH: Final = 64


@dataclass(frozen=True)
class Evaluation:
    """What came of it.

    Attributes:
        cases: Those that the judge was asked about, in order; `judged` beside them.
        not_asked: How many it was not.
        stopped: Why it was not, in words; empty if it was asked about all.
        llm: What the language model was asked and cost; None if the judge asks none.
    """

    judge: str
    cases: tuple[LabelledCase, ...]
    judged: tuple[Judged, ...]
    not_asked: int = 0
    stopped: str = ""
    llm: LlmStatus | None = None

    @property
    def unjudged(self) -> int:
        """How many have no verdict, since the answer was not of the form that was asked for."""
        return sum(entry.verdict is None for entry in self.judged)


async def evaluate(
    at_work: JudgeAtWork, cases: Sequence[LabelledCase], report: Callable[[int, int], None]
) -> Evaluation:
    """Return how the judge's verdicts compare with the labels.

    Args:
        report: Told how many cases are judged, and how many there are.

    Raises:
        JudgeUnavailableError: If it could not judge a single case; with some judged, the rest is `not_asked`.
    """
    verdicts: list[Verdict | None] = []
    stopped = ""
    for batch in _batches(cases, is_by_question=at_work.model is not None):
        report(len(verdicts), len(cases))
        try:
            verdicts.extend(await at_work.judge.judge(batch))
        except JudgeUnavailableError as error:
            if not verdicts:
                raise
            stopped = error.message
            break
    asked = tuple(cases[: len(verdicts)])
    judged = tuple(Judged(entry.label, verdict) for entry, verdict in zip(asked, verdicts, strict=True))
    status = None if at_work.model is None else await at_work.model.status()
    return Evaluation(at_work.judge.name, asked, judged, len(cases) - len(asked), stopped, status)


def _batches(cases: Sequence[LabelledCase], *, is_by_question: bool) -> Iterator[list[JudgeCase]]:
    """Yield the cases in order; by question, so that each paid answer counts even if the next one does not come."""
    if not is_by_question:
        yield from _chunks([entry.case for entry in cases], _LOCAL_BATCH)
        return
    for _, entries in groupby(cases, key=lambda entry: (entry.transcript, entry.case.before, entry.case.after)):
        yield from _chunks([entry.case for entry in entries], MAX_CASES)


def _chunks(cases: Sequence[JudgeCase], most: int) -> Iterator[list[JudgeCase]]:
    for start in range(0, len(cases), most):
        yield list(cases[start : start + most])
