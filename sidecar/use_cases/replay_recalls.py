"""Tries other constants of reinforcement on recorded recalls. Changes nothing."""

import asyncio
import random
from typing import Final

from sidecar.domain.metrics import window_of
from sidecar.domain.reinforcement import IN_USE, Constants
from sidecar.domain.replay import Draw, ReplayReport, replay
from sidecar.errors import InvalidInputError
from sidecar.ports import Clock, InsightsStore

DEFAULT_REPLAY_DAYS: Final = 90
_SEED: Final = 1
_MOST_GAIN: Final = 2.0
_MOST_FACTOR: Final = 10.0


class ReplayRecalls:
    """Replays recalls."""

    def __init__(self, *, insights: InsightsStore, clock: Clock) -> None:
        self._insights = insights
        self._clock = clock

    async def run(
        self, owner: str, *, proposed: Constants, baseline: Constants = IN_USE, days: int = 0
    ) -> ReplayReport:
        """Return how recorded recalls would have been ranked.

        Raises:
            InvalidInputError: If a constant or the number of days is out of range.
        """
        for constants in (proposed, baseline):
            _check(constants)
        window = window_of(days or DEFAULT_REPLAY_DAYS, now=self._clock.now())
        recalls, histories = await self._insights.recorded_recalls(owner, window)
        # Thousands of recalls, each ranked twice, and a thousand samples of them.
        return await asyncio.to_thread(replay, recalls, histories, baseline=baseline, proposed=proposed, draw=_draws())


def _draws() -> Draw:
    # The same data come to the same answer every time.
    generator = random.Random(_SEED)  # noqa: S311 - it draws samples, no secrets
    return lambda count: generator.choices(range(count), k=count)


def _check(constants: Constants) -> None:
    for name, value, least, most in (
        ("useful_gain", constants.useful_gain, 0.0, _MOST_GAIN),
        ("misled_loss", constants.misled_loss, 0.0, _MOST_GAIN),
        ("lowest", constants.lowest, 0.0, 1.0),
        ("highest", constants.highest, 1.0, _MOST_FACTOR),
    ):
        if not least <= value <= most:
            raise InvalidInputError(name, value, f"a number from {least:g} to {most:g}")
