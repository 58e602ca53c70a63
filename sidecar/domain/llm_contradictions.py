"""Asks a language model about pairs of memories that no rule decided, and reads its answer. Sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.llm import LlmRequest
from sidecar.domain.llm_prompt import DataFence

METHOD: Final = "language_model"
"""Named in a finding of this stage."""

MAX_TEXT_CHARACTERS: Final = 1_500
MAX_PART_CHARACTERS: Final = 200
_TOKENS_PER_PAIR: Final = 160
_FRAME_TOKENS: Final = 60
_CONTRADICTS: Final = "contradicts"
_VERDICTS: Final = (_CONTRADICTS, "compatible", "unsure")
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "memory": {"type": "integer"},
                    "verdict": {"type": "string", "enum": list(_VERDICTS)},
                    "own_part": {"type": "string"},
                    "other_part": {"type": "string"},
                },
                "required": ["memory", "verdict", "own_part", "other_part"],
            },
        }
    },
    "required": ["pairs"],
}
_TASK: Final = (
    "You compare notes that coding agents keep about software projects. For each numbered other note say whether it "
    "and the first note contradict each other: both cannot be true of the same thing under the same circumstances at "
    "the same time. Different things, environments, conditions or single occasions are compatible; one adding to the "
    "other is compatible. Answer contradicts only when you are certain, unsure when you are not. own_part: the words "
    "of the first note that cannot hold beside other_part, the words of the other one; both copied exactly, both "
    "empty unless they contradict. Name each number once."
)


@dataclass(frozen=True, slots=True)
class DifferingParts:
    """What cannot both hold, in the memories' own words; empty where the model's words are not theirs."""

    own: str
    other: str


@dataclass(frozen=True, slots=True)
class ContradictionAnswers:
    """What the model said.

    Attributes:
        contradicting: By place in what was asked, from 0.
        undecided: Places of which it was unsure, or said nothing that can be used.
        dropped: How many answers were about nothing that was asked, or spoke against each other.
    """

    contradicting: Mapping[int, DifferingParts]
    undecided: tuple[int, ...]
    dropped: int


def contradiction_request(fence: DataFence, own: str, others: Sequence[str]) -> LlmRequest:
    """Return the question which of some memories contradict one.

    Args:
        own: Text of the one.
        others: Texts of the others, at least one.
    """
    blocks = [fence.block("first note", own, max_characters=MAX_TEXT_CHARACTERS)]
    blocks += [
        fence.block(f"other note {number}", text, max_characters=MAX_TEXT_CHARACTERS)
        for number, text in enumerate(others, start=1)
    ]
    return LlmRequest(
        system=f"{_TASK}\n{fence.rule}",
        user="".join(blocks),
        schema=_SCHEMA,
        max_tokens=_FRAME_TOKENS + _TOKENS_PER_PAIR * len(others),
        name="pairs",
    )


def read_contradictions(fields: Mapping[str, object], own: str, others: Sequence[str]) -> ContradictionAnswers:
    """Return what the model said; `fields` fit the request's schema."""
    said: dict[int, Mapping[str, object]] = {}
    spoilt: set[int] = set()
    dropped = 0
    for each in _pairs(fields):
        place = int(str(each["memory"])) - 1
        if not 0 <= place < len(others) or said.setdefault(place, each)["verdict"] != each["verdict"]:
            dropped += 1
            spoilt.add(place)
    usable = {place: each for place, each in said.items() if place not in spoilt}
    contradicting = {
        place: DifferingParts(_quoted(each["own_part"], own), _quoted(each["other_part"], others[place]))
        for place, each in sorted(usable.items())
        if each["verdict"] == _CONTRADICTS
    }
    decided = {place for place, each in usable.items() if each["verdict"] != "unsure"}
    undecided = tuple(place for place in range(len(others)) if place not in decided)
    return ContradictionAnswers(contradicting, undecided, dropped)


def _pairs(fields: Mapping[str, object]) -> list[Mapping[str, object]]:
    listed = fields["pairs"]
    assert isinstance(listed, list), "the answer was checked against the schema"
    return listed


def _quoted(part: object, text: str) -> str:
    """Return what the model quotes if the text holds it; what it made up is no evidence."""
    quote = " ".join(str(part).split())
    is_there = quote.casefold() in " ".join(text.split()).casefold()
    return quote[:MAX_PART_CHARACTERS] if is_there else ""
