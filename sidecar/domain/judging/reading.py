"""One session's transcript, read once for all memories that it was shown. Pure.

Sets of utterances are bit masks, bit 0 the first utterance: who spoke, who mentions what, what came after what.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sidecar.domain.judgement import JudgeCase
from sidecar.domain.judging.cues import CORRECTION, DISMISSAL, PLAN, REASON, REVERT_COMMAND, TROUBLE
from sidecar.domain.judging.terms import Spoken, Term, spoken
from sidecar.domain.judging.utterances import Source, Utterance, utterances_of

NEVER: Final = 1 << 30
"""A position after every utterance."""


def bits(mask: int) -> Iterator[int]:
    """Yield the positions in a mask, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def first(mask: int) -> int:
    """Return the first position in a mask, `NEVER` if it is empty."""
    return (mask & -mask).bit_length() - 1 if mask else NEVER


def last(mask: int) -> int:
    """Return the last position in a mask, -1 if it is empty."""
    return mask.bit_length() - 1


def mask_of(positions: Iterable[int]) -> int:
    """Return the mask of positions."""
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


@dataclass(frozen=True, slots=True)
class Speakers:
    """Who says what, as masks.

    Attributes:
        said: The agent's words, notes in code included; `done` what it did, `looked` where it only looked.
        outside: All that is not the agent's own: context, user, outputs, and text that an edit quotes.
        asked: The context before the recall, and what the user says.
        user: What the user says after the recall.
    """

    said: int
    done: int
    looked: int
    asked: int
    user: int
    quoted: int
    output: int

    @property
    def agent(self) -> int:
        """All of the agent's own."""
        return self.said | self.done | self.looked

    @property
    def outside(self) -> int:
        """All that is not the agent's own."""
        return self.asked | self.quoted | self.output


class Reading:
    """The transcript of one session and its cues. Remembers what it was asked."""

    def __init__(self, case: JudgeCase) -> None:
        """Read the transcript of a case; that of other memories of the same session is the same."""
        self.utterances: tuple[Utterance, ...] = utterances_of(case)
        self.spoken: tuple[Spoken, ...] = tuple(spoken(utterance.text) for utterance in self.utterances)
        self._mentions: dict[Term, int] = {}

    def __len__(self) -> int:
        return len(self.utterances)

    def mentions(self, term: Term) -> int:
        """Return the utterances in which a term occurs."""
        found = self._mentions.get(term)
        if found is None:
            found = mask_of(position for position, text in enumerate(self.spoken) if text.says(term))
            self._mentions[term] = found
        return found

    def turn(self, position: int) -> int:
        """Return the turn of an utterance; below 0 before the recall."""
        return self.utterances[position].turn

    def after(self, position: int) -> int:
        """Return all utterances after a position."""
        return self._all & ~((1 << (position + 1)) - 1) if position < len(self) else 0

    def before(self, position: int) -> int:
        """Return all utterances before a position."""
        return self._all & ((1 << min(position, len(self))) - 1)

    def later_turns(self, turn: int) -> int:
        """Return all utterances of turns after one."""
        return mask_of(position for position, said in enumerate(self.utterances) if said.turn > turn)

    @cached_property
    def speakers(self) -> Speakers:
        """Who says what."""
        return Speakers(
            said=self._by(Source.SAID, Source.NOTED),
            done=self._by(Source.DONE),
            looked=self._by(Source.LOOKED),
            asked=self._by(Source.CONTEXT, Source.USER),
            user=self._by(Source.USER),
            quoted=self._by(Source.QUOTED),
            output=self._by(Source.OUTPUT),
        )

    @cached_property
    def troubles(self) -> int:
        """Outputs after the recall in which something went wrong."""
        return self._found(TROUBLE, self.speakers.output)

    @cached_property
    def corrections(self) -> int:
        """What the agent says to take something back."""
        return self._found(CORRECTION, self.speakers.said)

    @cached_property
    def dismissals(self) -> int:
        """What the agent says to set something aside."""
        return self._found(DISMISSAL, self._by(Source.SAID))

    @cached_property
    def reasons(self) -> int:
        """What the agent says to give a reason."""
        return self._found(REASON, self.speakers.said)

    @cached_property
    def plans(self) -> int:
        """What the agent announces."""
        return self._found(PLAN, self.speakers.said)

    @cached_property
    def reverts(self) -> int:
        """Commands that take back changes."""
        return self._found(REVERT_COMMAND, self.speakers.done)

    @cached_property
    def undone_turns(self) -> tuple[int, ...]:
        """Turns with deeds of which the agent later took back the larger part."""
        turns = sorted({self.turn(position) for position in bits(self.speakers.done)})
        return tuple(turn for turn in turns if self._is_undone(turn))

    @cached_property
    def _all(self) -> int:
        return (1 << len(self)) - 1

    def _by(self, *sources: Source) -> int:
        return self._where(lambda utterance: utterance.source in sources)

    def _where(self, holds: Callable[[Utterance], bool]) -> int:
        return mask_of(position for position, utterance in enumerate(self.utterances) if holds(utterance))

    def _found(self, cue: re.Pattern[str], among: int) -> int:
        return mask_of(position for position in bits(among) if cue.search(self.utterances[position].text))

    def _is_undone(self, turn: int) -> bool:
        later = self.later_turns(turn)
        if self.reverts & later:
            return True
        earlier = self._words(~later & (self._all ^ self._in_turn(turn, self.speakers.done)))
        brought = self._words(self._in_turn(turn, self.speakers.done)) - earlier
        if not brought:
            return False
        for position in bits(self.speakers.quoted & later):
            replaced = brought & self.spoken[position].words
            kept = replaced & self._words(self._in_turn(self.turn(position), self.speakers.done))
            if 2 * len(replaced) >= len(brought) and 2 * len(kept) <= len(replaced):
                return True
        return False

    def _in_turn(self, turn: int, among: int) -> int:
        return mask_of(position for position in bits(among) if self.turn(position) == turn)

    def _words(self, mask: int) -> frozenset[str]:
        return frozenset().union(*(self.spoken[position].words for position in bits(mask)))
