"""Word search: writes memories' terms into the index, finds candidates in it and scores them by BM25.

FTS5 finds, it does not score: its own bm25() reads the whole posting list of every term at each query.
"""
# ruff: noqa: S608 - only names and place holders of our own are put into statements; values are bound

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from sidecar.adapters.sqlite.connection import Row, Value, fetch_all, fetch_one, fetch_value, key_list
from sidecar.adapters.sqlite.term_statistics import (
    COUNT_BITS,
    MAX_TERM_COUNT,
    PackedTerms,
    TermStatistics,
    WordTotals,
)
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.adapters.sqlite.values import selection_clause
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.store_values import WordHit, WordQuery
from sidecar.domain.word_selection import (
    CandidateClause,
    WeighedTerm,
    best_score,
    candidate_clauses,
    rarest_first,
    term_hash,
)
from sidecar.domain.words import K1, B, inverse_document_frequency, tokenise

_KEYS_AT_ONCE: Final = 512
_LAST: Final = "\U0010ffff"
_NO_KEY: Final = 0
_NO_TERM: Final = "0"


def pack_terms(tokens: Sequence[str]) -> PackedTerms:
    """Return a memory's different terms as `memory_words` holds them, in ascending order."""
    counts = Counter(tokens)
    hashes = np.fromiter(map(term_hash, counts), "<u8", len(counts))
    packed: PackedTerms = (hashes << COUNT_BITS) | np.fromiter(counts.values(), "<u8", len(counts)).clip(
        max=MAX_TERM_COUNT
    )
    packed.sort()
    return packed


def add_words(transaction: Transaction, statistics: TermStatistics, key: int, tokens: Sequence[str]) -> None:
    """Make a new memory findable by its terms."""
    packed = pack_terms(tokens)
    connection = transaction.connection
    connection.execute(
        "INSERT INTO memory_words (key, length, terms) VALUES (?, ?, ?)", (key, len(tokens), packed.tobytes())
    )
    transaction.before_commit(partial(_insert_terms, connection, key, set(tokens)))
    transaction.after_commit(partial(statistics.add, packed, length=len(tokens)))


def remove_words(transaction: Transaction, statistics: TermStatistics, key: int, content: str) -> set[str]:
    """Take a memory's terms out of the index, and return them; `remove_traces` then makes it for good."""
    connection = transaction.connection
    row = fetch_one(connection, "SELECT length, terms FROM memory_words WHERE key = ?", (key,))
    if row is None:
        return set()
    packed = np.frombuffer(row[1], "<u8")
    terms = _terms_of(connection, packed, content)
    connection.execute("DELETE FROM memory_words WHERE key = ?", (key,))
    transaction.before_commit(partial(_delete_terms, connection, key, terms))
    transaction.after_commit(partial(statistics.add, packed, length=row[0], step=-1))
    return terms


def remove_traces(connection: apsw.Connection, terms: set[str]) -> None:
    """Rewrite the index if it still holds one of these terms, or the start of one, that no memory has any more.

    FTS5's secure-delete takes terms out of pages but not out of the list of which term begins which page.
    """
    removed = sorted(term.encode() for term in terms)
    # Reading the vocabulary makes FTS5 write what it has pending.
    fetch_value(connection, "SELECT 1 FROM words_vocabulary LIMIT 1")
    for (marked,) in fetch_all(connection, "SELECT term FROM words_idx WHERE length(term) > 1"):
        # The first byte names the index, there being prefix indexes in other tables.
        separator = bytes(marked)[1:]
        place = bisect_left(removed, separator)
        is_of_removed = place < len(removed) and removed[place].startswith(separator)
        if is_of_removed and not _is_start_of_any(connection, separator):
            _rewrite_index(connection)
            return


def weigh_query(statistics: TermStatistics, terms: Iterable[str]) -> WordQuery:
    """See `MemoryStore.word_query`."""
    weighed = rarest_first(statistics.weigh(terms))
    return WordQuery(
        terms=tuple(term.term for term in weighed),
        best_score=best_score(weighed, memory_count=statistics.totals().memory_count),
    )


def search(
    connection: apsw.Connection,
    statistics: TermStatistics,
    query: WordQuery,
    selection: MemoryFilter,
    *,
    limit: int,
    budget: int,
) -> list[WordHit]:
    """See `MemoryStore.search_words`; at most `budget` candidates are scored for each clause."""
    terms = rarest_first(statistics.weigh(query.terms))
    candidates: dict[int, Row] = {}
    for clause in candidate_clauses(terms, budget=budget):
        candidates.update((row[0], row) for row in _candidates(connection, clause, selection))
    keys, scores = _score(list(candidates.values()), terms, statistics.totals())
    # The newest have the highest keys: a key is given out once, in order.
    best = np.lexsort((-keys, -scores))[:limit]
    return [WordHit(int(keys[place]), float(scores[place])) for place in best]


