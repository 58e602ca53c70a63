"""The stored form of a text: one for each meaning, safe for C libraries and for UTF-8."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.text import normalise

ANY_TEXT = st.text(st.characters(), max_size=200)


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("", ""),
        ("  two words \n", "two words"),
        ("a\r\nb\rc\nd", "a\nb\nc\nd"),
        ("before\x00after", "before after"),
        ("\x00\x00", ""),
        ("e\u0301tude", "\u00e9tude"),
        ("x\ud800y", "x\ufffdy"),
        ("x\udc00", "x\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("tab\tstays, as does \x1b[31m", "tab\tstays, as does \x1b[31m"),
        ("ﬁ stays", "ﬁ stays"),
    ],
)
def test_text_is_stored_as(given_text: str, stored: str) -> None:
    """What each rule of the normal form does."""
    assert normalise(given_text) == stored


@given(ANY_TEXT)
def test_normal_form_is_stable_and_encodable(text: str) -> None:
    """Twice is once, UTF-8 can hold it, C can read it to its end, and accents have one spelling."""
    stored = normalise(text)
    assert normalise(stored) == stored
    assert stored.encode().decode() == stored
    assert "\x00" not in stored
    assert "\r" not in stored
    assert unicodedata.is_normalized("NFC", stored)


@given(st.lists(st.integers(0, 0xFFFF), max_size=50))
def test_any_utf16_becomes_text(units: list[int]) -> None:
    """Clients written in JavaScript send any sequence of UTF-16 units; none fails, and whole pairs stay whole."""
    stored = normalise("".join(map(chr, units)))
    assert not any(0xD800 <= ord(character) <= 0xDFFF for character in stored)


def test_words_after_an_obstacle_stay_findable() -> None:
    """A NUL or half a pair separates words and hides none."""
    for obstacle in ("\x00", "\ud800"):
        assert "findable" in normalise(f"hidden{obstacle}findable").replace("\ufffd", " ").split()
