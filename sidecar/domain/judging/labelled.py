"""Reads transcripts with labels: one JSON object a line, as docs/judge.md describes it. Stores nothing."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sidecar.domain.evidence import MAX_SLICE_CHARACTERS, SliceKind
from sidecar.domain.judgement import JudgeCase, TranscriptPiece
from sidecar.domain.memory import MemoryType
from sidecar.domain.text import normalise
from sidecar.errors import BadLabelledLineError

_MAX_VALUE_CHARACTERS: Final = 2_000
_KINDS: Final = {
    "user": SliceKind.USER_TEXT,
    "assistant": SliceKind.AGENT_TEXT,
    "tool": SliceKind.TOOL_OUTPUT,
}


class _MalformedError(Exception):
    """What is wrong with a line."""


@dataclass(frozen=True, slots=True)
class Label:
    """What is right for one case.

    Attributes:
        kind: Category of the case, such as `paraphrase_use`; empty if the file has none.
    """

    used: bool
    relevant: bool
    misled: bool
    kind: str = ""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A case with its label. `transcript` is the id of the line, `project` may be empty."""

    transcript: str
    project: str
    case: JudgeCase
    label: Label


def read_labelled(lines: Iterable[str]) -> Iterator[LabelledCase]:
    """Yield the cases of all lines in order; blank lines are passed over.

    Raises:
        BadLabelledLineError: At the first line that is not of this form; it has the line's number.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield from _cases(json.loads(line))
            except RecursionError as error:
                raise BadLabelledLineError(number, "it is nested too deeply") from error
            except (_MalformedError, ValueError) as error:
                raise BadLabelledLineError(number, str(error)) from error


def _cases(document: object) -> Iterator[LabelledCase]:
    """Yield the cases of one line.

    Raises:
        _MalformedError: If it is not of the form.
    """
    transcript = _object(document, "the line")
    shown = [_object(entry, "an entry of `shown`") for entry in _list(transcript, "shown")]
    labels = _object(transcript.get("labels"), "`labels`")
    before = tuple(_piece(entry) for entry in _list(transcript, "before"))
    after = tuple(_piece(entry) for entry in _list(transcript, "after"))
    contents = [_text(memory, "content") for memory in shown]
    for place, memory in enumerate(shown):
        memory_id = _text(memory, "id")
        yield LabelledCase(
            transcript=str(transcript.get("id", "")),
            project=str(transcript.get("project", "")),
            case=JudgeCase(
                memory_id=memory_id,
                content=contents[place],
                memory_type=_memory_type(memory),
                age_days=_age(memory),
                others=(*contents[:place], *contents[place + 1 :]),
                before=before,
                after=after,
            ),
            label=_label(_object(labels.get(memory_id), f"the label of {memory_id}")),
        )


def _piece(entry: object) -> TranscriptPiece:
    piece = _object(entry, "an entry of the transcript")
    role = piece.get("role")
    if role == "assistant" and piece.get("kind") == "tool_call":
        text = f"{piece.get('name', '')} {_rendered(piece.get('input'))}".strip()
        return TranscriptPiece(SliceKind.TOOL_CALL, _cut(text, MAX_SLICE_CHARACTERS))
    if not isinstance(role, str) or role not in _KINDS:
        raise _MalformedError(f"a `role` is {role!r}; expected user, assistant or tool")
    return TranscriptPiece(_KINDS[role], _cut(_text(piece, "text"), MAX_SLICE_CHARACTERS))


def _rendered(arguments: object) -> str:
    """Return a tool's input as the plugins render it: a line for each argument."""
    if not isinstance(arguments, Mapping):
        return _value(arguments)
    return "\n".join(f"{key}: {_value(value)}" for key, value in arguments.items())


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _cut(text, _MAX_VALUE_CHARACTERS)


def _cut(text: str, limit: int) -> str:
    whole = normalise(text[: limit + 1])
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _label(entry: Mapping[str, Any]) -> Label:
    answers: dict[str, bool] = {}
    for name in ("used", "relevant", "misled"):
        answer = entry.get(name)
        if not isinstance(answer, bool):
            raise _MalformedError(f"a label's `{name}` is {answer!r}; expected true or false")
        answers[name] = answer
    kind = entry.get("kind")
    return Label(**answers, kind=kind if isinstance(kind, str) else "")


def _memory_type(memory: Mapping[str, Any]) -> MemoryType:
    name = _text(memory, "type")
    try:
        return MemoryType(name)
    except ValueError as error:
        raise _MalformedError(f"a memory's `type` is {name!r}; expected one of {', '.join(MemoryType)}") from error


def _age(memory: Mapping[str, Any]) -> float:
    age = memory.get("age_days", 0)
    if isinstance(age, bool) or not isinstance(age, int | float) or not 0 <= age < float("inf"):
        raise _MalformedError(f"a memory's `age_days` is {age!r}; expected a number, 0 or more")
    return float(age)


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise _MalformedError(f"a `{name}` is {value!r}; expected text")
    return value


def _list(entry: Mapping[str, Any], name: str) -> list[Any]:
    value = entry.get(name, [])
    if not isinstance(value, list):
        raise _MalformedError(f"`{name}` is no list")
    return value


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _MalformedError(f"{what} is no object")
    return value
