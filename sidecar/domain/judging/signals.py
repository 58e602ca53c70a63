"""What a verdict is reached from: some forty figures about one memory in one transcript, each with a name. Pure."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from sidecar.domain.judgement import JudgeCase
from sidecar.domain.judging.course import Course
from sidecar.domain.judging.meaning import Meaning
from sidecar.domain.judging.reading import Reading, bits
from sidecar.domain.judging.terms import Rarity
from sidecar.domain.judging.traces import Trace, Traces, damped
from sidecar.domain.memory import MemoryType

_RULES: Final = frozenset({MemoryType.PREFERENCE, MemoryType.CONVENTION, MemoryType.PATTERN, MemoryType.GOLDEN_RULE})
_NO_LEAD: Final = -0.3
"""Stands for the lead where nobody said anything that could have one."""

_MAX_OTHERS: Final = 10
"""A session with more memories is hardly more crowded."""


def signals_of(case: JudgeCase, reading: Reading, meaning: Meaning, rarity: Rarity) -> dict[str, float]:
    """Return the signals of a case by name, always the same names in the same order."""
    traces = Traces(case.content, case.others, reading, rarity)
    return dict(
        [
            *_word_signals(traces),
            *_meaning_signals(reading, meaning),
            *Course(traces, meaning).signals(),
            ("twin_lead", _twin_lead(case, traces, meaning, rarity)),
            ("is_rule", float(case.memory_type in _RULES)),
            ("others", float(min(len(case.others), _MAX_OTHERS))),
            ("size", math.log(traces.total)),
        ]
    )


def _word_signals(traces: Traces) -> Iterator[tuple[str, float]]:
    reading = traces.reading
    speakers = reading.speakers
    novel = sum(trace.weight for trace in traces.novel)
    covered = traces.coverage(speakers.agent)
    standing = traces.standing()
    yield "novel", damped(novel)
    yield "novel_share", novel / traces.total
    yield "novel_done", damped(traces.novel_weight(speakers.done))
    yield "novel_names_done", damped(traces.novel_weight(speakers.done, strong_only=True))
    yield "novel_done_at_once", damped(max(map(traces.novel_at, bits(speakers.done)), default=0.0))
    yield "covered", damped(covered)
    yield "covered_share", covered / traces.total
    yield "covered_said", damped(traces.coverage(speakers.said))
    yield "covered_quoted", damped(traces.coverage(speakers.quoted))
    yield "names_kept", damped(sum(trace.weight for trace in standing if trace.is_strong))
    yield "replaced", damped(traces.novel_weight(speakers.done) - _done_weight(standing, speakers.done))
    yield (
        "denied_done",
        damped(sum(trace.full_weight for trace in traces.traces if trace.is_denied and trace.mentions & speakers.done)),
    )


def _done_weight(standing: Sequence[Trace], done: int) -> float:
    return sum(trace.weight for trace in standing if trace.mentions & done)


def _meaning_signals(reading: Reading, meaning: Meaning) -> Iterator[tuple[str, float]]:
    speakers = reading.speakers
    said, done = _most(meaning.own, speakers.said), _most(meaning.own, speakers.done)
    looked, asked = _most(meaning.own, speakers.looked), _most(meaning.own, speakers.asked)
    yield "meaning_said", said
    yield "meaning_done", done
    yield "meaning_looked", looked
    yield "meaning_asked", asked
    yield "meaning_gain", _most(meaning.own, speakers.agent) - max(asked, 0.0)
    yield "meaning_dismissed", _most(meaning.own, reading.dismissals)
    yield "meaning_corrected", _most(meaning.own, reading.corrections)
    yield "sounds_taken_back", _most(meaning.taking_back, speakers.said)
    yield "sounds_set_aside", _most(meaning.setting_aside, speakers.said)
    yield "lead_said", _most(meaning.lead, speakers.said, otherwise=_NO_LEAD)
    yield "lead_done", _most(meaning.lead, speakers.done, otherwise=_NO_LEAD)
    yield "lead_asked", _most(meaning.lead, speakers.asked, otherwise=_NO_LEAD)


def _most(cosines: Sequence[float], within: int, *, otherwise: float = 0.0) -> float:
    return max((cosines[position] for position in bits(within)), default=otherwise)


def _twin_lead(case: JudgeCase, traces: Traces, meaning: Meaning, rarity: Rarity) -> float:
    """Return how much more of the memory than of its twin the agent says and does to the end; 0 without a twin."""
    if meaning.twin < 0:
        return 0.0
    twin = case.others[meaning.twin]
    rest = [case.content, *(other for place, other in enumerate(case.others) if place != meaning.twin)]
    return traces.lasting_weight() - Traces(twin, rest, traces.reading, rarity).lasting_weight()
