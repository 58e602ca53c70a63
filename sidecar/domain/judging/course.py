"""What became of what the agent took from a memory: kept, dropped after trouble, corrected, undone. Pure."""

from collections.abc import Iterator
from typing import Final

from sidecar.domain.judging.meaning import Meaning
from sidecar.domain.judging.reading import NEVER, bits, first
from sidecar.domain.judging.traces import Traces, damped

_SAID_WEIGHT: Final = 0.5
_SAID_WEIGHT_WITH_MEANING: Final = 0.2
_SAID_MEANING: Final = 0.5
"""The agent speaks of a memory where it says so much novel of it, or less with so near a meaning."""

_NEAR_TURNS: Final = 3
_REACTIONS: Final = 3
_UNRELATED_MEANING: Final = 0.3
_TURNS_FROM_WORD_TO_DEED: Final = 2


class Course:
    """The events around one memory, in the order of the transcript."""

    def __init__(self, traces: Traces, meaning: Meaning) -> None:
        """Find where the memory takes effect."""
        reading = traces.reading
        self._reading = reading
        self._traces = traces
        self._meaning = meaning
        self._speakers = reading.speakers
        self.first_deed = traces.first_novel(self._speakers.done)
        self.first_word = traces.first_novel(self._speakers.said)
        self.first_sign = traces.first_novel(self._speakers.agent)
        self.spoken_of = [position for position in bits(self._speakers.said) if self._speaks_of(position)]

    def signals(self) -> Iterator[tuple[str, float]]:
        """Yield each signal's name and value."""
        yield from self._trouble_signals()
        yield from self._word_signals()
        yield "undone", damped(self._undone_weight())
        yield "other_figure", float(self._names_other_figure())

    def _trouble_signals(self) -> Iterator[tuple[str, float]]:
        reading, speakers, traces = self._reading, self._speakers, self._traces
        since = reading.after(self.first_deed)
        setbacks = reading.troubles | speakers.user
        stays = self._after_setback(setbacks)
        share = stays / max(damped(traces.novel_weight(speakers.done)), 0.1)
        yield "trouble", float(bool(reading.troubles))
        yield "trouble_unsettled", (1.0 - min(share, 1.0)) if reading.troubles & since else 0.0
        yield "trouble_first", float(self.first_sign < NEVER and self._has_early(setbacks))
        yield "reverted", float(bool(reading.reverts & since))
        yield "stays", stays
        yield "abandoned", self._abandoned() if setbacks & since else 0.0

    def _has_early(self, setbacks: int) -> bool:
        early = setbacks & self._reading.before(self.first_sign)
        return any(self._reading.turn(position) >= 0 for position in bits(early))

    def _after_setback(self, setbacks: int) -> float:
        """Return how much of what was done before the first setback is done again after it."""
        if self.first_deed == NEVER:
            return 0.0
        position = first(setbacks & self._reading.later_turns(self._reading.turn(self.first_deed)))
        earlier = self._speakers.done & self._reading.before(position)
        later = self._speakers.done & self._reading.after(position)
        return damped(
            sum(trace.weight for trace in self._traces.novel if trace.mentions & earlier and trace.mentions & later)
        )

    def _abandoned(self) -> float:
        """Return how much of what was done is not done any more after the agent corrected itself."""
        if self.first_deed == NEVER:
            return 0.0
        turn = self._reading.turn(self.first_deed)
        for position in bits(self._reading.corrections & self._reading.later_turns(turn)):
            if self._is_reaction(position, turn):
                earlier = self._speakers.done & self._reading.before(position)
                later = self._speakers.done & self._reading.after(position)
                return damped(
                    sum(
                        trace.weight
                        for trace in self._traces.novel
                        if trace.mentions & earlier and not trace.mentions & later
                    )
                )
        return 0.0

    def _word_signals(self) -> Iterator[tuple[str, float]]:
        reading, traces = self._reading, self._traces
        spoken_of = self.spoken_of
        undone = self._words_without_deeds()
        is_planned = any(reading.plans >> position & 1 for position in spoken_of)
        reasoned = [traces.novel_at(position) for position in spoken_of if reading.reasons >> position & 1]
        is_dropped = self._is_dropped()
        yield "dismissed_unacted", float(self._is_dismissed_nearby() and self.first_deed == NEVER)
        yield "planned_only", damped(undone) if is_planned else 0.0
        yield "reasoned", damped(max(reasoned, default=0.0))
        yield "dropped", float(is_dropped)
        yield "dropped_unacted", damped(undone) if is_dropped else 0.0
        yield "spoken_of", damped(len(spoken_of))

    def _speaks_of(self, position: int) -> bool:
        novel = self._traces.novel_at(position)
        near = self._meaning.own[position] > _SAID_MEANING
        return novel > _SAID_WEIGHT or (near and novel > _SAID_WEIGHT_WITH_MEANING)

    def _words_without_deeds(self) -> float:
        said, done = self._speakers.said, self._speakers.done
        return sum(trace.weight for trace in self._traces.novel if trace.mentions & said and not trace.mentions & done)

    def _is_dismissed_nearby(self) -> bool:
        if self.first_word == NEVER:
            return False
        until = self._reading.turn(self.first_word) + _NEAR_TURNS
        since = self._reading.dismissals & ~self._reading.before(self.first_word)
        return any(self._reading.turn(position) <= until for position in bits(since))

    def _is_dropped(self) -> bool:
        """Tell whether one of the first reactions to what came after the agent spoke of it sets it aside."""
        if not self.spoken_of:
            return False
        against = self._reading.dismissals | self._reading.corrections
        reactions = list(self._reactions(self._reading.turn(self.spoken_of[0])))
        return any(against >> position & 1 for position in reactions[:_REACTIONS])

    def _reactions(self, turn: int) -> Iterator[int]:
        """Yield what the agent says in later turns, once an output or the user came in between."""
        for position in bits(self._speakers.said & self._reading.later_turns(turn)):
            if self._is_reaction(position, turn):
                yield position

    def _is_reaction(self, position: int, turn: int) -> bool:
        between = (self._speakers.output | self._speakers.user) & self._reading.before(position)
        return any(self._reading.turn(other) > turn for other in bits(between))

    def _undone_weight(self) -> float:
        """Return how closely a deed that was taken back goes with the memory: what it brought, or what led to it."""
        best = 0.0
        for turn in self._reading.undone_turns:
            for position in bits(self._speakers.said | self._speakers.done):
                own_turn = self._reading.turn(position)
                is_deed = own_turn == turn and bool(self._speakers.done >> position & 1)
                is_lead = turn - _TURNS_FROM_WORD_TO_DEED <= own_turn <= turn and bool(
                    self._speakers.said >> position & 1
                )
                if is_deed or is_lead:
                    near = max(0.0, self._meaning.own[position] - _UNRELATED_MEANING)
                    best = max(best, self._traces.novel_at(position) + near)
        return best

    def _names_other_figure(self) -> bool:
        """Tell whether the agent quotes the memory's figure and, after looking, another one of the same dimension."""
        own = {trace.term.key for trace in self._traces.figures()}
        if not self.spoken_of or not own & self._reading.spoken[self.spoken_of[0]].figures:
            return False
        dimensions = {key.partition(":")[0] for key in own} - {"n"}
        for position in self._reactions(self._reading.turn(self.spoken_of[0])):
            figures = self._reading.spoken[position].figures
            is_about = self._meaning.own[position] > _UNRELATED_MEANING or self._traces.novel_at(position) > 0.0
            if is_about and not own & figures and any(key.partition(":")[0] in dimensions for key in figures):
                return True
        return False
