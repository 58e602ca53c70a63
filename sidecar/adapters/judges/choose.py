"""Picks the judge that the settings name. Asks nobody."""

from collections.abc import Callable

from sidecar.adapters.judges.llm import LlmJudge
from sidecar.domain.judgement import JudgeKind
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, Judge, LanguageModel


def choose_judge(
    kind: JudgeKind, *, local: Callable[[], Judge], model: LanguageModel | None, clock: Clock, max_bytes: int
) -> Judge:
    """Return the judge.

    Args:
        local: Makes the local one.
        model: The language model, behind its budget; None if there is none.
        clock: For chance.
        max_bytes: Most text of one question of the judge `llm`.

    Raises:
        InvalidInputError: If the language model is to judge and there is none.
    """
    if kind is JudgeKind.LOCAL:
        return local()
    if model is None:
        raise InvalidInputError("judge", kind.value, "`local`, or a language model set up by the settings `llm_…`")
    return LlmJudge(model=model, clock=clock, max_bytes=max_bytes)
