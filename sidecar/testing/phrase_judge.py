"""A judge for tests: it goes by phrases that a test puts into what an agent says. No judge for real sessions."""

import re
from collections.abc import Sequence
from typing import Final

from sidecar.domain.evidence import SliceKind
from sidecar.domain.judgement import JudgeCase, Verdict
from sidecar.errors import JudgeUnavailableError

_FIGURES: Final = re.compile(r"(used|relevant|misled)=([01](?:\.\d+)?)")


class PhraseJudge:
    """Reads figures such as `used=0.9` from what an agent said last; without any, nothing was of use.

    `out of order` makes it raise, `undecided` reach no verdict; while `is_away` it cannot judge at all.
    """

    def __init__(self) -> None:
        self.is_away = False
        self.asked: list[JudgeCase] = []

    @property
    def name(self) -> str:
        """See `Judge.name`."""
        return "phrases-1"

    async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """See `Judge.judge`."""
        if self.is_away:
            raise JudgeUnavailableError(self.name, "it was told to be away")
        self.asked += cases
        return [_verdict(case) for case in cases]


def _verdict(case: JudgeCase) -> Verdict | None:
    said = "\n".join(piece.text for piece in case.after if piece.kind is SliceKind.AGENT_TEXT)
    if "out of order" in said:
        raise ValueError("this case makes the judge fail")
    if "undecided" in said:
        return None
    figures = {name: float(value) for name, value in _FIGURES.findall(said)}
    return Verdict(
        case.memory_id,
        used=figures.get("used", 0.0),
        relevant=figures.get("relevant", 0.0),
        misled=figures.get("misled", 0.0),
    )
