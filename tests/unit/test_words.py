"""Terms: the same for what is stored and what is asked."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.words import _term, inverse_document_frequency, term_score, tokenise


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("deployments", "deployment"),
        ("parseHTTPHeader", "http header"),
        ("SEAT_HOLDS", "seat_holds"),
        ("the retry_policy module", "retry"),
        ("`--max-size`", "max size"),
        ("café", "CAFÉ"),
        ("部署在星期二", "星期二"),
        ("exit code 137", "137"),
    ],
)
def test_what_is_asked_meets_what_is_stored(stored: str, asked: str) -> None:
    """Stems, parts of identifiers, cases and other scripts meet."""
    assert set(tokenise(asked)) <= set(tokenise(stored))


@given(st.text())
def test_terms_are_plain_words(text: str) -> None:
    """Full text takes them without quoting trouble: letters, digits and underscores, bounded."""
    for term in tokenise(text):
        assert re.fullmatch(r"\w{1,64}", term)


def test_stop_words_are_left_out() -> None:
    """What every text holds tells nothing."""
    assert tokenise("what is it and how do I do it") == ()


@given(st.integers(1, 10_000), st.data())
def test_rarer_terms_tell_more(count: int, data: st.DataObject) -> None:
    """And no term tells less than nothing."""
    rare = data.draw(st.integers(0, count))
    common = data.draw(st.integers(rare, count))
    assert inverse_document_frequency(count, rare) >= inverse_document_frequency(count, common) > 0


def test_a_term_in_a_memory_of_mean_length_scores_its_idf() -> None:
    """That is what a query's best possible score is made of."""
    assert term_score(1, 2.5, length=10, mean_length=10.0) == pytest.approx(2.5)


def test_terms_are_the_same_on_every_thread() -> None:
    """The stemmer's state is no one else's: four threads at once give what one gives."""
    texts = [
        f"{a}ing {a}ed {a}ations re{a}s {b}ies {b}ness" for a in ("deploy", "migrat", "cach") for b in ("quer", "rar")
    ]
    texts = [f"{text} x{number}y{number}ing" for text in texts for number in range(200)]
    expected = [tokenise(text) for text in texts]
    _term.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(tokenise, texts)) == expected
