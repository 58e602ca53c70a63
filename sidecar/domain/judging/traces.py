"""Where one memory's terms turn up in a transcript, and who said them first. Pure; judges nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.judging.cues import negated_keys
from sidecar.domain.judging.reading import NEVER, Reading, bits, first, last
from sidecar.domain.judging.terms import MAX_CONTENT_CHARACTERS, Rarity, Term, TermKind, spoken, terms_of, weights_of

_DENIED_SHARE: Final = 0.3
"""Of its weight, a term that the memory warns of tells as much when it turns up."""

_MIN_WEIGHT: Final = 0.3
"""Below it a term is too common to say where a memory first took effect."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One term's part in the transcript.

    Attributes:
        weight: How much it tells; `full_weight` where being denied does not count.
        mentions: All utterances with it.
        is_novel: The agent says it, and before anyone else does.
    """

    term: Term
    weight: float
    full_weight: float
    mentions: int
    is_novel: bool
    is_denied: bool

    @property
    def novel_weight(self) -> float:
        """Its weight if it is novel, else 0."""
        return self.weight if self.is_novel else 0.0

    @property
    def is_strong(self) -> bool:
        """Whether it is a name or a figure, which hardly come by chance."""
        return self.term.kind is not TermKind.WORD


class Traces:
    """All terms of one memory in one transcript."""

    def __init__(self, content: str, others: Sequence[str], reading: Reading, rarity: Rarity) -> None:
        """Look for a memory's terms; see `weights_of` for the others and the rarity."""
        terms = terms_of(content)
        weights = weights_of(terms, [spoken(other) for other in others], rarity)
        denied = negated_keys(content[:MAX_CONTENT_CHARACTERS])
        speakers = reading.speakers
        self.reading = reading
        self.content = content[:MAX_CONTENT_CHARACTERS]
        self.traces: list[Trace] = []
        for term, full_weight in zip(terms, weights, strict=True):
            mentions = reading.mentions(term)
            is_denied = term.key in denied or term.key.rstrip("(") in denied
            self.traces.append(
                Trace(
                    term=term,
                    weight=full_weight * (_DENIED_SHARE if is_denied else 1.0),
                    full_weight=full_weight,
                    mentions=mentions,
                    is_novel=first(mentions & speakers.agent) < first(mentions & speakers.outside),
                    is_denied=is_denied,
                )
            )
        self.total = max(sum(trace.weight for trace in self.traces), 1.0)
        self.novel = [trace for trace in self.traces if trace.is_novel]

    def novel_weight(self, within: int, *, strong_only: bool = False) -> float:
        """Return the weight of novel terms that are mentioned within a mask."""
        return sum(
            trace.weight for trace in self.novel if trace.mentions & within and (trace.is_strong or not strong_only)
        )

    def coverage(self, within: int) -> float:
        """Return the most weight that one utterance of a mask mentions, novel or not."""
        return max((self.weight_at(position) for position in bits(within)), default=0.0)

    def weight_at(self, position: int) -> float:
        """Return the weight of all terms in one utterance."""
        return sum(trace.weight for trace in self.traces if trace.mentions >> position & 1)

    def novel_at(self, position: int) -> float:
        """Return the weight of novel terms in one utterance."""
        return sum(trace.weight for trace in self.novel if trace.mentions >> position & 1)

    def first_novel(self, within: int) -> int:
        """Return where within a mask the first telling novel term stands; `NEVER` if nowhere."""
        return min(
            (first(trace.mentions & within) for trace in self.novel if trace.weight > _MIN_WEIGHT), default=NEVER
        )

    def standing(self) -> list[Trace]:
        """Return the novel terms whose last mention in a deed was not replaced by a later edit."""
        speakers = self.reading.speakers
        return [
            trace
            for trace in self.novel
            if (mask := trace.mentions & (speakers.done | speakers.quoted)) and speakers.done >> last(mask) & 1
        ]

    def lasting_weight(self) -> float:
        """Return the weight of novel terms, more for those that the agent still mentions late."""
        count = max(len(self.reading) - 1, 1)
        agent = self.reading.speakers.agent
        return sum(trace.weight * (0.5 + 0.5 * last(trace.mentions & agent) / count) for trace in self.novel)

    def figures(self) -> list[Trace]:
        """Return the figures among the terms."""
        return [trace for trace in self.traces if trace.term.kind is TermKind.FIGURE]


def damped(weight: float) -> float:
    """Return log(1 + weight): the first hit tells more than the tenth."""
    return math.log1p(weight)
