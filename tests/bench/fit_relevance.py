"""Fits the weights of `sidecar.domain.relevance` and prints them with their figures.

Run: OMP_NUM_THREADS=1 python -m tests.bench.fit_relevance (more threads on a busy machine make minutes of seconds)

Data: the sets of `tests.bench.quality`; those that lie beside the project are never copied into it, and the held-out
part of our own is left out. Every candidate of a question, the 100 nearest by meaning and the 100 best by words, is one
example. Right ones are rare, so they weigh as much as all wrong ones of their question together, and every set weighs
the same. The bias is lowered afterwards; see `BIAS_SHIFT`.

Three steps. First similarity and words, beside how far each is below the query's best: how steep they are is so learned
within each query, not from which sets happen to lie high. Then bias and scale of that sum, on our own set if it is
there: the floor must suit engineering memories, whose cosines are lower. Last the words of neighbours, on the set that
has sessions. Figures are cross-validated in five folds: by conversation where there are several stores, by project in
our own set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from sidecar.domain.text import normalise
from sidecar.domain.word_selection import WeighedTerm, rarest_first
from sidecar.domain.words import inverse_document_frequency, term_score, tokenise
from tests.bench.quality import golden_set, public_sets
from tests.bench.quality.collections import Collection, DataSet, Document
from tests.bench.quality.embedding_cache import CachedEmbedder, cache_path
from tests.bench.quality.figures import question_figures

OWN_SET: Final = "golden-dev"
CANDIDATES: Final = 100
FOLDS: Final = 5
NEWTON_STEPS: Final = 50
RIDGE: Final = 1e-3
TOLERANCE: Final = 1e-6
BIAS_SHIFT: Final = -2.0
"""Even odds would put every good candidate near 1, where the bounded factors of type, age and use outweigh what lies
between two of them: nDCG@10 on golden-dev 0.686, against 0.710, 0.719 and 0.725 shifted by 1, 2 and 3."""

STEPS: Final = (-2, -1, 1, 2)
FLOORS: Final = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One question's candidates, `n` rows each.

    Attributes:
        set_name: Of the data set.
        fold: Is left out together with what comes from the same store or project.
        near: `(n, 4)` what the words of neighbours have above `commonness`, as `relevance` takes them.
    """

    set_name: str
    fold: int
    similarity: Floats
    words: Floats
    commonness: float
    near: Floats
    names: tuple[str, ...]
    relevant: dict[str, int]

    @cached_property
    def is_right(self) -> npt.NDArray[np.bool_]:
        """Which candidates are right."""
        return np.isin(self.names, list(self.relevant))


@dataclass(frozen=True)
class Fit:
    """The weights of `RelevanceWeights` that need both signals."""

    bias: float
    similarity: float
    words: float
    common_words: float
    neighbours: Floats

    def scores(self, example: Example) -> Floats:
        """Return the sum whose logistic is the relevance."""
        words = max(self.words - self.common_words * example.commonness, 0.0)
        own = self.bias + self.similarity * example.similarity + words * example.words
        return np.asarray(own + _chance(own) * (example.near @ self.neighbours))


def _chance(scores: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-scores)))


def data_sets() -> list[DataSet]:
    """Return what is there to learn from."""
    public = [public_sets.locomo(), public_sets.cranfield(), public_sets.cosqa()] if public_sets.DATA.exists() else []
    return public + [part for part in golden_set.golden() if part.name == OWN_SET]


def examples_of(data_set: DataSet, embedder: CachedEmbedder) -> list[Example]:
    """Return the candidates of every question that has an answer."""
    found: list[Example] = []
    for number, collection in enumerate(data_set.collections):
        for project in sorted({document.project for document in collection.documents}):
            fold = number if len(data_set.collections) > 1 else None
            found += _of_project(data_set.name, collection, project, fold, embedder)
    return found


