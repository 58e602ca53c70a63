"""The recorded sessions and the memories they speak of, as shipped, and how a recording is given other ids.

Recorded with the real Claude Code against a scripted model (`tests/lab/record_demo.py`); the client's own prompt texts
are blanked.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Final

from sidecar.domain.ids import MEMORY_ID
from sidecar.domain.memory import Link, Relation

_DATA: Final = "sidecar.cli.demo.data"
PROJECT_FOLDER: Final = "-home-dev-saltmarsh"


@dataclass(frozen=True, slots=True)
class StoryMemory:
    """One memory of the made-up project."""

    name: str
    type: str
    importance: float
    content: str


@dataclass(frozen=True, slots=True)
class Story:
    """The made-up project and what was recorded of it.

    Attributes:
        recorded_ids: Name of a memory -> its id in the recordings.
    """

    project: str
    about: str
    memories: tuple[StoryMemory, ...]
    recorded_ids: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RememberCall:
    """A `remember` in a recording: what was stored, and the id it got then."""

    content: str
    links: tuple[Link, ...]
    memory_type: str
    recorded_id: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded session: its id, its lines, and what was stored in it."""

    session: str
    lines: tuple[str, ...]
    remembered: tuple[RememberCall, ...]

    @property
    def queries(self) -> dict[str, str]:
        """Call id of each recall -> what was asked."""
        return {call_id: str(given.get("query", "")) for call_id, name, given in _calls(self.lines) if name == "recall"}

    def text(self, ids: Mapping[str, str]) -> str:
        """Return the transcript with every memory id replaced; ids that nothing replaces stay."""
        return MEMORY_ID.sub(lambda found: ids.get(found[0], found[0]), "".join(self.lines))


def load_story() -> Story:
    """Return the made-up project."""
    story = json.loads(_read("memories.json"))
    recorded = json.loads(_read("recorded_ids.json"))
    return Story(
        project=story["project"],
        about=story["about"],
        memories=tuple(StoryMemory(**memory) for memory in story["memories"]),
        recorded_ids=recorded,
    )


def load_recordings() -> list[Recording]:
    """Return the recorded sessions in the order in which they took place."""
    folder = resources.files(_DATA).joinpath("sessions")
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".jsonl")), key=lambda entry: entry.name)
    return [_recording(entry.read_text("utf-8")) for entry in files]


def _recording(text: str) -> Recording:
    lines = tuple(text.splitlines(keepends=True))
    results = _results(lines)
    remembered = tuple(
        RememberCall(
            content=str(given["content"]),
            links=_links(given.get("links")),
            memory_type=str(given.get("memory_type", "session")),
            recorded_id=MEMORY_ID.findall(results[call_id])[0],
        )
        for call_id, name, given in _calls(lines)
        if name == "remember"
    )
    return Recording(str(json.loads(lines[0])["sessionId"]), lines, remembered)


def _calls(lines: tuple[str, ...]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield id, tool and input of each call of our tools."""
    for block in _blocks(lines):
        name, given = str(block.get("name", "")), block.get("input")
        if block.get("type") == "tool_use" and "__" in name and isinstance(given, dict):
            yield str(block["id"]), name.rpartition("__")[2], given


def _results(lines: tuple[str, ...]) -> dict[str, str]:
    return {
        str(block["tool_use_id"]): json.dumps(block["content"])
        for block in _blocks(lines)
        if block.get("type") == "tool_result"
    }


def _blocks(lines: tuple[str, ...]) -> Iterator[Mapping[str, object]]:
    for line in lines:
        message = json.loads(line).get("message")
        content = message.get("content") if message else None
        if isinstance(content, list):
            yield from content


def _links(given: object) -> tuple[Link, ...]:
    if not isinstance(given, list):
        return ()
    return tuple(Link(Relation(link["relation"]), link["memory_id"]) for link in given)


def _read(name: str) -> str:
    return resources.files(_DATA).joinpath(name).read_text("utf-8")
