"""Ids: only strings of exactly our shape count."""

from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain import ids

GOOD = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_ids_sort_by_time(earlier: int, later: int, randomness: bytes) -> None:
    """A listing by id is a listing by creation, whatever the random part."""
    earlier, later = sorted((earlier, later))
    assert ids.memory_id(earlier, randomness) <= ids.memory_id(later, randomness)


@given(st.integers(-(2**60), 2**60), st.binary(min_size=10, max_size=10))
def test_a_made_id_is_recognised(unix_ms: int, randomness: bytes) -> None:
    """Even a clock far off makes an id of our shape."""
    made = ids.memory_id(unix_ms, randomness)
    assert ids.is_memory_id(made)
    assert ids.find_memory_ids(f'{{"id":"{made}"}}') == (made,)


def test_look_alikes_are_not_ids() -> None:
    """Longer words, wrong letters and other prefixes are somebody else's."""
    for text in (GOOD[:-1], GOOD + "0", GOOD.lower(), GOOD.replace("1F", "1U"), "x" + GOOD, "rec_" + GOOD[4:], ""):
        assert not ids.is_memory_id(text)
        assert ids.find_memory_ids(text) == ()


def test_ids_in_text_are_found_once_in_order() -> None:
    """Escaped JSON inside JSON holds ids as they are."""
    other = GOOD.replace("01J8", "01J9")
    assert ids.find_memory_ids(f'"[{{\\"id\\":\\"{other}\\"}},{GOOD}]" {other}') == (other, GOOD)
