"""Judges by asking the language model, within its budget. Conservative: what it does not say was of no use."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sidecar.domain.judgement import JudgeCase, TranscriptPiece, Verdict
from sidecar.domain.llm_judging import MAX_CASES, judge_request, read_verdicts
from sidecar.domain.llm_prompt import DataFence
from sidecar.errors import (
    JudgeUnavailableError,
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    RedactionUnavailableError,
    StorageError,
)
from sidecar.ports import Clock, LanguageModel

DEFAULT_MAX_BYTES: Final = 24_000
_VERSION: Final = "llm-1"
_MARKER_BYTES: Final = 8
_AWAY: Final = (LlmUnavailableError, LlmBudgetSpentError, RedactionUnavailableError, StorageError)

log = logging.getLogger(__name__)


class LlmJudge:
    """See `Judge`. Memories of one session that share their transcript go into one question."""

    def __init__(self, *, model: LanguageModel, clock: Clock, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        """Take what is needed.

        Args:
            model: Keeps to the budget by itself.
            clock: For chance.
            max_bytes: Most of a question's text; see `judge_request`.
        """
        self._model = model
        self._clock = clock
        self._max_bytes = max_bytes
        self._paid_for: dict[JudgeCase, Verdict] = {}
        self.dropped = 0
        """Answers that were about nothing asked, or against each other, since the start."""

    @property
    def name(self) -> str:
        """See `Judge.name`."""
        return f"{_VERSION}:{self._model.endpoint.model}"

    async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """See `Judge.judge`. None where the answer did not have the form that was asked for."""
        verdicts: dict[JudgeCase, Verdict | None] = {
            case: self._paid_for[case] for case in cases if case in self._paid_for
        }
        for batch in _batches([case for case in dict.fromkeys(cases) if case not in verdicts]):
            try:
                verdicts |= zip(batch, await self._ask(batch), strict=True)
            except LlmAnswerMalformedError as error:
                log.warning("verdicts dropped", extra={"judge": self.name, "cases": len(batch), "reason": error.reason})
                verdicts |= dict.fromkeys(batch, None)
            except _AWAY as error:
                # The same cases come again; what was answered must not be paid for twice.
                self._paid_for = {case: verdict for case, verdict in verdicts.items() if verdict is not None}
                raise JudgeUnavailableError(self.name, error.message) from error
        self._paid_for = {}
        return [verdicts[case] for case in cases]

    async def _ask(self, batch: Sequence[JudgeCase]) -> tuple[Verdict, ...]:
        fence = DataFence(self._clock.random_bytes(_MARKER_BYTES).hex())
        answer = await self._model.complete(judge_request(fence, batch, max_bytes=self._max_bytes))
        answers = read_verdicts(answer.fields, batch)
        self.dropped += answers.dropped
        return answers.verdicts


def _batches(cases: Sequence[JudgeCase]) -> list[list[JudgeCase]]:
    """Return the cases put together that share their transcript, at most `MAX_CASES` each, in order."""
    by_transcript: defaultdict[tuple[tuple[TranscriptPiece, ...], ...], list[JudgeCase]] = defaultdict(list)
    for case in cases:
        by_transcript[case.before, case.after].append(case)
    return [
        group[start : start + MAX_CASES]
        for group in by_transcript.values()
        for start in range(0, len(group), MAX_CASES)
    ]
