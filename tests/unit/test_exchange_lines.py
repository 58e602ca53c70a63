"""Lines of an export: read back as they were written, and refused one by one where they are no records."""

import json

import pytest

from sidecar.domain.exchange import DeliveryRecord, MemoryRecord, MultiplierRecord
from sidecar.domain.exchange_lines import HEADER, decode_record, encode_record
from sidecar.domain.memory import MemoryState, MemoryType, Provenance
from sidecar.errors import InvalidInputError
from tests.store_builders import NOW, next_memory_id

MEMORY = MemoryRecord(
    id=next_memory_id(),
    namespace="project:app",
    type=MemoryType.FACT,
    state=MemoryState.ACTIVE,
    previous_state=MemoryState.ACTIVE,
    importance=0.5,
    confidence=1.0,
    created_at=NOW,
    accessed_at=NOW,
    first_accessed_at=NOW,
    access_count=2**60,
    provenance=Provenance.USER,
    client="codex",
    session="",
    successor_id="",
    type_before=None,
    promoted_at=NOW,
    metadata={"a": [1.5, None, {"b": 2**70}], "é": "\u2028"},
    content='Grüße\n"日本語" 😀',
)


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(encode_record(MEMORY)), **fields})


def test_record_is_one_line_that_reads_back() -> None:
    """Line feeds, quotes and characters of any script included; whole numbers of any size stay whole."""
    line = encode_record(MEMORY)
    assert "\n" not in line
    assert decode_record(line) == decode_record(line.encode()) == MEMORY
    assert encode_record(decode_record(line) or MEMORY) == line


def test_header_is_no_record_and_tells_the_format() -> None:
    """A file of a later format is refused as a whole rather than read wrongly."""
    assert decode_record(HEADER) is None
    with pytest.raises(InvalidInputError, match="update memory-sidecar"):
        decode_record('{"record":"export","format":2}')


def test_fields_of_later_versions_are_left_out() -> None:
    """A newer version may add to a record without locking older ones out; texts are brought into their stored form."""
    assert decode_record(changed(colour="red", content='  Grüße\r\n"日本語" 😀 ')) == MEMORY


def test_delivery_of_an_export_without_channels_is_a_recall() -> None:
    """Before there were briefings, everything was."""
    new = DeliveryRecord("rec_1", "codex", "s", "app", NOW, 2, is_degraded=False)
    plain = json.loads(encode_record(new))
    assert (plain.pop("channel"), plain.pop("context_kind")) == ("recall", None)
    assert decode_record(json.dumps(plain)) == new


def test_whole_numbers_count_as_numbers() -> None:
    """Other programs write 1 for 1.0; both are written back alike."""
    record = MultiplierRecord(next_memory_id(), 1, 0, 2, NOW)
    assert '"value":1.0' in encode_record(record)
    assert decode_record(changed(importance=1)) is not None


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '"memory"',
        "{}",
        '{"record":"spell"}',
        '{"record":["memory"]}',
        '{"record":"memory"}',
        b"\xff\xfe",
        "[" * 100_000,
        changed(metadata={"a": float("nan")}),
    ],
)
def test_what_is_no_record_is_refused(line: str | bytes) -> None:
    """With a typed error, whatever it is."""
    with pytest.raises(InvalidInputError):
        decode_record(line)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "mem_1"),
        ("id", None),
        ("namespace", "project:../x"),
        ("type", "spell"),
        ("type", []),
        ("state", None),
        ("importance", 1.1),
        ("importance", True),
        ("importance", 10**400),
        ("confidence", "0.5"),
        ("created_at", "2026-01-01T00:00:00"),
        ("created_at", "yesterday"),
        ("created_at", "9999-12-31T23:59:59-12:00"),
        ("created_at", "0001-01-01T00:00:00+00:00"),
        ("access_count", -1),
        ("access_count", 2**63),
        ("access_count", 1.5),
        ("client", "half \ud800"),
        ("client", "nul \0"),
        ("client", "c" * 100_000),
        ("type_before", ""),
        ("promoted_at", 0),
        ("metadata", []),
        ("metadata", {"a": "x" * 20_000}),
        ("metadata", {"a": "\ud800"}),
        ("content", " \n"),
        ("content", "x" * 70_000),
    ],
)
def test_wrong_field_is_named(field: str, value: object) -> None:
    """Who edited a line by hand learns what to mend."""
    with pytest.raises(InvalidInputError) as caught:
        decode_record(changed(**{field: value}))
    assert caught.value.metadata["field"] == field


@pytest.mark.parametrize("depth", [70, 900, 980, 5_000])
def test_deeply_nested_metadata_is_refused(depth: int) -> None:
    """Nothing that is read may exhaust the stack, now or when it is written out again."""
    assert decode_record(changed(metadata={"n": [[[[[1]]]]]})) is not None
    line = encode_record(MEMORY).replace('"metadata":{', '"metadata":{"n":' + "[" * depth + "]" * depth + ",")
    with pytest.raises(InvalidInputError):
        decode_record(line)