def _of_project(
    set_name: str, collection: Collection, project: str, fold: int | None, embedder: CachedEmbedder
) -> list[Example]:
    documents = [d for d in collection.documents if d.project == project and not d.superseded_by]
    is_only_project = len(documents) == len(collection.documents)
    texts = [normalise(document.text) for document in documents]
    rows = embedder.embed_documents(texts)
    matrix, starts = np.concatenate(rows), np.concatenate(([0], np.cumsum([len(r) for r in rows])[:-1]))
    words = _Words(texts)
    neighbours = _neighbour_places(documents)
    found: list[Example] = []
    for number, question in enumerate(q for q in collection.questions if q.project == project and q.relevant):
        cosines = np.maximum.reduceat(matrix @ embedder.embed_query(normalise(question.text)), starts)
        shares = words.shares(question.text)
        chosen = np.union1d(np.argsort(-cosines)[:CANDIDATES], np.argsort(-shares)[:CANDIDATES])
        commonness = float(np.sort(shares)[-CANDIDATES:].sum() / CANDIDATES)
        excess = np.zeros(len(shares) + 1)
        excess[chosen] = np.maximum(shares[chosen] - commonness, 0.0)
        project_fold = number if is_only_project else sum(project.encode())
        found.append(
            Example(
                set_name,
                (project_fold if fold is None else fold) % FOLDS,
                cosines[chosen].astype(np.float64),
                shares[chosen],
                commonness,
                excess[neighbours[chosen]],
                tuple(documents[place].name for place in chosen),
                dict(question.relevant),
            )
        )
    return found


class _Words:
    """Word shares as the store computes them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._postings: dict[str, dict[int, int]] = {}
        lengths = []
        for place, text in enumerate(texts):
            terms = tokenise(text)
            lengths.append(len(terms))
            for term in terms:
                counts = self._postings.setdefault(term, {})
                counts[place] = counts.get(place, 0) + 1
        self._lengths = lengths
        self._mean = sum(lengths) / max(len(lengths), 1)

    def shares(self, text: str) -> Floats:
        """Return for each text its BM25 score over the query's best possible, at most 1."""
        terms = dict.fromkeys(tokenise(normalise(text)))
        weighed = rarest_first([WeighedTerm(t, len(self._postings[t])) for t in terms if t in self._postings])
        scores = np.zeros(len(self._lengths))
        best = 0.0
        for term in weighed:
            idf = inverse_document_frequency(len(self._lengths), term.holding_count)
            best += idf
            for place, count in self._postings[term.term].items():
                scores[place] += term_score(count, idf, length=self._lengths[place], mean_length=self._mean)
        return np.minimum(scores / best, 1.0) if best else scores


def _neighbour_places(documents: Sequence[Document]) -> npt.NDArray[np.int64]:
    """Return `(n, 4)` places of the documents next to each in its session; the place behind the last for none."""
    places = np.full((len(documents), len(STEPS)), len(documents), np.int64)
    for place, document in enumerate(documents):
        for column, step in enumerate(STEPS):
            other = place + step
            if document.session and 0 <= other < len(documents) and documents[other].session == document.session:
                places[place, column] = other
    return places


