"""Takes a transcript apart into short utterances, each with who it comes from. Pure; judges nothing.

What an agent quotes is not what it says: the text that an edit replaces stood in the file, and a printed recall result
is the memories themselves.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final

from sidecar.domain.evidence import SliceKind
from sidecar.domain.ids import MEMORY_ID
from sidecar.domain.judgement import JudgeCase, TranscriptPiece
from sidecar.domain.statement import split_statements

MAX_PIECE_CHARACTERS: Final = 16_000
MAX_UTTERANCES: Final = 400
_MAX_CONTEXT: Final = 100
_MAX_CONTEXT_PIECES: Final = 40
_MAX_NOTE_LINE: Final = 400
_CHUNK_CHARACTERS: Final = 200
_MAX_SENTENCE_CHARACTERS: Final = 800


class Source(StrEnum):
    """Who says something."""

    CONTEXT = "context"
    USER = "user"
    OUTPUT = "output"
    QUOTED = "quoted"
    SAID = "said"
    DONE = "done"
    LOOKED = "looked"
    NOTED = "noted"


AGENT_SOURCES: Final = frozenset({Source.SAID, Source.DONE, Source.LOOKED, Source.NOTED})


@dataclass(frozen=True, slots=True)
class Utterance:
    """A sentence, a command, or a stretch of code.

    Attributes:
        turn: Number of the piece that it is from, counted from the first one after the recall; negative before.
    """

    source: Source
    text: str
    turn: int


_LOOKING_TOOL: Final = re.compile(r"^(?:Read|Grep|Glob|LS|WebFetch|WebSearch|read_file|view|list_dir)\b")
_LOOKING: Final = re.compile(
    r"^\s*(?:\w+=\S+\s+)*(?:sudo\s+)?(?:grep|rg|ag|cat|bat|ls|ll|head|tail|find|fd|wc|du|df|stat|file|which|jq|less|tree|pwd|env|"
    r"printenv|echo|sed\s+-n|awk|git\s+(?:log|status|diff|show|branch|blame|grep|ls-files|remote|rev-parse)|"
    r"kubectl\s+(?:get|describe|logs|top)|docker\s+(?:ps|logs|images|inspect)|gh\s+(?:issue|run|pr)\s+(?:view|list|status)|"
    r"identify|ps|id|whoami|uname|date|nginx\s+-v)\b|--help\b|--version\b",
    re.IGNORECASE,
)

_OLD_KEYS: Final = frozenset({"old_string", "old_str", "old_text", "old_content"})
_PATCH_KEYS: Final = frozenset({"input", "patch", "diff"})
_KEY: Final = re.compile(
    r"(?:^|(?<=\n))(?:\S+ )?(old_string|old_str|old_text|old_content|new_string|new_str|new_text|content|command|cmd|"
    r"file_path|path|input|patch|diff|edits|description|replace_all|pattern|workdir|timeout): "
)
_NOISE_KEYS: Final = frozenset({"replace_all", "timeout", "workdir", "description"})
_PATCH_MARK: Final = re.compile(r"^\*\*\* (?:Begin|End) Patch")
_PATCH_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete|Move to)[^:]*: ?")
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//|--|;;|%|/\*|<!--)\s+(\S.{8,}?)(?:\*/|-->)?\s*$")
_BLOCK_QUOTE: Final = re.compile(r'"""(.+?)"""', re.DOTALL)
_MESSAGE: Final = re.compile(r"""\s-\w*m\s*(?:"([^"]{4,})"|'([^']{4,})')""")
_SHELL_WRAPPER: Final = re.compile(r'^\["(?:ba|z)?sh",\s*"-\w+",\s*"(.*)"\]$', re.DOTALL)


def utterances_of(case: JudgeCase) -> tuple[Utterance, ...]:
    """Return what was said before and after the recall, in order: the last of before, the first of after."""
    before = list(enumerate(case.before, start=-len(case.before)))[-_MAX_CONTEXT_PIECES:]
    context = [said for turn, piece in before for said in _context(piece, turn)]
    following = (said for turn, piece in enumerate(case.after) for said in _utterances(piece, turn))
    return (*context[-_MAX_CONTEXT:], *islice(following, MAX_UTTERANCES))


def _context(piece: TranscriptPiece, turn: int) -> Iterator[Utterance]:
    for part in _sentences(piece.text[:MAX_PIECE_CHARACTERS]):
        yield Utterance(Source.CONTEXT, part, turn)


