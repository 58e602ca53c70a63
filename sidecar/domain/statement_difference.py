"""Finds where two statements agree and where they part. Pure; says nothing on what a difference means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from sidecar.domain.statement import Statement, Term
from sidecar.domain.statement_words import DIRECTION_KEYS, ENVIRONMENT_KEYS, are_opposite, stem

_MAX_CIRCUMSTANCE_TERMS: Final = 3
_NEVER: Final = re.compile(r"\bnever\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Slot:
    """One place where both statements say something, but not the same; neither side is empty.

    Attributes:
        label: The key of the term before it, empty at the start.
    """

    older: tuple[Term, ...]
    newer: tuple[Term, ...]
    label: str

    @property
    def terms(self) -> tuple[Term, ...]:
        """Both sides' terms."""
        return (*self.older, *self.newer)


@dataclass(frozen=True)
class Difference:
    """Two statements side by side. Positions in `older_only` and `newer_only` count the terms of their statement."""

    older: Statement
    newer: Statement
    older_only: tuple[int, ...]
    newer_only: tuple[int, ...]

    @property
    def shared_count(self) -> int:
        """How many terms both have."""
        return len(self.older.terms) - len(self.older_only)

    @property
    def shared_share(self) -> float:
        """The share of shared terms in all of both, 0 to 1."""
        total = len(self.older.terms) + len(self.newer_only)
        return self.shared_count / total if total else 0.0

    @property
    def covered_share(self) -> float:
        """The share of the shorter statement's terms that the other has too, 0 to 1."""
        shorter = min(len(self.older.terms), len(self.newer.terms))
        return self.shared_count / shorter if shorter else 0.0

    @property
    def is_reworded_only(self) -> bool:
        """Whether both have the same terms, in whatever order."""
        return not self.older_only and not self.newer_only

    @property
    def is_negation_changed(self) -> bool:
        """Whether one is turned into its opposite and the other is not."""
        return self.older.is_negated != self.newer.is_negated

    @property
    def is_in_same_order(self) -> bool:
        """Whether the shared terms come in one order."""
        return _without(self.older.keys, self.older_only) == _without(self.newer.keys, self.newer_only)

    @property
    def is_order_reversed(self) -> bool:
        """Whether the same words say that A comes before B and that B comes before A."""
        for direction in DIRECTION_KEYS:
            if self.older.keys.count(direction) == self.newer.keys.count(direction) == 1:
                sides = (_sides(self.older, direction), _sides(self.newer, direction))
                return all(sides[0]) and sides[0] == (sides[1][1], sides[1][0])
        return False

    @property
    def is_universal_denial(self) -> bool:
        """Whether one says `never` of what the other says with a circumstance added that is no condition."""
        denied, added = (self.older, self.newer_only) if self.older.is_negated else (self.newer, self.older_only)
        other, missing = (self.newer, self.older_only) if self.older.is_negated else (self.older, self.newer_only)
        extra = [other.terms[i] for i in added]
        return (
            self.is_negation_changed
            and not missing
            and _NEVER.search(denied.text) is not None
            and not denied.is_imperative
            and len(extra) <= _MAX_CIRCUMSTANCE_TERMS
            and all(_is_mere_circumstance(term) for term in extra)
        )

    @property
    def subject_keys(self) -> frozenset[str]:
        """What both are said of."""
        return frozenset(
            term.key
            for number, term in enumerate(self.older.terms)
            if not term.is_after_verb and number not in self.older_only
        )

    @property
    def shared_words(self) -> frozenset[str]:
        """The stems of all words that both have, function words too."""
        return frozenset(_stems_of(self.older.text) & _stems_of(self.newer.text))

    @cached_property
    def slots(self) -> tuple[Slot, ...] | None:
        """The places where they differ, in order; None if something on one side has no counterpart."""
        older, newer = _runs(self.older_only), _runs(self.newer_only)
        if len(older) != len(newer):
            return None
        found = []
        for old, new in zip(older, newer, strict=True):
            label = self.older.keys[old[0] - 1] if old[0] else ""
            slot = Slot(tuple(self.older.terms[i] for i in old), tuple(self.newer.terms[i] for i in new), label)
            if not _are_counterparts(slot):
                return None
            found.append(slot)
        return tuple(found)

    @property
    def older_span(self) -> str:
        """What the older one alone says, in its words; with equal terms, its negation."""
        return _span(self.older, self.older_only)

    @property
    def newer_span(self) -> str:
        """What the newer one alone says, in its words; with equal terms, its negation."""
        return _span(self.newer, self.newer_only)


def difference_of(older: Statement, newer: Statement) -> Difference:
    """Lay two statements side by side; a term that both have counts as shared wherever it stands."""
    matcher = SequenceMatcher(None, older.keys, newer.keys, autojunk=False)
    older_left, newer_left = set(range(len(older.terms))), set(range(len(newer.terms)))
    for block in matcher.get_matching_blocks():
        older_left.difference_update(range(block.a, block.a + block.size))
        newer_left.difference_update(range(block.b, block.b + block.size))
    for i in sorted(older_left):
        moved = next((j for j in sorted(newer_left) if newer.keys[j] == older.keys[i]), None)
        if moved is not None:
            older_left.remove(i)
            newer_left.remove(moved)
    return Difference(older, newer, tuple(sorted(older_left)), tuple(sorted(newer_left)))


def _runs(positions: Sequence[int]) -> list[list[int]]:
    """Group positions that follow one another."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    return runs


def _are_counterparts(slot: Slot) -> bool:
    old, new = slot.older[0], slot.newer[0]
    # `in parallel` and `sequentially` answer one question although only one of them is opened by a word.
    is_same_phrase = old.lead == new.lead or (len(slot.terms) == 2 and are_opposite(old.key, new.key))
    return is_same_phrase and old.is_after_verb == new.is_after_verb


def _span(statement: Statement, positions: Sequence[int]) -> str:
    bounds = [(statement.terms[i].start, statement.terms[i].end) for i in positions] or list(statement.negations)
    if not bounds:
        return ""
    return statement.text[min(start for start, _ in bounds) : max(end for _, end in bounds)]


def _sides(statement: Statement, direction: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return what stands before and after a word, verbs aside."""
    at = statement.keys.index(direction)
    before = frozenset(term.key for term in statement.terms[:at] if not term.is_verb)
    return before, frozenset(term.key for term in statement.terms[at + 1 :] if not term.is_verb)


def _without(keys: Sequence[str], positions: Sequence[int]) -> list[str]:
    left_out = set(positions)
    return [key for number, key in enumerate(keys) if number not in left_out]


def _is_mere_circumstance(term: Term) -> bool:
    return term.is_after_verb and not term.is_in_clause and term.lead != "for" and term.key not in ENVIRONMENT_KEYS


def _stems_of(text: str) -> set[str]:
    return {stem(word) for word in re.findall(r"\w+", text.lower())}
