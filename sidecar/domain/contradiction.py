"""Compares two statements by rules: can both be true, or does the newer one replace the older? No model, no I/O.

Precision comes first: a rule fires only where the two share their wording but for one value, and where that value is
one of which a thing has one. What the rules cannot tell is said in `not_checked`, never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sidecar.domain.statement import Statement, parse_statement, split_statements
from sidecar.domain.statement_difference import Difference, difference_of
from sidecar.domain.statement_words import ENVIRONMENT_KEYS
from sidecar.domain.value_rules import Method, Outcome, SlotJudgement, judge_slot

MIN_SIMILARITY: Final = 0.7
"""Below it two memories are about different things too often to be worth comparing; a setting of the caller's."""

MAX_STATEMENTS: Final = 12
MAX_STATEMENT_CHARACTERS: Final = 400
MAX_TERMS: Final = 40
"""Longer texts are compared as far as this; what was left out is said."""

SAME_TOPIC_SHARE: Final = 0.5
"""By so much of the shorter one's terms two statements must agree before a word of change counts as replacing."""


_SHORT_TERMS: Final = 4


class Verdict(StrEnum):
    """What comparing two statements showed."""

    CONTRADICTS = "contradicts"
    SUPERSEDES = "supersedes"
    COMPATIBLE = "compatible"
    UNRELATED = "unrelated"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True, slots=True)
class DifferingSpans:
    """Where two statements part, in their own words; one of them may be empty."""

    older: str
    newer: str


@dataclass(frozen=True, slots=True)
class StatementComparison:
    """What comparing two texts showed.

    Attributes:
        evidence: None unless the rule rests on a difference.
        not_checked: What no rule looked at, as phrases for a person.
    """

    verdict: Verdict
    method: Method
    evidence: DifferingSpans | None = None
    not_checked: tuple[str, ...] = ()


def compare_statements(
    older: str, newer: str, *, similarity: float, min_similarity: float = MIN_SIMILARITY
) -> StatementComparison:
    """Compare two texts of one or a few short statements.

    Args:
        older: What was stored first.
        newer: What was stored later.
        similarity: Raw cosine of the two.
        min_similarity: Pairs below it are not compared.

    Returns:
        `CONTRADICTS` if not both can be true; `SUPERSEDES` if the newer one says by itself that things have changed
        (what it replaces is then no open contradiction); else `COMPATIBLE` or `UNRELATED`, which mean that no rule
        found more; `NOT_CHECKED` with the reason if no rule ran.
    """
    if similarity < min_similarity:
        reason = f"similarity {similarity:.2f} is below {min_similarity:.2f}"
        return StatementComparison(Verdict.NOT_CHECKED, Method.SIMILARITY, not_checked=(reason,))
    left_out: list[str] = []
    olds = _statements(older, "older", left_out)
    news = _statements(newer, "newer", left_out)
    if not olds or not news:
        return StatementComparison(Verdict.NOT_CHECKED, Method.NO_RULE, not_checked=(*left_out, "nothing to compare"))
    if len(olds) == 1 and len(news) > 1 and len(newer) <= MAX_STATEMENT_CHARACTERS:
        # `X was dropped; Y does it now` is one announcement, which only together names both.
        announced = _replacing(difference_of(olds[0], parse_statement(newer)))
        if announced is not None:
            return announced
    found = max(_comparisons(olds, news), key=lambda comparison: _WEIGHT[comparison.verdict])
    return replace(found, not_checked=(*found.not_checked, *left_out)) if left_out else found


def _statements(text: str, side: str, left_out: list[str]) -> list[Statement]:
    """Return the statements that are short and early enough to compare; note the others."""
    texts = split_statements(text)
    parsed = [parse_statement(part) for part in texts[:MAX_STATEMENTS] if len(part) <= MAX_STATEMENT_CHARACTERS]
    short = [statement for statement in parsed if 0 < len(statement.terms) <= MAX_TERMS]
    if len(short) < len(texts):
        left_out.append(f"{len(texts) - len(short)} of {len(texts)} statements of the {side} text")
    return short


def _comparisons(olds: Sequence[Statement], news: Sequence[Statement]) -> list[StatementComparison]:
    """Compare each newer statement with the older one it shares most words with."""
    found: list[StatementComparison] = []
    for new in news:
        nearest = max((difference_of(old, new) for old in olds), key=lambda difference: difference.shared_share)
        found.append(_compare(nearest))
    return found