def score_keys(
    connection: apsw.Connection, statistics: TermStatistics, query: WordQuery, keys: Sequence[int]
) -> dict[int, float]:
    """See `MemoryStore.word_scores`."""
    rows: list[Row] = []
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        listed, asked = key_list(keys[start : start + _KEYS_AT_ONCE])
        rows += fetch_all(connection, f"SELECT key, length, terms FROM memory_words WHERE key IN ({listed})", asked)
    found, scores = _score(rows, rarest_first(statistics.weigh(query.terms)), statistics.totals())
    return {int(key): float(score) for key, score in zip(found, scores, strict=True) if score > 0}


def match_expression(terms: Sequence[str], *, needs_all: bool) -> str:
    """Return an FTS5 query for these terms, each quoted: nothing in them is syntax."""
    quoted = ('"' + term.replace('"', '""') + '"' for term in terms)
    return (" AND " if needs_all else " OR ").join(quoted)


def _candidates(connection: apsw.Connection, clause: CandidateClause, selection: MemoryFilter) -> list[Row]:
    condition, arguments = selection_clause(selection)
    bound: list[Value] = [match_expression(clause.terms, needs_all=clause.needs_all), *arguments, clause.limit]
    # CROSS JOIN holds the planner to this order: few candidates first, then their filter fields, from the index alone.
    return fetch_all(
        connection,
        "SELECT mw.key, mw.length, mw.terms FROM words w "
        "CROSS JOIN memories m INDEXED BY memories_filter ON m.key = w.rowid "
        "CROSS JOIN memory_words mw ON mw.key = w.rowid "
        f"WHERE w.words MATCH ? AND {condition} ORDER BY w.rowid DESC LIMIT ?",
        bound,
    )


def _score(
    rows: Sequence[Row], terms: Sequence[WeighedTerm], totals: WordTotals
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the keys of `(key, length, terms)` rows and their BM25 scores."""
    keys = np.array([row[0] for row in rows], np.int64)
    scores = np.zeros(len(rows))
    if not rows or totals.mean_length <= 0:
        return keys, scores
    lengths = np.array([row[1] for row in rows], np.float64)
    norms = K1 * (1.0 - B + B * lengths / totals.mean_length)
    packed = np.frombuffer(b"".join(row[2] for row in rows), "<u8")
    ends = np.cumsum([len(row[2]) // packed.itemsize for row in rows])
    hashes = packed >> COUNT_BITS
    for weighed in terms:
        idf = inverse_document_frequency(totals.memory_count, weighed.holding_count)
        places = np.flatnonzero(hashes == np.uint64(term_hash(weighed.term)))
        holders = np.searchsorted(ends, places, side="right")
        counts = (packed[places] & np.uint64(MAX_TERM_COUNT)).astype(np.float64)
        scores[holders] += idf * counts * (K1 + 1.0) / (counts + norms[holders])
    return keys, scores


def _terms_of(connection: apsw.Connection, packed: PackedTerms, content: str) -> set[str]:
    """Return the terms a memory was added with: to remove others would damage the index."""
    terms = set(tokenise(content))
    stored = set((packed >> COUNT_BITS).tolist())
    if {term_hash(term) for term in terms} == stored:
        return terms
    # Stored by a version that made other terms of the same text.
    vocabulary = connection.execute("SELECT term FROM words_vocabulary")
    return {str(term) for (term,) in vocabulary if term_hash(str(term)) in stored}


def _is_start_of_any(connection: apsw.Connection, start: bytes) -> bool:
    text = start.decode(errors="ignore")
    found = fetch_value(
        connection, "SELECT EXISTS (SELECT 1 FROM words_vocabulary WHERE term >= ? AND term < ?)", (text, text + _LAST)
    )
    return bool(found)


def _rewrite_index(connection: apsw.Connection) -> None:
    # An index of one segment is left alone by `optimize`; a row of no memory makes it two.
    _insert_terms(connection, _NO_KEY, {_NO_TERM})
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    _delete_terms(connection, _NO_KEY, {_NO_TERM})


def _insert_terms(connection: apsw.Connection, key: int, terms: set[str]) -> None:
    text = " ".join(sorted(terms))
    connection.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (key, text))


def _delete_terms(connection: apsw.Connection, key: int, terms: set[str]) -> None:
    text = " ".join(sorted(terms))
    connection.execute("INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)", (key, text))
