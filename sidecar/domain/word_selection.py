"""Decides by which of a query's terms word search looks for candidates. Pure: no index, no text.

Scoring every memory that holds any term costs as much as the terms are common. So candidates are found by the rarest
terms alone, up to a budget of postings, and then scored by all terms.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sidecar.domain.words import inverse_document_frequency

MAX_QUERY_TERMS: Final = 32
"""More terms than that add cost, not precision; the rarest are kept."""

POSTING_BUDGET: Final = 1_000
"""Most candidates a search looks at: 2 to 3 ms at 100,000 memories on two busy cores; the cost grows with it."""

HASH_BITS: Final = 48


@dataclass(frozen=True, slots=True)
class WeighedTerm:
    """A term of a query and how many memories hold it (1 or more)."""

    term: str
    holding_count: int


@dataclass(frozen=True, slots=True)
class CandidateClause:
    """One way to find candidates: memories with any of the terms or, where `needs_all`, with every one.

    Attributes:
        limit: Only that many of them, the newest.
    """

    terms: tuple[str, ...]
    needs_all: bool
    limit: int


@lru_cache(maxsize=65_536)
def term_hash(term: str) -> int:
    """Return 48 bits that stand for a term where its letters would take too much room.

    Two terms of a vocabulary of a million share a hash with odds of 1 in 300 million for each look-up.
    """
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=HASH_BITS // 8).digest(), "big")


def rarest_first(terms: Sequence[WeighedTerm]) -> list[WeighedTerm]:
    """Return at most `MAX_QUERY_TERMS` terms, the rarest first, equal ones by their letters."""
    return sorted(terms, key=lambda weighed: (weighed.holding_count, weighed.term))[:MAX_QUERY_TERMS]


def best_score(terms: Sequence[WeighedTerm], *, memory_count: int) -> float:
    """Return the BM25 score of a memory of average length that holds each term once: the sum of their idf."""
    return sum(inverse_document_frequency(memory_count, weighed.holding_count) for weighed in terms)


def candidate_clauses(terms: Sequence[WeighedTerm], *, budget: int) -> tuple[CandidateClause, ...]:
    """Return how to find the candidates of a query.

    Args:
        terms: Rarest first.
        budget: Most postings to look at.

    Returns:
        As many of the rarest terms as the budget allows. If even the rarest is over it: the newest memories with both
        of the two rarest, and the newest with the rarest. Empty for no terms.
    """
    if not terms:
        return ()
    rarest = terms[0]
    if rarest.holding_count > budget:
        alone = CandidateClause((rarest.term,), needs_all=False, limit=budget)
        both = CandidateClause(tuple(weighed.term for weighed in terms[:2]), needs_all=True, limit=budget)
        return (both, alone) if len(terms) > 1 else (alone,)
    chosen: list[str] = []
    postings = 0
    for weighed in terms:
        postings += weighed.holding_count
        if postings > budget:
            break
        chosen.append(weighed.term)
    return (CandidateClause(tuple(chosen), needs_all=False, limit=budget),)
