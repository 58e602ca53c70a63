"""Asks a language model how a new memory relates to those near it, and reads its answer. Sends and stores nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.llm import LlmRequest
from sidecar.domain.llm_prompt import DataFence
from sidecar.domain.memory import Relation

MAX_TEXT_CHARACTERS: Final = 1_500
"""Of each memory; what a text is about is said in its beginning."""

_TOKENS_PER_PAIR: Final = 40
_FRAME_TOKENS: Final = 60
_CHOICES: Final = (
    Relation.RELATES_TO,
    Relation.CAUSED_BY,
    Relation.DERIVED_FROM,
    Relation.CONTRADICTS,
    Relation.SUPERSEDES,
)
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "relations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "memory": {"type": "integer"},
                    "relation": {"type": "string", "enum": list(_CHOICES)},
                },
                "required": ["memory", "relation"],
            },
        }
    },
    "required": ["relations"],
}
_TASK: Final = (
    "You sort the relations between notes that coding agents keep. For each numbered older note say what the new note "
    "is to it: caused_by (what the older note tells is the reason for the new one), derived_from (the new note was "
    "concluded from the older one), contradicts (both cannot be true of the same thing at the same time), supersedes "
    "(the new note says itself that it replaces the older one), or relates_to (none of these, or you are not sure). "
    "Prefer relates_to when in doubt. Name each number once."
)


@dataclass(frozen=True, slots=True)
class RelationAnswers:
    """What the model said.

    Attributes:
        relations: By place in what was asked, from 0; what it did not name, or named twice differently, is missing.
        dropped: How many answers were about nothing that was asked, or spoke against each other.
    """

    relations: Mapping[int, Relation]
    dropped: int


def relation_request(fence: DataFence, new: str, older: Sequence[str]) -> LlmRequest:
    """Return the question how a new memory relates to each older one.

    Args:
        new: Text of the new memory.
        older: Texts of those near it, at least one.
    """
    blocks = [fence.block("new note", new, max_characters=MAX_TEXT_CHARACTERS)]
    blocks += [
        fence.block(f"older note {number}", text, max_characters=MAX_TEXT_CHARACTERS)
        for number, text in enumerate(older, start=1)
    ]
    return LlmRequest(
        system=f"{_TASK}\n{fence.rule}",
        user="".join(blocks),
        schema=_SCHEMA,
        max_tokens=_FRAME_TOKENS + _TOKENS_PER_PAIR * len(older),
        name="relations",
    )


def read_relations(fields: Mapping[str, object], *, count: int) -> RelationAnswers:
    """Return what the model said of `count` pairs; `fields` fit the request's schema."""
    said: dict[int, Relation] = {}
    spoilt: set[int] = set()
    dropped = 0
    for number, relation in numbered_answers(fields, "relations", "relation"):
        place = number - 1
        if not 0 <= place < count or said.setdefault(place, Relation(relation)) != relation:
            dropped += 1
            spoilt.add(place)
    return RelationAnswers({place: relation for place, relation in said.items() if place not in spoilt}, dropped)


def numbered_answers(fields: Mapping[str, object], list_name: str, value_name: str) -> list[tuple[int, str]]:
    """Return the (number, text) pairs of a checked answer's list, whose objects name a `memory` and a text."""
    listed = fields[list_name]
    assert isinstance(listed, list), "the answer was checked against the schema"
    return [(int(each["memory"]), str(each[value_name])) for each in listed]
