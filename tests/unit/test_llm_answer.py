"""Reading a language model's answer: what fits the schema is found, everything else is refused, nothing crashes."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.llm import LlmBudget, LlmRequest, LlmSpending
from sidecar.domain.llm_answer import MAX_TEXT_CHARACTERS, UnreadableAnswerError, read_answer
from sidecar.domain.llm_schema import check_schema, enforceable, requires_all
from sidecar.errors import InvalidInputError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "relation": {"type": "string", "enum": ["contradicts", "supersedes", "none"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "pairs": {
            "type": "array",
            "maxItems": 4,
            "items": {
                "type": "object",
                "properties": {"a": {"type": "integer", "minimum": 0}, "why": {"type": "string", "maxLength": 20}},
                "required": ["a"],
            },
        },
    },
    "required": ["relation", "confidence"],
}
GOOD = st.fixed_dictionaries(
    {
        "relation": st.sampled_from(["contradicts", "supersedes", "none"]),
        "confidence": st.floats(0, 1),
    },
    optional={
        "pairs": st.lists(
            st.fixed_dictionaries({"a": st.integers(0, 10**6)}, optional={"why": st.text(max_size=20)}), max_size=4
        )
    },
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=12), part, max_size=4),
)


@given(GOOD, st.text(alphabet=st.characters(exclude_characters="{}", exclude_categories=["Cs"])), st.booleans())
def test_answer_survives_whatever_stands_before_it(answer: dict[str, Any], chat: str, is_fenced: bool) -> None:
    """Text without braces cannot hide an answer."""
    said = json.dumps(answer, indent=2)
    text = f"{chat}\n```json\n{said}\n```\n{chat}" if is_fenced else f"{chat} {said} {chat}"
    assert dict(read_answer(text, SCHEMA)) == answer


@given(st.text() | JSON.map(json.dumps) | st.dictionaries(st.text(), JSON).map(json.dumps))
def test_any_text_is_read_or_refused(text: str) -> None:
    """What comes out fits, and fitting is all that can come out."""
    try:
        fields = read_answer(text, SCHEMA)
    except UnreadableAnswerError:
        return
    assert fields["relation"] in SCHEMA["properties"]["relation"]["enum"]
    assert set(fields) <= set(SCHEMA["properties"])


@given(GOOD, st.sampled_from(["relation", "confidence", "pairs"]), JSON)
def test_field_of_another_kind_is_never_passed_on(answer: dict[str, Any], name: str, value: Any) -> None:
    """A spoilt field either fits by chance or the whole answer is dropped."""
    try:
        fields = read_answer(json.dumps({**answer, name: value}), SCHEMA)
    except UnreadableAnswerError:
        return
    assert isinstance(fields["relation"], str)
    assert 0 <= float(str(fields["confidence"])) <= 1
    assert isinstance(fields.get("pairs", []), list)


def test_answer_is_read_only() -> None:
    """Layers hand values on; nobody may change them on the way."""
    fields = read_answer('{"relation": "none", "confidence": 1}', SCHEMA)
    with pytest.raises(TypeError):
        fields["relation"] = "contradicts"  # type: ignore[index]


def test_long_text_is_refused_before_it_is_read() -> None:
    """Reading must not cost more than an answer is worth."""
    with pytest.raises(UnreadableAnswerError, match="characters"):
        read_answer("{" * (MAX_TEXT_CHARACTERS + 1), SCHEMA)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "date"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "integer", "maxLength": 3}}},
    ],
)
def test_schema_that_could_not_be_checked_is_refused(schema: dict[str, Any]) -> None:
    """A keyword that nobody looks at is a promise that nobody keeps."""
    with pytest.raises(InvalidInputError, match="schema"):
        check_schema(schema)


def test_enforced_schema_is_closed_and_without_limits() -> None:
    """Providers refuse limits, and their strict mode asks for closed objects with all properties required."""
    sent = json.dumps(enforceable(MappingProxyType(SCHEMA)))
    assert not any(word in sent for word in ("minimum", "maximum", "maxItems", "maxLength"))
    assert sent.count('"additionalProperties": false') == 2
    assert not requires_all(SCHEMA)
    assert requires_all(
        {**SCHEMA, "properties": {"relation": SCHEMA["properties"]["relation"]}, "required": ["relation"]}
    )


@pytest.mark.parametrize("change", [{"max_tokens": 0}, {"max_tokens": 9000}, {"name": "Two words"}, {"schema": {}}])
def test_request_out_of_bounds_is_refused(change: dict[str, Any]) -> None:
    """A question that cannot be asked is told where it is made."""
    with pytest.raises(InvalidInputError):
        LlmRequest(**{"system": "", "user": "", "schema": SCHEMA, **change})


@given(st.integers(0, 5), st.integers(0, 500), st.integers(0, 5), st.integers(0, 500), st.integers(0, 500))
def test_budget_is_never_passed(calls: int, tokens: int, most_calls: int, most_tokens: int, cost: int) -> None:
    """What is allowed stays within both limits."""
    budget = LlmBudget(most_calls, most_tokens)
    if LlmSpending(calls, tokens).allows(cost, budget):
        assert calls + 1 <= most_calls
        assert tokens + cost <= most_tokens


def test_negative_budget_is_refused() -> None:
    """0 is the way to allow nothing."""
    with pytest.raises(InvalidInputError, match="llm_tokens_a_day"):
        LlmBudget(1, -1)
