"""Word search on SQLite: no text breaks it, common words don't slow it, and it agrees with its twin to the digit."""

import random
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sidecar.adapters.sqlite.connection import fetch_all, open_reader
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.words import pack_terms
from sidecar.domain.recall import MemoryFilter
from sidecar.domain.word_selection import CandidateClause, WeighedTerm, candidate_clauses, rarest_first
from sidecar.domain.words import tokenise
from tests.store_builders import ACTIVE, EVERYTHING, OWNER, SetClock, new_memory, open_store

SYNTAX = [
    "don't",
    "pre-edit",
    "foo:bar",
    "(",
    ")",
    "*",
    '""',
    '"',
    "AND",
    "OR",
    "NOT",
    "NEAR(a b)",
    "^a",
    "a*",
    "+",
    "{a}: b",
    "--",
    ";",
    "\x00",
]


def odd_texts(count: int) -> list[str]:
    chance = random.Random(20260301)
    letters = [chr(code) for code in range(1, sys.maxunicode, 97) if unicodedata.category(chr(code)) != "Cs"]
    texts = list(SYNTAX)
    while len(texts) < count:
        pieces = [
            chance.choice(SYNTAX)
            if chance.random() < 0.3
            else "".join(chance.choices(letters, k=chance.randrange(1, 12)))
            for _ in range(chance.randrange(1, 6))
        ]
        texts.append(chance.choice(["", " ", "\n"]).join(pieces))
    return texts


async def test_two_thousand_odd_queries_find_what_they_say(tmp_path: Path) -> None:
    """Whatever a user types is words to us, never syntax; and a memory is found by its own text."""
    store = SqliteStore.open(tmp_path / "m.db", clock=SetClock())
    texts = odd_texts(2_000)
    keys = {}
    for number in range(0, 2_000, 20):
        keys[number] = (await store.add(new_memory(f"{texts[number]} n{number}"))).changed[0].key
    for number, text in enumerate(texts):
        query = await store.word_query(tokenise(text))
        hits = await store.search_words(query, ACTIVE, limit=500)
        if number in keys and query.terms:
            assert keys[number] in {hit.key for hit in hits}
    assert await store.check_integrity() == ()
    await store.close()


async def test_index_holds_exactly_our_terms(tmp_path: Path) -> None:
    """The engine's own idea of letters must not cut or fold what we made, for every letter there is."""
    letters = [chr(code) for code in range(128, sys.maxunicode) if chr(code).isalnum()]
    texts = [f"a{letter}b" for letter in letters[::40]] + ["ÀÉÎ õ_ü", "İstanbul", "ſ", "e\u0301", "ﬁ", "Ⅷ", "①"]
    store = SqliteStore.open(tmp_path / "m.db", clock=SetClock())
    await store.add(new_memory(" ".join(texts)))
    await store.close()
    reader = open_reader(tmp_path / "m.db")
    stored = {row[0] for row in fetch_all(reader, "SELECT term FROM words_vocabulary")}
    reader.close()
    assert stored == set(tokenise(" ".join(texts)))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    contents=st.lists(
        st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9).map(" k".join), unique=True, max_size=25
    ),
    asked=st.lists(st.sampled_from(["ka", "kb", "kc", "kd", "ke", "kf", "kg", "kh", "zz"]), max_size=9),
    budget=st.integers(1, 30),
    limit=st.integers(1, 30),
    dropped=st.sets(st.integers(0, 24), max_size=5),
)
async def test_both_stores_find_the_same_with_the_same_scores(
    tmp_path_factory: pytest.TempPathFactory,
    contents: list[str],
    asked: list[str],
    budget: int,
    limit: int,
    dropped: set[int],
) -> None:
    """Candidates, order and figures agree within 1e-6, under any budget, after forgetting and purging."""
    answers = []
    for kind in ("in-memory", "sqlite"):
        store = open_store(kind, tmp_path_factory.mktemp("words"), SetClock(), posting_budget=budget)
        outcomes = [
            await store.add(new_memory(f"k{content}", namespace=f"project:p{len(content) % 3}")) for content in contents
        ]
        for number in sorted(dropped):
            if number < len(outcomes):
                memory_ids = [outcomes[number].memory_id]
                await store.forget(OWNER, memory_ids, is_forced=False, is_purge=number % 2 == 0)
        query = await store.word_query(asked)
        selection = MemoryFilter(OWNER, EVERYTHING)
        hits = await store.search_words(query, selection, limit=limit)
        scores = await store.word_scores(query, range(30))
        answers.append((query.terms, query.best_score, [hit.key for hit in hits], [hit.score for hit in hits], scores))
        assert {hit.key: hit.score for hit in hits} == pytest.approx({hit.key: scores[hit.key] for hit in hits})
        await store.close()
    light, real = answers
    assert (light[0], light[2]) == (real[0], real[2])
    assert light[1] == pytest.approx(real[1], abs=1e-6)
    assert light[3] == pytest.approx(real[3], abs=1e-6)
    assert light[4] == pytest.approx(real[4], abs=1e-6)


