"""Asks a language model whether anything speaks against a replacement, and reads its answer. Sends nothing.

It can only object: whether one memory has proved better than another is for `supersession` to say.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from sidecar.domain.llm import LlmRequest
from sidecar.domain.llm_prompt import DataFence
from sidecar.domain.llm_relations import numbered_answers

MAX_TEXT_CHARACTERS: Final = 1_500
_TOKENS_PER_PAIR: Final = 40
_FRAME_TOKENS: Final = 60
_NO_OBJECTION: Final = "no_objection"


class VetoReason(StrEnum):
    """Why a memory must not replace another."""

    OTHER_SUBJECT = "other_subject"
    OTHER_CIRCUMSTANCES = "other_circumstances"
    ADDS_TO_IT = "adds_to_it"
    OLDER_SAYS_MORE = "older_says_more"

    @property
    def in_words(self) -> str:
        """The reason for a person."""
        return _WORDS[self]


_WORDS: Final = {
    VetoReason.OTHER_SUBJECT: "they are about different things",
    VetoReason.OTHER_CIRCUMSTANCES: "they hold under different circumstances",
    VetoReason.ADDS_TO_IT: "the newer one adds to the older one and leaves it true",
    VetoReason.OLDER_SAYS_MORE: "the older one says more that is lost with it",
}
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "replacements": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "memory": {"type": "integer"},
                    "objection": {"type": "string", "enum": [_NO_OBJECTION, *VetoReason]},
                },
                "required": ["memory", "objection"],
            },
        }
    },
    "required": ["replacements"],
}
_TASK: Final = (
    "Notes of coding agents are replaced by newer ones that proved better in use. For each numbered older note say "
    "whether the newer note may take its place: no_objection, or other_subject (they are about different things), "
    "other_circumstances (another environment, version, platform or condition), adds_to_it (the newer one adds to it "
    "and leaves it true), older_says_more (the older one says something else that would be lost). Name each number "
    "once."
)


def veto_request(fence: DataFence, newer: str, older: Sequence[str]) -> LlmRequest:
    """Return the question whether a memory may replace each of some older ones, at least one."""
    blocks = [fence.block("newer note", newer, max_characters=MAX_TEXT_CHARACTERS)]
    blocks += [
        fence.block(f"older note {number}", text, max_characters=MAX_TEXT_CHARACTERS)
        for number, text in enumerate(older, start=1)
    ]
    return LlmRequest(
        system=f"{_TASK}\n{fence.rule}",
        user="".join(blocks),
        schema=_SCHEMA,
        max_tokens=_FRAME_TOKENS + _TOKENS_PER_PAIR * len(older),
        name="replacements",
    )


def read_vetoes(fields: Mapping[str, object], *, count: int) -> dict[int, VetoReason]:
    """Return the objections by place in what was asked, from 0; what answers something else is passed over.

    Of two answers on one place an objection counts: it costs a replacement that a person can still make.
    """
    said = numbered_answers(fields, "replacements", "objection")
    return {
        number - 1: VetoReason(objection)
        for number, objection in said
        if objection != _NO_OBJECTION and 1 <= number <= count
    }
