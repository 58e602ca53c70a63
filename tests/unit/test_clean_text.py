"""Secrets leave content and metadata alike, nothing else is lost, and all of it is told."""

from sidecar.domain.redaction import Redaction
from sidecar.use_cases.clean_text import clean
from tests.unit.fake_parts import PlainRedactor


def test_metadata_is_cleaned_at_every_depth_and_told() -> None:
    """Keys, lists and nested objects."""
    metadata = {"hunter2": 1, "deep": {"list": ["hunter2", {"x": "hunter2\r\n"}]}, "number": 4, "none": None}
    cleaned = clean(PlainRedactor(), " hunter2 ", metadata)
    assert cleaned.content == "[redacted:word]"
    assert cleaned.metadata == {
        "[redacted:word]": 1,
        "deep": {"list": ["[redacted:word]", {"x": "[redacted:word]"}]},
        "number": 4,
        "none": None,
    }
    assert cleaned.findings == (Redaction("word", 4),)


def test_keys_that_become_equal_keep_their_values() -> None:
    """Numbered, in order."""
    cleaned = clean(PlainRedactor(), "x", {"a": 1, "a ": 2, " a": 3})
    assert cleaned.metadata == {"a": 1, "a (2)": 2, "a (3)": 3}