async def test_statistics_are_the_same_after_opening_again(tmp_path: Path) -> None:
    """What was counted while writing equals what is counted from the file."""
    path = tmp_path / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    ids = [(await store.add(new_memory(f"alpha beta n{number}"))).memory_id for number in range(9)]
    await store.forget(OWNER, ids[:3], is_forced=False, is_purge=True)
    before = (
        await store.word_query(["alpha", "n4", "n1"]),
        await store.search_words(await store.word_query(["n4"]), ACTIVE, limit=1),
    )
    await store.close()
    store = SqliteStore.open(path, clock=SetClock())
    after = (
        await store.word_query(["alpha", "n4", "n1"]),
        await store.search_words(await store.word_query(["n4"]), ACTIVE, limit=1),
    )
    await store.close()
    assert before == after
    assert before[0].terms == ("n4", "alpha")


async def test_purge_of_words_of_an_older_tokeniser_leaves_a_sound_index(tmp_path: Path) -> None:
    """A memory may have been stored with other terms than the present version makes of it."""
    store = SqliteStore.open(tmp_path / "m.db", clock=SetClock())
    new = new_memory("some words here")
    old = type(new)(new.memory, ("other", "words", "words"))
    outcome = await store.add(old)
    await store.forget(OWNER, [outcome.memory_id], is_forced=False, is_purge=True)
    assert (await store.word_query(["other", "words", "here"])).terms == ()
    assert await store.check_integrity() == ()
    await store.close()


def test_statistics_survive_many_changes() -> None:
    """Merging what has changed into the table loses no count."""
    statistics = TermStatistics()
    for number in range(3_000):
        statistics.add(pack_terms([f"t{number * 20 + place}" for place in range(20)] + ["common"]), length=21)
    for number in range(0, 3_000, 2):
        packed = pack_terms([f"t{number * 20 + place}" for place in range(20)] + ["common"])
        statistics.add(packed, length=21, step=-1)
    assert statistics.weigh(["common", "t5", "t25", "nowhere"]) == [WeighedTerm("common", 1_500), WeighedTerm("t25", 1)]
    assert (statistics.totals().memory_count, statistics.totals().mean_length) == (1_500, 21)


def test_candidates_come_from_the_rarest_terms_within_the_budget() -> None:
    """What is looked at is bounded, however common the words are."""
    terms = [WeighedTerm("a", 10), WeighedTerm("b", 20), WeighedTerm("c", 500)]
    assert candidate_clauses(terms, budget=40) == (CandidateClause(("a", "b"), needs_all=False, limit=40),)
    assert candidate_clauses(terms, budget=5) == (
        CandidateClause(("a", "b"), needs_all=True, limit=5),
        CandidateClause(("a",), needs_all=False, limit=5),
    )
    assert candidate_clauses(terms[:1], budget=5) == (CandidateClause(("a",), needs_all=False, limit=5),)
    assert candidate_clauses([], budget=5) == ()
    assert rarest_first([terms[2], terms[0]]) == [terms[0], terms[2]]


async def test_budget_bounds_what_a_search_returns(tmp_path: Path) -> None:
    """With only common words, the newest memories that hold the rarest, and those that hold both, are scored."""
    store = SqliteStore.open(tmp_path / "m.db", clock=SetClock(), posting_budget=5)
    for number in range(40):
        await store.add(new_memory(f"build n{number}" + (" test" if number % 2 else "")))
    hits = await store.search_words(await store.word_query(["build", "test"]), ACTIVE, limit=99)
    assert [hit.key for hit in hits] == [40, 38, 36, 34, 32]
    await store.close()
