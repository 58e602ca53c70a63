"""Asks every question of a data set of every ranker, and gathers the figures."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from sidecar.ports import Embedder
from sidecar.use_cases.recall import RecallPolicy
from tests.bench.quality.baselines import ExactCosine, PlainBm25, fused
from tests.bench.quality.collections import Collection, DataSet, Document, Question
from tests.bench.quality.figures import question_figures
from tests.bench.quality.real_store import DEPTH, FilledStore, filled_store

OURS: Final = "ours"
RANKERS: Final = ("plain BM25", "cosine", "words only", "vectors only", "rank fusion", OURS)
"""The first two know nothing of our store; the next two are its two legs, and fusion is of these two, k = 60."""


_FLOORS: Final = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class Asked:
    """What one ranker answered to one question.

    Attributes:
        ranked: Names, best first, at most `DEPTH`.
        scores: Of `ranked`, for our own ranker; empty for others.
        figures: See `question_figures`; empty for a question without an answer.
    """

    question: Question
    collection: str
    ranker: str
    ranked: tuple[str, ...]
    scores: tuple[float, ...]
    figures: dict[str, float]


async def measure(data_set: DataSet, embedder: Embedder, policy: RecallPolicy) -> list[Asked]:
    """Return what was answered to every question, each collection in a store of its own."""
    asked: list[Asked] = []
    for collection in data_set.collections:
        with tempfile.TemporaryDirectory() as folder:
            async with filled_store(collection, Path(folder), embedder, policy) as filled:
                asked += await _ask(collection, filled, embedder)
    return asked


async def _ask(collection: Collection, filled: FilledStore, embedder: Embedder) -> list[Asked]:
    kept = {d.name: d for d in collection.documents if d.name in set(filled.names.values()) and not d.superseded_by}
    bm25 = PlainBm25({name: document.text for name, document in kept.items()})
    vectors = embedder.embed_documents([document.text for document in kept.values()])
    cosine = ExactCosine(dict(zip(kept, vectors, strict=True)))
    names_of = {project: _of_project(kept, project) for project in {q.project for q in collection.questions}}
    asked: list[Asked] = []
    for question in collection.questions:
        allowed = names_of[question.project]
        words = await filled.words_only(question.text, question.project)
        near = await filled.vectors_only(question.text, question.project)
        recalled = await filled.ours(question.text, question.project)
        rankings = {
            "plain BM25": bm25.rank(question.text, allowed),
            "cosine": cosine.rank(embedder.embed_query(question.text), allowed),
            "words only": words,
            "vectors only": near,
            "rank fusion": fused([words, near]),
            OURS: [filled.names[found.memory.key] for found in recalled],
        }
        relevant = {filled.first_names[name]: grade for name, grade in question.relevant.items()}
        scores = tuple(round(found.parts.score, 4) for found in recalled)
        for ranker, ranked in rankings.items():
            figures = question_figures(ranked, relevant) if relevant else {}
            shown = scores if ranker == OURS else ()
            asked.append(Asked(question, collection.name, ranker, tuple(ranked[:DEPTH]), shown, figures))
    return asked


def _of_project(documents: dict[str, Document], project: str) -> list[str]:
    return [name for name, document in documents.items() if document.project == project]


def values(
    asked: Iterable[Asked], ranker: str, figure: str, keep: Callable[[Question], bool] | None = None
) -> list[float]:
    """Return a figure of a ranker for each question that has an answer, in the order in which they were asked."""
    return [
        one.figures[figure]
        for one in asked
        if one.ranker == ranker and one.figures and (keep is None or keep(one.question))
    ]


@dataclass(frozen=True)
class FloorCost:
    """What a lowest score would do: the share of answers it loses, and of questions without one that get nothing."""

    floor: float
    lost: float
    abstained: float


def floor_costs(asked: Iterable[Asked], *, cut: int) -> list[FloorCost]:
    """Return what several floors would cost among the first `cut` results; empty if every question has an answer."""
    ours = [one for one in asked if one.ranker == OURS]
    right = [
        score
        for one in ours
        for name, score in zip(one.ranked[:cut], one.scores[:cut], strict=False)
        if name in one.question.relevant
    ]
    best_wrong = [max(one.scores, default=0.0) for one in ours if not one.question.relevant]
    if not best_wrong or not right:
        return []
    return [
        FloorCost(
            floor=float(floor),
            lost=float(np.mean(np.asarray(right) < floor)),
            abstained=float(np.mean(np.asarray(best_wrong) < floor)),
        )
        for floor in _FLOORS
    ]
