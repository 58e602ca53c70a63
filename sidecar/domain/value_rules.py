"""Judges one differing value of two otherwise equal statements: does it exclude the other? Pure rules.

Each rule asks for a reason to say that a thing has only one such value; without one the answer is that it is not known.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.domain.quantity import Comparator, Quantity, can_both_hold, same
from sidecar.domain.statement import Term
from sidecar.domain.statement_difference import Difference, Slot
from sidecar.domain.statement_words import (
    ATTRIBUTES,
    DIRECTION_KEYS,
    ENVIRONMENT_KEYS,
    LABELS,
    LIMIT_WORDS,
    SEVERAL_VALUED,
    SINGLE_VALUED_PHRASES,
    are_opposite,
    exclude_each_other,
    stems,
)

_MAX_SLOT_TERMS: Final = 3
_LABEL_KEYS: Final = stems(LABELS)
_LIMIT_KEYS: Final = stems(LIMIT_WORDS)
_SEVERAL_KEYS: Final = stems(SEVERAL_VALUED)
_ATTRIBUTE_KEYS: Final = stems(ATTRIBUTES)
_PHRASE_KEYS: Final = {lead: stems(verbs) for lead, verbs in SINGLE_VALUED_PHRASES.items()}
_PLACE_LEADS: Final = frozenset({"in", "at", "under"})
_PATH: Final = re.compile(r"[/\\]|\w\.[a-z]\w*$")
# `The default branch is protected` gives a property, `the default branch is trunk` a value.
_PROPERTY: Final = re.compile(r"(?:ed|able|ible|ful|less|ous|ive|ing|ly)$")


class Method(StrEnum):
    """The rule that decided."""

    NEGATION = "negation"
    CHANGED_NUMBER = "changed_number"
    CHANGED_VERSION = "changed_version"
    ANTONYM = "antonym"
    EXCLUSIVE_VALUE = "exclusive_value"
    CHANGED_VALUE = "changed_value"
    REVERSED_ORDER = "reversed_order"
    CHANGE_WORDS = "change_words"
    SAME_WORDS = "same_words"
    EQUAL_VALUE = "equal_value"
    OTHER_CASE = "other_case"
    FEW_SHARED_WORDS = "few_shared_words"
    SIMILARITY = "similarity"
    NO_RULE = "no_rule"


class Outcome(StrEnum):
    """What one differing value shows."""

    EXCLUDES = "excludes"
    OPPOSITE = "opposite"
    EQUAL = "equal"
    OTHER_CASE = "other_case"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SlotJudgement:
    """What one differing value shows, by which rule, and what stays open."""

    outcome: Outcome
    method: Method = Method.NO_RULE
    open_question: str = ""


def judge_slot(slot: Slot, difference: Difference) -> SlotJudgement:
    """Judge what the statements say in one place where they differ."""
    if _is_other_case(slot):
        return SlotJudgement(Outcome.OTHER_CASE, Method.OTHER_CASE, "whether their two cases are one")
    older, newer = slot.older, slot.newer
    if len(older) == len(newer) == 1 and older[0].quantity and newer[0].quantity:
        return _judge_quantities(older[0].quantity, newer[0].quantity, difference)
    if len(older) == len(newer) == 1 and are_opposite(older[0].key, newer[0].key):
        return _judge_opposites(slot, difference)
    if _has_exclusive_values(slot) and not _is_several_valued(slot, difference):
        return SlotJudgement(Outcome.EXCLUDES, Method.EXCLUSIVE_VALUE)
    if _is_single_valued(slot, difference):
        return SlotJudgement(Outcome.EXCLUDES, Method.CHANGED_VALUE)
    return SlotJudgement(Outcome.UNKNOWN, open_question="whether the two values exclude each other")


def _is_other_case(slot: Slot) -> bool:
    """Tell whether the two statements are about two things or two circumstances."""
    terms = (*slot.older, *slot.newer)
    return (
        any(not term.is_after_verb for term in terms)
        or any(term.is_in_clause for term in terms)
        or (any(term.key in ENVIRONMENT_KEYS for term in terms) and not _has_exclusive_values(slot))
        or (slot.label in _LABEL_KEYS and any(term.quantity or term.is_name for term in terms))
    )


def _judge_quantities(older: Quantity, newer: Quantity, difference: Difference) -> SlotJudgement:
    if older.dimension != newer.dimension:
        return SlotJudgement(Outcome.UNKNOWN, open_question="figures of two different units")
    if same(older, newer) and older.comparator is newer.comparator:
        return SlotJudgement(Outcome.EQUAL, Method.EQUAL_VALUE)
    is_version = older.dimension == "version"
    if is_version and difference.older.verbs & _SEVERAL_KEYS:
        return SlotJudgement(Outcome.UNKNOWN, open_question="whether both versions hold")
    are_two_limits = older.comparator is newer.comparator and older.comparator in {
        Comparator.AT_LEAST,
        Comparator.AT_MOST,
    }
    if can_both_hold(older, newer) and not (are_two_limits and difference.shared_words & _LIMIT_KEYS):
        return SlotJudgement(Outcome.EQUAL, Method.EQUAL_VALUE)
    return SlotJudgement(Outcome.EXCLUDES, Method.CHANGED_VERSION if is_version else Method.CHANGED_NUMBER)


def _judge_opposites(slot: Slot, difference: Difference) -> SlotJudgement:
    is_direction = slot.older[0].key in DIRECTION_KEYS
    if is_direction and not difference.is_in_same_order:
        return SlotJudgement(Outcome.UNKNOWN, open_question="which of the two comes first")
    if _is_listed(slot) or (not slot.older[0].is_verb and _is_several_valued(slot, difference)):
        return SlotJudgement(Outcome.UNKNOWN, open_question="whether both of the opposites hold")
    return SlotJudgement(Outcome.OPPOSITE, Method.ANTONYM)


def _has_exclusive_values(slot: Slot) -> bool:
    """Tell whether exactly one value on each side excludes one on the other."""
    pairs = [(a, b) for a in slot.older for b in slot.newer if exclude_each_other(a.key, b.key)]
    return len(pairs) == 1 and max(len(slot.older), len(slot.newer)) <= _MAX_SLOT_TERMS


def _is_several_valued(slot: Slot, difference: Difference) -> bool:
    return _is_listed(slot) or bool(difference.older.verbs & difference.newer.verbs & _SEVERAL_KEYS)


def _is_single_valued(slot: Slot, difference: Difference) -> bool:
    """Tell whether a thing fills this frame with one value: `is called X`, `lives in X`, `the owner is X`."""
    if _is_listed(slot) or not _are_like_values(slot):
        return False
    verbs = difference.older.verbs & difference.newer.verbs
    lead = slot.older[0].lead
    if lead == "" and difference.older.is_imperative:
        # `call close()` asks for one act of many.
        return False
    if verbs:
        return bool(verbs & _PHRASE_KEYS.get(lead, frozenset()))
    if (
        lead in _PLACE_LEADS
        and len(difference.subject_keys) > 1
        and all(_PATH.search(term.word) for term in slot.terms)
    ):
        return True
    return lead == "" and bool(difference.subject_keys & _ATTRIBUTE_KEYS) and not any(map(_is_property, slot.terms))


def _are_like_values(slot: Slot) -> bool:
    """Tell whether two values are of one kind, and neither is a part or a kind of the other as far as letters show."""
    texts = (" ".join(term.key for term in slot.older), " ".join(term.key for term in slot.newer))
    return (
        max(len(slot.older), len(slot.newer)) <= _MAX_SLOT_TERMS
        and not any(term.quantity or term.is_verb for term in slot.terms)
        and any(term.is_name for term in slot.older) == any(term.is_name for term in slot.newer)
        and texts[0] not in texts[1]
        and texts[1] not in texts[0]
    )


def _is_property(term: Term) -> bool:
    return not term.is_name and _PROPERTY.search(term.word) is not None


def _is_listed(slot: Slot) -> bool:
    return any(term.is_listed for term in slot.terms)
