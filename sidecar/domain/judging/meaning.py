"""How near in meaning things are: one memory to each utterance, the agent's words to ways of saying. Plain values."""

from dataclasses import dataclass
from typing import Final

TWIN_COSINE: Final = 0.55
"""From this cosine on two memories are about one thing, and may contradict each other."""

TAKING_BACK: Final = (
    "That was a mistake, I am undoing the change.",
    "That made it worse, so I am rolling it back.",
    "It no longer exists, it was renamed.",
    "This did not help, reverting it.",
)
SETTING_ASIDE: Final = (
    "So that is not the cause.",
    "That note is outdated and no longer true.",
    "That does not apply here.",
    "I checked it and ruled it out.",
)
"""Ways of saying that something went so; what is near to one of them probably says the same in other words."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of one case; all tuples are as long as the reading, with 0 for what was not embedded.

    Attributes:
        own: Of the memory, or of its nearest sentence, with each utterance.
        lead: `own` less the nearest other memory's; 0 everywhere if there is no other.
        taking_back: Of `TAKING_BACK` with each utterance, as is `setting_aside`.
        twin: Place among the case's others of the one nearest to the memory, -1 if there is none near enough.
    """

    own: tuple[float, ...]
    lead: tuple[float, ...]
    taking_back: tuple[float, ...]
    setting_aside: tuple[float, ...]
    twin: int = -1
