"""The seam of the judge of usefulness."""

from collections.abc import Sequence
from typing import Protocol

from sidecar.domain.judgement import JudgeCase, Verdict


class Judge(Protocol):
    """Tells from what a session did next whether the memories it was shown were of use. Asked in the background."""

    @property
    def name(self) -> str:
        """Name and version, such as `local-1`; kept with each verdict."""
        ...

    async def judge(self, cases: Sequence[JudgeCase]) -> list[Verdict | None]:
        """Return a verdict for each case, in their order; None where none could be reached.

        MUST NOT hold up the event loop: what computes does so in a thread.

        Raises:
            JudgeUnavailableError: If it cannot judge now, such as a model that is away or a budget that is spent.
        """
        ...
