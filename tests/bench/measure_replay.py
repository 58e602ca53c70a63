"""Measures what evidence of use does to ranking, by replay: `python -m tests.bench.measure_replay [--sessions 60]`.

First on the demo's recorded sessions of the real Claude Code, which are few. Then on a simulation, and labelled so: the
eight invented projects of `tests/golden/coding`, with a sidecar's real recalls and evidence, but with sessions that
were made up. Each asks what an engineer of the project asks, some things often and most seldom, and uses what answers
it, as far as it was delivered. Evidence is as faulty as the local judge's (docs/judge.md): a quarter of the uses is
missed, and one in five that are claimed was none.

Three figures come of the simulation: what `sidecar replay` says; where the true answers rank for questions that were
asked before; and for questions that never were, which is where reinforcement could do harm.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memories
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.cli.demo import play
from sidecar.cli.demo.recordings import load_recordings, load_story
from sidecar.client import Sidecar
from tests.e2e.running import running_sidecar

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "coding"
CLIENT: Final = "claude-code"
DELIVERED: Final = 5
DEPTH: Final = 30
MISSED: Final = 0.25
FALSE_OF_CLAIMED: Final = 0.2
NEVER_ASKED: Final = 0.3
RESAMPLES: Final = 2_000


@dataclass(frozen=True)
class Question:
    """A question, and the ids of the memories that answer it; none do for some."""

    text: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Project:
    """An invented project in the store. `seldom`: questions that no session asks."""

    name: str
    asked: Sequence[Question]
    seldom: Sequence[Question]


@dataclass(frozen=True)
class Ranks:
    """Mean reciprocal rank of the first true answer, without evidence of use and with it, and the difference's 95 %."""

    questions: int
    without: float
    given: float
    low: float
    high: float


def main() -> int:
    """Print the figures; return the exit code."""
    parser = argparse.ArgumentParser(description="Measure what evidence of use does to ranking.")
    parser.add_argument("--sessions", type=int, default=60, help="simulated, of each project (60)")
    parser.add_argument("--json", action="store_true", help="as one document")
    options = parser.parse_args()
    document = {"demo": demo_figures(), "simulated": simulated_figures(sessions=options.sessions)}
    if options.json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _told(document))
    return 0


def demo_figures() -> dict[str, object]:
    """Play the demo's sessions with their recalls, as the client's bridge made them, and replay those."""
    story, recordings = load_story(), load_recordings()
    with play._folder() as folder, play._sidecar(folder, story.project) as sidecar:
        ids = play._store_memories(sidecar, story, lambda _: None)
        for recording in recordings:
            for query in recording.queries.values():
                sidecar.recall(_recall(query, session=recording.session, project=story.project))
            play._remember_what_was_remembered(folder / "home", story.project, recording, ids)
            play._write_transcript(folder / "claude", recording, ids)
            play._recalls_of(sidecar, recording)
        return _replayed(sidecar)


def simulated_figures(*, sessions: int, names: Sequence[str] = ()) -> dict[str, object]:
    """Play made-up sessions on invented projects; all of them if none is named."""
    chance = random.Random(7)
    names = names or sorted(path.stem for path in GOLDEN.glob("*.jsonl"))
    with tempfile.TemporaryDirectory() as folder, running_sidecar(Path(folder) / "home") as sidecar:
        projects = [_stored(sidecar, name, chance) for name in names]
        while not sidecar.wait_for_index(admin.WaitForIndexRequest()).done:
            continue
        turns = [(project, number) for project in projects for number in range(sessions)]
        chance.shuffle(turns)
        for project, number in turns:
            _play_session(sidecar, project, f"{project.name}-{number}", chance)
        return {
            "projects": len(projects),
            "sessions": len(turns),
            "replay": _replayed(sidecar),
            "asked_before": vars(_ranks(sidecar, [(one.name, one.asked) for one in projects], chance)),
            "never_asked": vars(_ranks(sidecar, [(one.name, one.seldom) for one in projects], chance)),
        }


def _stored(sidecar: Sidecar, name: str, chance: random.Random) -> Project:
    records = [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text("utf-8").splitlines()]
    ids: dict[str, str] = {}
    for record in records:
        if record["kind"] == "memory" and record["superseded_by"] is None:
            kind = memory_pb2.MemoryType.Value(f"MEMORY_TYPE_{record['type'].upper()}")
            request = memories.RememberRequest(content=record["content"], memory_type=kind, context=_caller(name, ""))
            ids[record["id"]] = sidecar.remember(request).memory_id
    questions = [
        Question(record["text"], frozenset(ids[answer] for answer in record["answers"]))
        for record in records
        if record["kind"] == "query"
    ]
    chance.shuffle(questions)
    never = round(len(questions) * NEVER_ASKED)
    return Project(name, questions[never:], questions[:never])


def _play_session(sidecar: Sidecar, project: Project, session: str, chance: random.Random) -> None:
    """Ask one or two things, of which the first are asked often, and report what was used."""
    weights = [1 / (place + 1) for place in range(len(project.asked))]
    for question in dict.fromkeys(chance.choices(project.asked, weights, k=chance.choice((1, 1, 2)))):
        answer = sidecar.recall(_recall(question.text, session=session, project=project.name))
        delivered = [found.memory.id for found in answer.memories]
        claimed = [one for one in delivered if one in question.answers and chance.random() >= MISSED]
        others = [one for one in delivered if one not in question.answers]
        if claimed and others and chance.random() < len(claimed) * FALSE_OF_CLAIMED / (1 - FALSE_OF_CLAIMED):
            claimed.append(chance.choice(others))
        if claimed:
            _cite(sidecar, project.name, session, claimed)