def _compare(difference: Difference) -> StatementComparison:
    replacing = _replacing(difference)
    if replacing is not None:
        return replacing
    if difference.shared_count == 0:
        return StatementComparison(Verdict.UNRELATED, Method.FEW_SHARED_WORDS, not_checked=("meaning in other words",))
    doubt = _doubt(difference)
    return _undecided(difference, doubt) if doubt else _from_difference(difference)


def _from_difference(difference: Difference) -> StatementComparison:
    """Decide for two statements about the same, without a reason for doubt."""
    if difference.is_reworded_only:
        return _same_words(difference)
    if difference.is_universal_denial:
        return _contradiction(Method.NEGATION, difference)
    slots = difference.slots
    if slots is None:
        return _undecided(difference, "whether what only one of them says matters to the other")
    return _from_slots(difference, [judge_slot(slot, difference) for slot in slots])


def _from_slots(difference: Difference, judged: Sequence[SlotJudgement]) -> StatementComparison:
    """Decide by what each differing value shows; one that shows nothing leaves all open."""
    outcomes = [judgement.outcome for judgement in judged]
    for judgement in judged:
        if judgement.outcome in {Outcome.OTHER_CASE, Outcome.UNKNOWN}:
            return _undecided(difference, judgement.open_question, method=judgement.method)
    is_denied = difference.is_negation_changed
    for judgement in judged:
        if judgement.outcome is Outcome.EXCLUDES:
            # `It is 3` and `it is not 5` agree.
            return _undecided(difference, "") if is_denied else _contradiction(judgement.method, difference)
    flips = outcomes.count(Outcome.OPPOSITE) + is_denied
    if flips % 2 == 0:
        return StatementComparison(Verdict.COMPATIBLE, Method.EQUAL_VALUE, _spans(difference))
    return _contradiction(Method.ANTONYM if Outcome.OPPOSITE in outcomes else Method.NEGATION, difference)


def _same_words(difference: Difference) -> StatementComparison:
    if difference.is_negation_changed:
        return _contradiction(Method.NEGATION, difference)
    if difference.is_order_reversed:
        return _contradiction(Method.REVERSED_ORDER, difference)
    return StatementComparison(Verdict.COMPATIBLE, Method.SAME_WORDS)


def _replacing(difference: Difference) -> StatementComparison | None:
    """Return that the newer statement replaces the older, if it says so itself and is about the same."""
    change = difference.newer.change
    if change is None or change.is_adding or not _is_same_topic(difference) or _other_environment(difference):
        return None
    if change.is_contrast and difference.older_only:
        return None
    replaces = bool(difference.older_only) or change.is_named or difference.is_negation_changed
    if not change.is_ending and not (difference.newer_only and replaces):
        return None
    if difference.older.is_negated and change.is_ending and not difference.newer_only:
        return None
    return StatementComparison(Verdict.SUPERSEDES, Method.CHANGE_WORDS, _spans(difference))


def _is_same_topic(difference: Difference) -> bool:
    if difference.covered_share < SAME_TOPIC_SHARE:
        return False
    old, new = difference.older, difference.newer
    # One shared word is a topic only where it is the subject and both say little else.
    is_short = max(len(old.terms), len(new.terms)) <= _SHORT_TERMS and old.keys[0] in new.keys
    return difference.shared_count > 1 or is_short


def _other_environment(difference: Difference) -> bool:
    old = ENVIRONMENT_KEYS & set(difference.older.keys)
    new = ENVIRONMENT_KEYS & set(difference.newer.keys)
    return bool(old and new and old != new)


def _doubt(difference: Difference) -> str:
    """Return why no difference between the two would prove anything, empty if one could."""
    old, new = difference.older, difference.newer
    if old.is_hedged or new.is_hedged:
        return "statements that hold only of some or sometimes"
    if old.is_restricted != new.is_restricted:
        return "an exception or restriction that only one of them makes"
    if old.is_episode or new.is_episode:
        return "accounts of single occasions"
    return ""


def _contradiction(method: Method, difference: Difference) -> StatementComparison:
    return StatementComparison(Verdict.CONTRADICTS, method, _spans(difference))


def _undecided(difference: Difference, question: str, *, method: Method = Method.NO_RULE) -> StatementComparison:
    asked = (question,) if question else ()
    return StatementComparison(Verdict.COMPATIBLE, method, _spans(difference), not_checked=asked)


def _spans(difference: Difference) -> DifferingSpans:
    return DifferingSpans(older=difference.older_span, newer=difference.newer_span)


_WEIGHT: Final = {
    Verdict.CONTRADICTS: 4,
    Verdict.SUPERSEDES: 3,
    Verdict.COMPATIBLE: 2,
    Verdict.UNRELATED: 1,
    Verdict.NOT_CHECKED: 0,
}
