"""Reads the block in which Codex has its agents cite the memories they used. Pure.

The block is meant for Codex's own memory files: each line of it names a file, lines and a note. An agent that cites one
of our memories there puts its id into either; files and threads of Codex's own name nothing that we know. The words of
the answer keep the block, events about the answer have it as an object; both say the same.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from client_plugins.kit.fields import object_field, text_field
from client_plugins.kit.json_line import JsonObject
from sidecar.domain.ids import find_memory_ids

_BEGIN: Final = "<oai-mem-citation>"
_END: Final = "</oai-mem-citation>"
_FIELDS: Final = ("memory_citation", "memoryCitation")
# More than any answer rests on; only something hostile cites more.
_MAX_CITED: Final = 50


def without_citations(text: str) -> tuple[str, tuple[str, ...]]:
    """Return an answer without its blocks, and the ids of our memories in them; one without an end takes all."""
    begin = text.find(_BEGIN)
    if begin < 0:
        return text, ()
    spoken: list[str] = []
    cited: list[str] = []
    place = 0
    while begin >= 0:
        spoken.append(text[place:begin])
        end = text.find(_END, begin)
        block = text[begin + len(_BEGIN) : end if end >= 0 else len(text)]
        cited.extend(find_memory_ids(block))
        place = end + len(_END) if end >= 0 else len(text)
        begin = text.find(_BEGIN, place)
    return "".join([*spoken, text[place:]]).rstrip(), _bounded(cited)


def cited_in(answer: JsonObject) -> tuple[str, ...]:
    """Return the ids of our memories that an event about an answer says were cited."""
    return _bounded(memory_id for text in _entry_texts(answer) for memory_id in find_memory_ids(text))


def _entry_texts(answer: JsonObject) -> Iterator[str]:
    for name in _FIELDS:
        entries = object_field(answer, name).get("entries")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield text_field(entry, "path")
                yield text_field(entry, "note")


def _bounded(memory_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(islice(dict.fromkeys(memory_ids), _MAX_CITED))
