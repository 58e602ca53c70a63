"""Word search over plain collections: the same candidates and scores as the SQLite store, by looking at everything."""

from collections.abc import Iterable, Sequence

from sidecar.adapters.in_memory.tables import Tables
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import WordHit, WordQuery
from sidecar.domain.word_selection import CandidateClause, WeighedTerm, best_score, candidate_clauses, rarest_first
from sidecar.domain.words import inverse_document_frequency, term_score


def weigh_query(tables: Tables, terms: Iterable[str]) -> WordQuery:
    """See `MemoryStore.word_query`."""
    weighed = _weigh(tables, terms)
    return WordQuery(tuple(term.term for term in weighed), best_score(weighed, memory_count=len(tables.tokens)))


def search(tables: Tables, query: WordQuery, selection: MemoryFilter, *, limit: int, budget: int) -> list[WordHit]:
    """See `MemoryStore.search_words`; at most `budget` candidates are scored for each clause."""
    candidates: dict[int, None] = {}
    for clause in candidate_clauses(_weigh(tables, query.terms), budget=budget):
        candidates.update(dict.fromkeys(_candidates(tables, clause, selection)))
    scores = score_keys(tables, query, list(candidates))
    best = sorted(scores.items(), key=lambda item: (-item[1], -item[0]))
    return [WordHit(key, score) for key, score in best[:limit]]


def score_keys(tables: Tables, query: WordQuery, keys: Sequence[int]) -> dict[int, float]:
    """See `MemoryStore.word_scores`."""
    total = len(tables.tokens)
    mean_length = sum(terms.total() for terms in tables.tokens.values()) / total if total else 0.0
    scores: dict[int, float] = {}
    for key in keys:
        terms = tables.tokens.get(key)
        if not terms:
            continue
        score = sum(
            term_score(
                terms[weighed.term],
                inverse_document_frequency(total, weighed.holding_count),
                length=terms.total(),
                mean_length=mean_length,
            )
            for weighed in _weigh(tables, query.terms)
            if terms[weighed.term]
        )
        if score > 0:
            scores[key] = score
    return scores


def _weigh(tables: Tables, terms: Iterable[str]) -> list[WeighedTerm]:
    counted = [WeighedTerm(term, sum(term in held for held in tables.tokens.values())) for term in dict.fromkeys(terms)]
    return rarest_first([weighed for weighed in counted if weighed.holding_count])


def _candidates(tables: Tables, clause: CandidateClause, selection: MemoryFilter) -> list[int]:
    matches = all if clause.needs_all else any
    found = [
        key
        for key in sorted(tables.tokens, reverse=True)
        if matches(term in tables.tokens[key] for term in clause.terms) and selection.covers(tables.memories[key])
    ]
    return found[: clause.limit]