def _cite(sidecar: Sidecar, project: str, session: str, memory_ids: Sequence[str]) -> None:
    thread = evidence.SessionThread(client=CLIENT, session=session, project=project)

    def requests() -> Iterator[evidence.StreamEvidenceRequest]:
        request = evidence.StreamEvidenceRequest(
            batch_id=1, cursor=evidence.TranscriptCursor(client=CLIENT, path="/simulated")
        )
        for memory_id in memory_ids:
            event = request.events.add(event_id=f"{session}:{memory_id}", thread=thread)
            event.time.FromDatetime(datetime.now(UTC))
            event.memory_cited.memory_id = memory_id
        yield request

    (outcome,) = sidecar.stream_evidence(requests())
    # What a session used of an earlier question is not new a second time.
    assert len(outcome.used_memory_ids) <= len(memory_ids)


def _recall(query: str, *, session: str, project: str, **fields: object) -> memories.RecallRequest:
    context = _caller(project, session)
    return memories.RecallRequest(query=query, n_results=DELIVERED, context=context, **fields)  # type: ignore[arg-type]


def _caller(project: str, session: str) -> CallContext:
    return CallContext(client=CLIENT, session=session, project=project)


def _replayed(sidecar: Sidecar) -> dict[str, object]:
    without = insights.ReinforcementConstants(useful_gain=0, misled_loss=0)
    answer = sidecar.replay_recalls(insights.ReplayRecallsRequest(baseline=without))
    held_out = answer.held_out
    return {
        "outcome": answer.outcome,
        "reason": answer.reason,
        "recalls": answer.recalls,
        "telling": answer.judged_recalls,
        "deciding_sessions": held_out.sessions,
        "reciprocal_rank": _figure(held_out.mean_reciprocal_rank),
        "ndcg": _figure(held_out.ndcg),
        "useful_share": _figure(held_out.useful_share),
    }


def _figure(figure: insights.ReplayFigure) -> dict[str, float]:
    return {field.name: value for field, value in figure.ListFields()}


def _ranks(sidecar: Sidecar, questions: Sequence[tuple[str, Sequence[Question]]], chance: random.Random) -> Ranks:
    pairs = [
        _reciprocal_ranks(sidecar, project, question)
        for project, those in questions
        for question in those
        if question.answers
    ]
    differences = [given - without for without, given in pairs]
    drawn = sorted(sum(chance.choices(differences, k=len(pairs))) / len(pairs) for _ in range(RESAMPLES))
    without, given = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return Ranks(len(pairs), without, given, drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)])


def _reciprocal_ranks(sidecar: Sidecar, project: str, question: Question) -> tuple[float, float]:
    """Return the first true answer's, among the first 30, without evidence of use and with it."""
    request = _recall(question.text, session="", project=project, internal=True, explain=True)
    request.n_results = DEPTH
    found = sidecar.recall(request).memories
    # The same candidates: what evidence moved past the thirtieth place would count for nothing either way.
    bare = sorted(found, key=lambda one: -one.score / one.score_parts.reinforcement)
    ranked = ([one.memory.id for one in ranking] for ranking in (bare, found))
    without, given = (
        next((1 / place for place, one in enumerate(ids, 1) if one in question.answers), 0.0) for ids in ranked
    )
    return without, given


def _told(document: Mapping[str, object]) -> Iterator[str]:
    demo, simulated = document["demo"], document["simulated"]
    assert isinstance(demo, dict)
    assert isinstance(simulated, dict)
    yield "Demo: recorded sessions of the real client"
    yield from _replay_told(demo)
    yield ""
    yield f"SIMULATED: {simulated['sessions']} made-up sessions on {simulated['projects']} invented projects"
    yield from _replay_told(simulated["replay"])
    for name in ("asked_before", "never_asked"):
        ranks = Ranks(**simulated[name])
        yield (
            f"  true answers, questions {name.replace('_', ' ')} ({ranks.questions}): {ranks.without:.3f} -> "
            f"{ranks.given:.3f}, difference {ranks.low:+.3f} to {ranks.high:+.3f}"
        )


def _replay_told(replay: Mapping[str, object]) -> Iterator[str]:
    yield f"  {replay['outcome']}: {replay['reason']}"
    yield (
        f"  {replay['recalls']} recalls, {replay['telling']} with a used candidate; "
        f"{replay['deciding_sessions']} sessions decide"
    )
    for name in ("reciprocal_rank", "ndcg", "useful_share"):
        figure = replay[name]
        assert isinstance(figure, dict)
        if figure:
            yield (
                f"  {name}: {figure.get('baseline', 0.0):.3f} -> {figure.get('proposed', 0.0):.3f}, "
                f"difference {figure.get('difference_low', 0.0):+.3f} to {figure.get('difference_high', 0.0):+.3f}"
            )


if __name__ == "__main__":
    sys.exit(main())
