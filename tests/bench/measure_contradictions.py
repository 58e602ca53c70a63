"""Measures the rules on contradictions: precision, recall and F1 by label, and what each rule decided.

Run: python -m tests.bench.measure_contradictions [--errors]

Data: the golden pairs of statements, by split, and the public pairs beside the project (never copied into it), which
are about scenes in pictures rather than software: they show how the rules do on text they were not written for.
"""

import argparse
import csv
import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.domain.contradiction import StatementComparison, Verdict, compare_statements

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "statement_pairs.jsonl"
PUBLIC = ROOT.parent / "shared" / "data" / "nli"
PUBLIC_FILES = ("sick_dev.csv", "snli_dev.csv")
MAX_PUBLIC_PAIRS = 3000
SPLITS = ("dev", "test", "held_out")
LABELS = (Verdict.CONTRADICTS, Verdict.SUPERSEDES, Verdict.COMPATIBLE, Verdict.UNRELATED)
NEAR_IDENTICAL_RATIO = 0.6
_PUBLIC_LABELS = {
    "contradiction": Verdict.CONTRADICTS,
    "entailment": Verdict.COMPATIBLE,
    "neutral": Verdict.UNRELATED,
}


@dataclass(frozen=True)
class Pair:
    """Two statements and what a person says of them."""

    name: str
    split: str
    label: Verdict
    older: str
    newer: str

    @property
    def is_near_identical(self) -> bool:
        """Whether at least six words in ten are the same, in order (difflib's ratio)."""
        older, newer = (re.findall(r"\w+", text.lower()) for text in (self.older, self.newer))
        return bool(difflib.SequenceMatcher(None, older, newer, autojunk=False).ratio() >= NEAR_IDENTICAL_RATIO)


@dataclass(frozen=True)
class Judged:
    """A pair, its cosine, and what the rules said."""

    pair: Pair
    similarity: float
    comparison: StatementComparison

    @property
    def verdict(self) -> Verdict:
        """What the rules said, where a pair too far apart to compare counts as unrelated."""
        found = self.comparison.verdict
        return Verdict.UNRELATED if found is Verdict.NOT_CHECKED else found


@dataclass(frozen=True)
class Figures:
    """How well one label was found; precision and recall are None where nothing was said or there was nothing."""

    right: int
    said: int
    there: int

    @property
    def precision(self) -> float | None:
        """Of what was said, how much was right."""
        return self.right / self.said if self.said else None

    @property
    def recall(self) -> float | None:
        """Of what was there, how much was found."""
        return self.right / self.there if self.there else None

    @property
    def f1(self) -> float | None:
        """The harmonic mean of both."""
        return 2 * self.right / (self.said + self.there) if self.said + self.there else None


def load_golden() -> list[Pair]:
    """Return the golden pairs of both splits."""
    rows = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    return [Pair(row["id"], row["split"], Verdict(row["label"]), row["older"], row["newer"]) for row in rows]


def load_public(path: Path) -> list[Pair]:
    """Return the first pairs of a public set; its premise is taken for the older statement."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = islice((row for row in csv.DictReader(file) if row["label"] in _PUBLIC_LABELS), MAX_PUBLIC_PAIRS)
        return [
            Pair(f"{path.stem}-{n}", path.stem, _PUBLIC_LABELS[row["label"]], row["premise"], row["hypothesis"])
            for n, row in enumerate(rows)
        ]


def similarities(pairs: Sequence[Pair], embedder: OnnxMiniLmEmbedder) -> list[float]:
    """Return each pair's raw cosine."""
    texts = sorted({text for pair in pairs for text in (pair.older, pair.newer)}, key=len)
    vectors = {text: rows[0] for text, rows in zip(texts, embedder.embed_documents(texts), strict=True)}
    return [float(vectors[pair.older] @ vectors[pair.newer]) for pair in pairs]


def judge(pairs: Sequence[Pair], cosines: Iterable[float]) -> list[Judged]:
    """Compare each pair by the rules."""
    return [
        Judged(pair, cosine, compare_statements(pair.older, pair.newer, similarity=cosine))
        for pair, cosine in zip(pairs, cosines, strict=True)
    ]