def logistic(features: Floats, is_right: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the weights of a ridge logistic regression, by Newton's method."""
    right = is_right.astype(np.float64)
    beta = np.zeros(features.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1.0 / (1.0 + np.exp(-(features @ beta)))
        gradient = features.T @ (weights * (p - right)) + RIDGE * beta
        hessian = (features * (weights * p * (1 - p))[:, None]).T @ features + RIDGE * np.eye(len(beta))
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.abs(step).max() < TOLERANCE:
            break
    return beta


def _stacked(
    examples: Sequence[Example], columns: Callable[[Example], list[Floats]]
) -> tuple[Floats, npt.NDArray[np.bool_], Floats]:
    """Return features, labels and weights: sets and their questions weigh the same, right ones as much as wrong."""
    sizes = {name: sum(e.set_name == name for e in examples) for name in {e.set_name for e in examples}}
    features = np.concatenate([np.column_stack(columns(example)) for example in examples])
    is_right = np.concatenate([example.is_right for example in examples])
    weights = np.concatenate([_balance(e.is_right) * 1000 / sizes[e.set_name] for e in examples])
    return features, is_right, weights


def _balance(is_right: npt.NDArray[np.bool_]) -> Floats:
    right = max(int(is_right.sum()), 1)
    wrong = max(int((~is_right).sum()), 1)
    return np.where(is_right, 0.5 / right, 0.5 / wrong)


def _ones(example: Example) -> Floats:
    return np.ones(len(example.names))


def fit(examples: Sequence[Example]) -> Fit:
    """Return the weights; see the module for the three steps."""

    def steepness(e: Example) -> list[Floats]:
        relative = [e.similarity - e.similarity.max(), e.words - e.words.max()]
        return [_ones(e), e.similarity, e.words, *relative, e.words * e.commonness]

    b = logistic(*_stacked(examples, steepness))
    raw = Fit(0.0, float(b[1] + b[3]), float(b[2] + b[4]), float(-b[5]), np.zeros(len(STEPS)))
    bias, scale = logistic(*_stacked(_own(examples), lambda e: [_ones(e), raw.scores(e)]))
    base = Fit(
        float(bias) + BIAS_SHIFT, raw.similarity * scale, raw.words * scale, raw.common_words * scale, raw.neighbours
    )
    with_sessions = [e for e in examples if e.near.any()]
    if not with_sessions:
        return base

    def beside(e: Example) -> list[Floats]:
        own = base.scores(e)
        return [_ones(e), own, _chance(own)[:, None] * e.near]

    near = logistic(*_stacked(with_sessions, beside))
    return Fit(base.bias, base.similarity, base.words, base.common_words, near[2:] / near[1])


def _own(examples: Sequence[Example]) -> Sequence[Example]:
    return [e for e in examples if e.set_name == OWN_SET] or examples


def held_out_figures(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return the mean figures of each set, every fold ranked by weights that were fitted on the other four."""
    fits = {fold: fit([e for e in examples if e.fold != fold]) for fold in {e.fold for e in examples}}
    gathered: dict[str, list[dict[str, float]]] = {}
    for example in examples:
        order = np.argsort(-fits[example.fold].scores(example), kind="stable")
        ranked = [example.names[place] for place in order]
        gathered.setdefault(example.set_name, []).append(question_figures(ranked, example.relevant))
    return {
        name: {key: float(np.mean([row[key] for row in rows])) for key in ("R@5", "R@10", "nDCG@10")}
        for name, rows in gathered.items()
    }


def main() -> None:
    """Print weights and figures."""
    embedder = CachedEmbedder(cache_path())
    examples = [example for data_set in data_sets() for example in examples_of(data_set, embedder)]
    embedder.close()
    print(f"{len(examples)} questions, {sum(len(e.names) for e in examples)} candidates")
    fitted = fit(examples)
    print(
        f"both: bias {fitted.bias:.2f}, similarity {fitted.similarity:.2f}, words {fitted.words:.2f}, "
        f"common_words {fitted.common_words:.2f}, neighbours {np.round(fitted.neighbours, 2).tolist()}"
    )
    words = logistic(*_stacked(_own(examples), lambda e: [_ones(e), e.words]))
    meaning = logistic(*_stacked(_own(examples), lambda e: [_ones(e), e.similarity]))
    words[0] += BIAS_SHIFT
    meaning[0] += BIAS_SHIFT
    print(f"words alone: {np.round(words, 2).tolist()}; meaning alone: {np.round(meaning, 2).tolist()}")
    for name, figures in held_out_figures(examples).items():
        print(f"{name}, unseen folds: " + ", ".join(f"{key} {value:.3f}" for key, value in figures.items()))
    _print_floors(examples, fitted)


def _print_floors(examples: Sequence[Example], fitted: Fit) -> None:
    """Show what each floor costs in answers and keeps out in others, set by set."""
    for name in dict.fromkeys(example.set_name for example in examples):
        chances = [(_chance(fitted.scores(e)), e.is_right) for e in examples if e.set_name == name]
        right = np.concatenate([p[r] for p, r in chances])
        wrong = np.concatenate([p[~r] for p, r in chances])
        shares = (f"{f:g}: {(right >= f).mean():.3f} / {(wrong >= f).mean():.3f}" for f in FLOORS)
        print(f"{name}, right / wrong candidates kept by a floor of " + ", ".join(shares))


if __name__ == "__main__":
    main()
