"""Asks a language model which memories a session used, and reads its answer. Sends nothing and keeps no text.

Memories and transcript are data that others wrote: they come fenced, and the answer is about numbers of ours alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidecar.domain.evidence import SliceKind
from sidecar.domain.judgement import MISLED_THRESHOLD, JudgeCase, TranscriptPiece, Verdict
from sidecar.domain.llm import LlmRequest
from sidecar.domain.llm_prompt import DataFence

MAX_CASES: Final = 8
"""Memories in one question; with more of them models begin to mix them up."""

MAX_MEMORY_CHARACTERS: Final = 1_200
_MAX_OTHERS: Final = 8
_OTHER_CHARACTERS: Final = 240
_PIECE_CHARACTERS: Final = 2_000
# Long outputs hold much that has no bearing.
_OUTPUT_CHARACTERS: Final = 700
# Of the room that the memories leave: what came before tells only what was known already.
_BEFORE_SHARE: Final = 0.25
# Of the room of what came after: most uses follow at once, and late ones come at the end.
_BEGINNING_SHARE: Final = 0.65
_TOKENS_PER_CASE: Final = 60
_FRAME_TOKENS: Final = 60

_PROBABILITY: Final[Mapping[str, object]] = {"type": "number", "minimum": 0, "maximum": 1}
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "memory": {"type": "integer"},
                    "used": _PROBABILITY,
                    "relevant": _PROBABILITY,
                    "misled": _PROBABILITY,
                },
                "required": ["memory", "used", "relevant", "misled"],
            },
        }
    },
    "required": ["verdicts"],
}
_TASK: Final = (
    "You judge, from the record of a coding agent's session, whether numbered memories that it was shown were of use. "
    "For each give three probabilities from 0 to 1.\n"
    "used: what the agent did or said after it was shown them was influenced by the memory, and nothing else in sight "
    "explains it. If the user, a file or an output said the same first, or habit of the trade would do the same, it "
    "was not used. Naming it or thanking for it without an effect, or printing it, is not use.\n"
    "relevant: it governs something that the agent touched or decided afterwards, heeded or not. The same area alone "
    "is not enough.\n"
    "misled: the agent acted or answered by it and then had to correct course on its account; then it was not used. A "
    "memory found outdated before anything was done by it did not mislead.\n"
    "Used and misled memories are relevant. When in doubt give low probabilities. Name each number once."
)
_WORDS: Final = {
    SliceKind.AGENT_TEXT: "agent says",
    SliceKind.USER_TEXT: "user says",
    SliceKind.TOOL_CALL: "agent calls a tool",
    SliceKind.TOOL_OUTPUT: "output of a tool",
}


@dataclass(frozen=True, slots=True)
class JudgeAnswers:
    """What the model said: a verdict for each case, and how many answers were about nothing that was asked."""

    verdicts: tuple[Verdict, ...]
    dropped: int


def judge_request(fence: DataFence, cases: Sequence[JudgeCase], *, max_bytes: int) -> LlmRequest:
    """Return the question about cases that share their transcript.

    Args:
        cases: 1 to `MAX_CASES`, all with the same `before` and `after`.
        max_bytes: Most of what the question holds of others' words, headings included; about that where characters
            have to be written out.
    """
    memories = [
        fence.block(
            f"memory {number}: {case.memory_type}, {case.age_days:.0f} days old",
            _cut_bytes(case.content, max_bytes // (2 * len(cases))),
            max_characters=MAX_MEMORY_CHARACTERS,
        )
        for number, case in enumerate(cases, start=1)
    ]
    asked = {case.content for case in cases}
    others = [text for text in dict.fromkeys(text for case in cases for text in case.others) if text not in asked]
    memories += [
        fence.block("also shown, not to be judged", text, max_characters=_OTHER_CHARACTERS)
        for text in others[:_MAX_OTHERS]
    ]
    room = max_bytes - _size(memories)
    before = _latest(fence, _blocks(fence, cases[0].before), int(room * _BEFORE_SHARE))
    after = _both_ends(fence, _blocks(fence, cases[0].after), room - _size(before))
    shown = fence.heading("here the memories below were shown")
    return LlmRequest(
        system=f"{_TASK}\n{fence.rule}",
        user="".join((*before, f"{shown}\n", *after, *memories)),
        schema=_SCHEMA,
        max_tokens=_FRAME_TOKENS + _TOKENS_PER_CASE * len(cases),
        name="verdicts",
    )


def read_verdicts(fields: Mapping[str, object], cases: Sequence[JudgeCase]) -> JudgeAnswers:
    """Return a verdict for each case, in order; `fields` fit the request's schema.

    A case that is not named, or named twice differently, was not useful: nothing shows that it was.
    """
    listed = fields["verdicts"]
    assert isinstance(listed, list), "the answer was checked against the schema"
    said: dict[int, Verdict] = {}
    spoilt: set[int] = set()
    dropped = 0
    for each in listed:
        place = int(each["memory"]) - 1
        if not 0 <= place < len(cases):
            dropped += 1
            continue
        verdict = _verdict(cases[place].memory_id, each)
        if said.setdefault(place, verdict) != verdict:
            dropped += 1
            spoilt.add(place)
    usable = {place: verdict for place, verdict in said.items() if place not in spoilt}
    verdicts = (usable.get(place, Verdict(case.memory_id, 0.0, 0.0, 0.0)) for place, case in enumerate(cases))
    return JudgeAnswers(tuple(verdicts), dropped)


def _verdict(memory_id: str, said: Mapping[str, float]) -> Verdict:
    misled = float(said["misled"])
    used = 0.0 if misled >= MISLED_THRESHOLD else float(said["used"])
    return Verdict(memory_id, used=used, relevant=max(float(said["relevant"]), used), misled=misled)


def _blocks(fence: DataFence, pieces: Sequence[TranscriptPiece]) -> list[str]:
    return [
        fence.block(
            _WORDS[piece.kind],
            piece.text,
            max_characters=_OUTPUT_CHARACTERS if piece.kind is SliceKind.TOOL_OUTPUT else _PIECE_CHARACTERS,
        )
        for piece in pieces
    ]


def _latest(fence: DataFence, blocks: Sequence[str], max_bytes: int) -> list[str]:
    """Return the last blocks that have room, in order, and a note on those left out."""
    kept = _fitting(list(reversed(blocks)), max_bytes)
    left_out = len(blocks) - len(kept)
    return [*_note(fence, left_out), *reversed(kept)]


def _both_ends(fence: DataFence, blocks: Sequence[str], max_bytes: int) -> list[str]:
    """Return the first and the last blocks that have room, in order, and a note on those between."""
    if _size(blocks) <= max_bytes:
        return list(blocks)
    first = _fitting(blocks, int(max_bytes * _BEGINNING_SHARE))
    last = _fitting(list(reversed(blocks[len(first) :])), max_bytes - _size(first))
    left_out = len(blocks) - len(first) - len(last)
    return [*first, *_note(fence, left_out), *reversed(last)]


def _fitting(blocks: Sequence[str], max_bytes: int) -> list[str]:
    kept: list[str] = []
    room = max_bytes
    for block in blocks:
        room -= len(block.encode())
        if room < 0:
            break
        kept.append(block)
    return kept


def _note(fence: DataFence, left_out: int) -> list[str]:
    return [f"{fence.heading(f'{left_out} parts are left out here')}\n"] if left_out else []


def _size(blocks: Sequence[str]) -> int:
    return sum(len(block.encode()) for block in blocks)


def _cut_bytes(text: str, max_bytes: int) -> str:
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= max_bytes else encoded[:max_bytes].decode("utf-8", "ignore")
