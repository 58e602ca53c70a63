"""How near in meaning one memory is to each utterance, and how near the others are. Plain values; who embeds is told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """Cosines of one memory; all tuples are as long as the reading, with 0 for what was not embedded.

    Attributes:
        own: Of the memory, or of its nearest sentence, with each utterance.
        lead: `own` less the nearest other memory's; 0 everywhere if there is no other.
        twin: Place among the case's others of the one nearest to the memory, -1 if there is none near enough.
    """

    own: tuple[float, ...]
    lead: tuple[float, ...]
    twin: int = -1


TWIN_COSINE = 0.55
"""From this cosine on two memories are about one thing, and may contradict each other."""