def _utterances(piece: TranscriptPiece, turn: int) -> Iterator[Utterance]:
    text = piece.text[:MAX_PIECE_CHARACTERS]
    if piece.kind is SliceKind.AGENT_TEXT:
        spoken = "\n".join(line for line in text.splitlines() if not MEMORY_ID.search(line))
        for part in _sentences(spoken):
            yield Utterance(Source.SAID, part, turn)
    elif piece.kind is SliceKind.TOOL_CALL:
        yield from _call(text, turn)
    elif piece.kind is SliceKind.USER_TEXT:
        for part in _sentences(text):
            yield Utterance(Source.USER, part, turn)
    elif not MEMORY_ID.search(text):
        for part in _chunks(text):
            yield Utterance(Source.OUTPUT, part, turn)


def _sentences(text: str) -> Iterator[str]:
    for part in split_statements(text):
        for start in range(0, len(part), _MAX_SENTENCE_CHARACTERS):
            yield part[start : start + _MAX_SENTENCE_CHARACTERS]


def _chunks(text: str) -> Iterator[str]:
    chunk = ""
    for line in text.splitlines():
        if chunk and len(chunk) + len(line) > _CHUNK_CHARACTERS:
            yield chunk
            chunk = ""
        chunk = f"{chunk}\n{line}" if chunk else line
        while len(chunk) > _MAX_SENTENCE_CHARACTERS:
            yield chunk[:_MAX_SENTENCE_CHARACTERS]
            chunk = chunk[_MAX_SENTENCE_CHARACTERS:]
    if chunk.strip():
        yield chunk


def _call(text: str, turn: int) -> Iterator[Utterance]:
    """Yield what a tool call replaces, then what it does, then what it says in comments and messages."""
    old, new = _split_call(text)
    for part in _chunks(old):
        yield Utterance(Source.QUOTED, part, turn)
    source = Source.LOOKED if _LOOKING_TOOL.match(text) or (not old and _LOOKING.search(new)) else Source.DONE
    for part in _chunks(new):
        yield Utterance(source, part, turn)
    for note in _notes(new):
        yield Utterance(Source.NOTED, note, turn)


def _notes(text: str) -> Iterator[str]:
    for line in text.splitlines():
        # A longer line is data rather than code with a comment, and the pattern would take long for it.
        found = _COMMENT.search(line) if len(line) <= _MAX_NOTE_LINE else None
        if found:
            yield from _sentences(found.group(1))
    for block in _BLOCK_QUOTE.findall(text):
        yield from _sentences(block)
    for double, single in _MESSAGE.findall(text):
        yield double or single


def _split_call(text: str) -> tuple[str, str]:
    """Return what stood there before and what the call makes of it."""
    marks = list(_KEY.finditer(text))
    if not marks:
        return "", text
    old: list[str] = []
    new: list[str] = [text[: marks[0].start()]]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        key = mark.group(1)
        value = text[mark.end() : following.start() if following else len(text)].rstrip("\n")
        if key in _OLD_KEYS:
            old.append(value)
        elif key in _PATCH_KEYS and ("*** " in value or "\n@@" in value):
            removed, added = _split_patch(value)
            old.append(removed)
            new.append(added)
        elif key == "edits":
            removed, added = _split_edits(value)
            old.append(removed)
            new.append(added)
        elif key not in _NOISE_KEYS:
            new.append(_unwrapped(value))
    return "\n".join(filter(None, old)), "\n".join(filter(None, new))


def _unwrapped(value: str) -> str:
    """Return the command inside `["bash", "-lc", ...]`."""
    found = _SHELL_WRAPPER.match(value.strip())
    if not found:
        return value
    inner = found.group(1)
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        return inner.replace("\\n", "\n").replace('\\"', '"')


def _split_patch(patch: str) -> tuple[str, str]:
    old: list[str] = []
    new: list[str] = []
    for line in patch.splitlines():
        if _PATCH_MARK.match(line) or line.startswith("@@"):
            continue
        if named := _PATCH_FILE.match(line):
            new.append(line[named.end() :])
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith(("-", " ")):
            old.append(line[1:])
        else:
            old.append(line)
    return "\n".join(old), "\n".join(new)


def _split_edits(value: str) -> tuple[str, str]:
    try:
        edits = json.loads(value)
    except (ValueError, RecursionError):
        # Cut on its way, or nested without end: then at least its words are there.
        return "", value
    pairs = [edit for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, Sequence) else []
    old = "\n".join(str(edit.get("old_string", "")) for edit in pairs)
    return old, "\n".join(str(edit.get("new_string", "")) for edit in pairs)
