"""Whatever a line is, its objects are found and it does no harm."""

import json

import pytest

from client_plugins.kit.json_line import (
    BLANK,
    NOT_AN_OBJECT,
    NOT_JSON,
    TOO_COMPLEX,
    TOO_DEEP,
    DecodedLine,
    decode_line,
)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1}\n',
        b'{"a":1}\r\n',
        b'\xef\xbb\xbf{"a":1}\n',
        b'\0\0\0{"a":1}\0\n',
        b'  {"a":1}  ',
        b'{"a"\0:1}\n',
    ],
)
def test_marks_and_ends_around_an_object_are_tolerated(line: bytes) -> None:
    """A byte order mark, CR and NUL come from editors, Windows and crashes."""
    assert decode_line(line) == DecodedLine(({"a": 1},))


def test_glued_objects_are_all_found() -> None:
    """Two writers, or a lost newline, put objects on one line."""
    assert decode_line(b'{"a":1}{"b":2} {"c":"}{"}\n') == DecodedLine(({"a": 1}, {"b": 2}, {"c": "}{"}))


def test_what_stands_before_a_torn_object_is_kept() -> None:
    """A write that failed and was repeated leaves a half behind; the rest still counts."""
    assert decode_line(b'{"a":1}{"b":\n') == DecodedLine(({"a": 1},), NOT_JSON)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", BLANK),
        (b" \r\n", BLANK),
        (b"\0\0\0\n", BLANK),
        (b"not json", NOT_JSON),
        (b'{"a":', NOT_JSON),
        (b"\xff\xfe\x00", NOT_JSON),
        (b"7", NOT_AN_OBJECT),
        (b"[1]", NOT_AN_OBJECT),
        (b'"text"', NOT_AN_OBJECT),
        (b'{"a":' * 200_000, TOO_DEEP),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", TOO_DEEP),
        (b'{"a":[' + b"[]," * 1_100_000 + b"[]]}", TOO_COMPLEX),
    ],
)
def test_unreadable_lines_say_why(line: bytes, problem: str) -> None:
    """Each kind of damage has its own counter, so that a change of the client's format shows."""
    assert decode_line(line) == DecodedLine((), problem)


def test_numbers_and_letters_beyond_json_are_tolerated() -> None:
    """JavaScript and accidents write them; a neighbour's field must not cost the record."""
    line = b'{"n":NaN,"i":1e999,"h":' + b"9" * 5_000 + b',"s":"\\ud83d","b":"\xff","t":"x\ty","z":"p\0q"}'
    (record,) = decode_line(line).records
    assert record["i"] == record["h"] == float("inf")
    assert (record["s"], record["b"], record["t"], record["z"]) == ("\ud83d", "\ufffd", "x\ty", "p q")


def test_a_long_line_of_text_is_not_too_complex() -> None:
    """Only the number of values counts, not the length of an image or a file."""
    line = json.dumps({"text": "word " * 1_000_000}).encode()
    assert not decode_line(line).problem