def figures(judged: Sequence[Judged], label: Verdict) -> Figures:
    """Return how well a label was found."""
    said = [item for item in judged if item.verdict is label]
    return Figures(
        right=sum(item.pair.label is label for item in said),
        said=len(said),
        there=sum(item.pair.label is label for item in judged),
    )


def print_report(title: str, judged: Sequence[Judged], labels: Sequence[Verdict] = LABELS) -> None:
    """Print the figures of one set."""
    near = sum(item.pair.is_near_identical for item in judged)
    print(f"\n{title}: {len(judged)} pairs, {near} of them near-identical in wording")
    print(
        f"  {'label':<12}{'pairs':>6}{'said':>6}{'precision':>11}{'recall':>8}{'F1':>7}"
        "   cosine: 10 %, median, 90 %, share >= 0.7"
    )
    for label in labels:
        found = figures(judged, label)
        cosines = np.array([item.similarity for item in judged if item.pair.label is label])
        spread = " ".join(f"{value:5.2f}" for value in np.percentile(cosines, (10, 50, 90)))
        rates = f"{_rate(found.precision):>11}{_rate(found.recall):>8}{_rate(found.f1):>7}"
        print(f"  {label:<12}{found.there:>6}{found.said:>6}{rates}   {spread}  {(cosines >= 0.7).mean():5.2f}")
    compared = [item for item in judged if item.comparison.verdict is not Verdict.NOT_CHECKED]
    among = figures(compared, Verdict.CONTRADICTS)
    rates = f"precision {_rate(among.precision)}, recall {_rate(among.recall)}"
    print(f"  contradicts among the {len(compared)} compared: {rates}")
    _print_methods(judged)


def _print_methods(judged: Sequence[Judged]) -> None:
    by_method = Counter((item.comparison.verdict, item.comparison.method) for item in judged)
    right = Counter(
        (item.comparison.verdict, item.comparison.method) for item in judged if item.verdict is item.pair.label
    )
    print(f"  {'verdict':<14}{'method':<18}{'said':>6}{'right':>6}")
    for (verdict, method), count in sorted(by_method.items()):
        print(f"  {verdict:<14}{method:<18}{count:>6}{right[verdict, method]:>6}")


def print_errors(judged: Sequence[Judged]) -> None:
    """Print each pair whose label was missed."""
    for item in judged:
        if item.verdict is not item.pair.label:
            found = f"{item.comparison.verdict}, {item.comparison.method}, {item.similarity:.2f}"
            print(f"  {item.pair.name}: {item.pair.label} taken for {found}")
            print(f"      {item.pair.older}\n      {item.pair.newer}")


def print_cosine_baseline(judged: Sequence[Judged]) -> None:
    """Print what a threshold on the cosine alone would do for contradictions."""
    for threshold in (0.7, 0.8, 0.9, 0.95):
        said = [item for item in judged if item.similarity >= threshold]
        right = sum(item.pair.label is Verdict.CONTRADICTS for item in said)
        there = sum(item.pair.label is Verdict.CONTRADICTS for item in judged)
        print(f"  cosine >= {threshold}: precision {right / len(said):.3f}, recall {right / there:.3f}")


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    """Print the figures of every set that is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--errors", choices=SPLITS, help="print the pairs of a split that were judged wrong")
    options = parser.parse_args()
    embedder = OnnxMiniLmEmbedder()
    golden = load_golden()
    judged = judge(golden, similarities(golden, embedder))
    for split in SPLITS:
        part = [item for item in judged if item.pair.split == split]
        print_report(f"golden, {split}", part)
        if options.errors == split:
            print_errors(part)
    print("\ncosine alone as a sign of contradiction, golden, all splits:")
    print_cosine_baseline(judged)
    for name in PUBLIC_FILES:
        path = PUBLIC / name
        if not path.exists():
            print(f"\n{name}: skipped, the public pairs are not beside the project")
            continue
        pairs = load_public(path)
        found = judge(pairs, similarities(pairs, embedder))
        print_report(f"public, {name}", found, (Verdict.CONTRADICTS, Verdict.COMPATIBLE, Verdict.UNRELATED))


if __name__ == "__main__":
    main()
