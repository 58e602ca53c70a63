"""Plays the demo: a real sidecar, a real watcher, and the recorded sessions as the client would have written them."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.cli.demo.recordings import PROJECT_FOLDER, Recording, RememberCall, Story, load_recordings, load_story
from sidecar.client import DataFolder, Sidecar, stop
from sidecar.errors import DeadlineError

CLIENT: Final = "claude-code"
RANKED: Final = 5
_WATCHED_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.05

Progress = Callable[[str], None]
"""Gets what is being done now."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One line of a ranking."""

    memory_id: str
    content: str
    score: float
    reinforcement: float


@dataclass(frozen=True, slots=True)
class RecallShown:
    """What one recall of a recorded session showed, as the watcher read it from the transcript."""

    query: str
    shown: tuple[str, ...]
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything the demo has to tell.

    Attributes:
        contents: Memory id -> its text.
        before: Query -> its ranking before the sessions; `after` the same afterwards.
    """

    story: Story
    contents: Mapping[str, str]
    recalls: tuple[RecallShown, ...]
    before: Mapping[str, tuple[Ranked, ...]]
    after: Mapping[str, tuple[Ranked, ...]]
    duration_s: float


def play(progress: Progress) -> Outcome:
    """Run the whole story and return what happened."""
    began = time.perf_counter()
    story, recordings = load_story(), load_recordings()
    queries = list(dict.fromkeys(query for recording in recordings for query in recording.queries.values()))
    with _folder() as folder, _sidecar(folder, story.project) as sidecar:
        ids = _store_memories(sidecar, story, progress)
        before = {query: _ranking(sidecar, query) for query in queries}
        recalls: list[RecallShown] = []
        for number, recording in enumerate(recordings, 1):
            progress(f"playing recorded session {number} of {len(recordings)}")
            _remember_what_was_remembered(folder / "home", story.project, recording, ids)
            _write_transcript(folder / "claude", recording, ids)
            recalls += _recalls_of(sidecar, recording)
        progress("ranking again")
        sidecar.wait_for_index(admin.WaitForIndexRequest())
        after = {query: _ranking(sidecar, query) for query in queries}
        contents = _contents(sidecar)
    return Outcome(story, contents, tuple(recalls), before, after, time.perf_counter() - began)


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sidecar-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _sidecar(folder: Path, project: str) -> Iterator[Sidecar]:
    """Give a sidecar that watches the demo's own transcripts and nothing of the user's."""
    home = folder / "home"
    DataFolder.at(home).prepare()
    claude = folder / "claude"
    (claude / "projects").mkdir(parents=True)
    settings = f"watch_clients = 'claude-code'\nclaude_config_dir = '{claude}'\n"
    (home / "config.toml").write_text(settings, encoding="utf-8")
    try:
        with Sidecar.connect(home, context=memory_pb2.CallContext(client="demo", project=project)) as sidecar:
            yield sidecar
    finally:
        stop(home, force=True)


def _store_memories(sidecar: Sidecar, story: Story, progress: Progress) -> dict[str, str]:
    """Store the project's memories and return recorded id -> new id."""
    ids: dict[str, str] = {}
    for number, memory in enumerate(story.memories, 1):
        progress(f"storing memory {number} of {len(story.memories)}")
        stored = sidecar.remember(
            pb.RememberRequest(
                content=memory.content,
                memory_type=memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{memory.type.upper()}"),
                importance=memory.importance,
            )
        )
        recorded = story.recorded_ids.get(memory.name)
        if recorded is not None:
            ids[recorded] = stored.memory_id
    progress("embedding them")
    sidecar.wait_for_index(admin.WaitForIndexRequest())
    return ids


def _ranking(sidecar: Sidecar, query: str) -> tuple[Ranked, ...]:
    answer = sidecar.recall(pb.RecallRequest(query=query, n_results=RANKED, explain=True, internal=True))
    return tuple(
        Ranked(found.memory.id, found.memory.content, found.score, found.score_parts.reinforcement)
        for found in answer.memories
    )


def _remember_what_was_remembered(home: Path, project: str, recording: Recording, ids: dict[str, str]) -> None:
    """Do what the client's MCP bridge did: store the session's own memories, linked as the agent linked them."""
    context = memory_pb2.CallContext(client=CLIENT, session=recording.session, project=project)
    with Sidecar.connect(home, start=False, context=context) as bridge:
        for call in recording.remembered:
            stored = bridge.remember(_remember_request(call, ids))
            ids[call.recorded_id] = stored.memory_id


def _remember_request(call: RememberCall, ids: Mapping[str, str]) -> pb.RememberRequest:
    return pb.RememberRequest(
        content=call.content,
        memory_type=memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{call.memory_type.upper()}"),
        links=[
            memory_pb2.Link(
                relation=memory_pb2.Relation.Value(f"RELATION_{link.relation.name}"), memory_id=ids[link.memory_id]
            )
            for link in call.links
        ],
    )


def _write_transcript(claude: Path, recording: Recording, ids: Mapping[str, str]) -> None:
    """Write the session where Claude Code would have, in two appends, the first of which ends within a line."""
    folder = claude / "projects" / PROJECT_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    text = recording.text(ids)
    with (folder / f"{recording.session}.jsonl").open("a", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        file.write(text[len(text) // 2 :])


def _recalls_of(sidecar: Sidecar, recording: Recording) -> list[RecallShown]:
    """Wait until the watcher has reported every recall of the session with its result."""
    request = evidence.GetSessionRequest(client=CLIENT, session=recording.session)
    deadline = time.monotonic() + _WATCHED_WITHIN_S
    while time.monotonic() < deadline:
        recalls = sidecar.get_session(request).recalls
        answered = [recall for recall in recalls if recall.shown.WhichOneof("state") != "unknown"]
        if len(answered) == len(recording.queries) and _used_count(recalls) >= _expected_used(recording):
            return [
                RecallShown(
                    recording.queries[recall.call_id],
                    tuple(recall.shown.ids.memory_ids),
                    frozenset(recall.used_memory_ids),
                )
                for recall in recalls
            ]
        time.sleep(_POLL_S)
    raise DeadlineError("reading the recorded session", _WATCHED_WITHIN_S)


def _used_count(recalls: Iterable[evidence.SessionRecall]) -> int:
    return len({memory_id for recall in recalls for memory_id in recall.used_memory_ids})


def _expected_used(recording: Recording) -> int:
    return len({link.memory_id for call in recording.remembered for link in call.links})


def _contents(sidecar: Sidecar) -> dict[str, str]:
    states = [memory_pb2.MEMORY_STATE_ACTIVE, memory_pb2.MEMORY_STATE_SUPERSEDED]
    page = sidecar.list_memories(
        pb.ListMemoriesRequest(filter=pb.MemoryFilter(namespace="*", states=states), page_size=1000)
    )
    return {memory.id: memory.content for memory in page.memories}
