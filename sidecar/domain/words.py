"""Turns text into terms for word search: the same terms for what is stored and for what is asked.

English words are reduced to their stems; identifiers give their whole and their parts; runs of Chinese, Japanese and
Korean characters give pairs. Stop words are left out: they match everything and cost the most.
"""

import math
import re
from functools import lru_cache
from typing import Final

import snowballstemmer

K1: Final = 1.2
B: Final = 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009); SQLite's FTS5 uses the same."""

MAX_TERM_CHARACTERS: Final = 64

_RUN: Final = re.compile(r"\w+")
_ASCII_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OTHER_PART: Final = re.compile(r"[^\W\d_]+|\d+|[^\W_]+")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_STEMMED: Final = re.compile(r"[a-z]{3,}")

_STOP_TEXT: Final = """
a about above after again all also am an and any are as at be because been before being below between both but by can
could did do does doing done down during each few for from further get got had has have having he her here hers him his
how i if in into is it its itself just let me more most my no nor not now of off on once one only or other our ours out
over own please same she should so some such than that the their theirs them then there these they this those through
to too under until up us very was we were what when where which while who whom why will with would you your yours
"""
STOP_WORDS: Final = frozenset(_STOP_TEXT.split())


def tokenise(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, with repeats; each is made of letters, digits and underscores only."""
    terms: list[str] = []
    for run in _RUN.findall(text):
        _add_terms(run, terms)
    return tuple(terms)


def inverse_document_frequency(document_count: int, holding_count: int) -> float:
    """Return how much a term tells: high for rare ones, never below a trifle.

    Source:
        The form of Robertson and Spärck Jones with FTS5's lower bound of 1e-6.
    """
    value = math.log((document_count - holding_count + 0.5) / (holding_count + 0.5) + 1.0)
    return max(value, 1e-6)


def term_score(term_frequency: int, idf: float, *, length: int, mean_length: float) -> float:
    """Return what one term adds to a document's BM25 score. Lengths are in terms."""
    norm = K1 * (1.0 - B + B * length / mean_length) if mean_length > 0 else K1
    return idf * term_frequency * (K1 + 1.0) / (term_frequency + norm)


def _add_terms(run: str, terms: list[str]) -> None:
    wide = _WIDE.findall(run)
    if wide:
        for part in wide:
            terms.extend(part[i : i + 2] for i in range(max(len(part) - 1, 1)))
        run = _WIDE.sub(" ", run)
        for rest in run.split():
            _add_terms(rest, terms)
        return
    parts = (_ASCII_PART if run.isascii() else _OTHER_PART).findall(run)
    whole = run.strip("_").lower()[:MAX_TERM_CHARACTERS]
    if len(parts) > 1 and whole:
        terms.append(whole)
    for part in parts:
        term = _term(part.lower()[:MAX_TERM_CHARACTERS])
        if term:
            terms.append(term)


@lru_cache(maxsize=65_536)
def _term(word: str) -> str:
    """Return the stem of a word, empty for a stop word."""
    if word in STOP_WORDS:
        return ""
    # Made anew each time: a stemmer keeps its state in itself, and terms are made on several threads.
    return str(snowballstemmer.stemmer("english").stemWord(word)) if _STEMMED.fullmatch(word) else word
