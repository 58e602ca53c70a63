"""Fits the local judge and prints its figures.

Run: python -m tests.bench.fit_judge [--write]

Data: the development split of labelled transcripts beside the project (never copied into it). What is printed:

- cross-validated by project, everything that is fitted (weights, ridge) anew in each of five folds, five times over;
- one fifth of the projects, chosen by a hash: judged by a model of the rest. Looked at several times since, so no
  clean test any more; see docs/judge.md.

`--write` fits on all of it and replaces the weights that ship with the package.
"""

import argparse
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.judges.local import LocalJudge
from sidecar.adapters.judges.weights_file import write_model
from sidecar.api.plain import JsonValue
from sidecar.domain.judgement import MISLED_THRESHOLD, RELEVANT_THRESHOLD, USED_THRESHOLD
from sidecar.domain.judging.labelled import LabelledCase, read_labelled
from sidecar.domain.judging.model import JudgeModel, Question
from sidecar.domain.judging.scoring import Asked, Judged, by_kind, calibration_error, score
from tests.bench.judge_fitting import Bools, Floats, fit_question, folds

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "usage" / "dev.jsonl"
VERSION = "2"
SPLITS = 5
RESAMPLES = 1000
COMMAND = "python -m tests.bench.fit_judge --write"
LINES = {
    Asked.USED: (0.46, USED_THRESHOLD),
    Asked.RELEVANT: (RELEVANT_THRESHOLD, RELEVANT_THRESHOLD),
    Asked.MISLED: (0.5, MISLED_THRESHOLD),
}
"""Raw and calibrated probability from which on the answer is yes.

For the best F, a calibrated probability says yes from half of that F on: 0.4 for `used`, a little more for precision's
sake. 0.44 to 0.48 differ by less than 0.01 in F.
"""

NO_MODEL = JudgeModel("none", *(Question(0.0, {}, ((0.0, 0.0), (1.0, 1.0))) for _ in range(3)))


@dataclass(frozen=True)
class Examples:
    """Cases with their signals: `features` is (cases, signals)."""

    cases: list[LabelledCase]
    names: list[str]
    features: Floats

    def subset(self, mask: Bools) -> "Examples":
        """Return the cases of a mask."""
        return Examples(
            [case for case, taken in zip(self.cases, mask, strict=True) if taken], self.names, self.features[mask]
        )

    @property
    def projects(self) -> list[str]:
        """Project of each case."""
        return [case.project for case in self.cases]

    def answers(self, asked: Asked) -> Bools:
        """The labels of one question."""
        return np.array([getattr(case.label, asked.value) for case in self.cases], dtype=bool)


def is_held_out(project: str) -> bool:
    """Tell whether a project is among those set aside; they have been looked at since, see docs/judge.md."""
    return int(hashlib.sha256(f"judge-holdout:{project}".encode()).hexdigest(), 16) % 5 == 0


def load_examples() -> Examples:
    """Return all development cases with their signals."""
    cases = list(read_labelled(DATA.read_text(encoding="utf-8").splitlines()))
    judge = LocalJudge(OnnxMiniLmEmbedder(), model=NO_MODEL)
    signals = dict(judge.signals([case.case for case in cases]))
    names = list(signals[0])
    features = np.array([[signals[place][name] for name in names] for place in range(len(cases))])
    return Examples(cases, names, features)


def fit_model(examples: Examples, *, version: str = VERSION) -> JudgeModel:
    """Return a model fitted on these cases alone."""
    questions = {
        asked: fit_question(
            examples.names,
            examples.features,
            examples.answers(asked),
            examples.projects,
            line=line,
            threshold=threshold,
        )
        for asked, (line, threshold) in LINES.items()
    }
    return JudgeModel(version, questions[Asked.USED], questions[Asked.RELEVANT], questions[Asked.MISLED])


def judge_with(model: JudgeModel, examples: Examples) -> list[Judged]:
    """Return the labels beside the model's verdicts."""
    return [
        Judged(case.label, model.verdict(case.case.memory_id, dict(zip(examples.names, map(float, row), strict=True))))
        for case, row in zip(examples.cases, examples.features, strict=True)
    ]


def cross_validate(examples: Examples, *, seed: int) -> list[Judged]:
    """Return each case judged by a model that saw no case of its project."""
    judged: list[Judged | None] = [None] * len(examples.cases)
    for held in folds(examples.projects, seed=100 + seed):
        model = fit_model(examples.subset(~held))
        for place, entry in zip(np.flatnonzero(held), judge_with(model, examples.subset(held)), strict=True):
            judged[place] = entry
    return [entry for entry in judged if entry is not None]


def interval(judged: Sequence[Judged], projects: Sequence[str], asked: Asked) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of precision, recall and F1, whole projects drawn with replacement."""
    by_project: dict[str, list[Judged]] = {}
    for project, entry in zip(projects, judged, strict=True):
        by_project.setdefault(project, []).append(entry)
    names = sorted(by_project)
    draws = np.random.default_rng(7).integers(len(names), size=(RESAMPLES, len(names)))
    found: dict[str, list[float]] = {"precision": [], "recall": [], "f1": []}
    for draw in draws:
        figures = score((entry for number in draw for entry in by_project[names[number]]), asked)
        for name, values in found.items():
            value = getattr(figures, name)
            if value is not None:
                values.append(value)
    return {name: (float(np.quantile(v, 0.025)), float(np.quantile(v, 0.975))) for name, v in found.items()}


Figures = dict[str, dict[str, float]]
"""By question, then by name."""


def show(title: str, judged: Sequence[Judged], projects: Sequence[str]) -> Figures:
    """Print the figures of three questions, and return them."""
    print(f"\n{title}: {len(judged)} cases of {len(set(projects))} projects")
    figures: Figures = {}
    for asked in Asked:
        counts, bounds = score(judged, asked), interval(judged, projects, asked)
        error = calibration_error(judged, asked) or 0.0
        rates = {"precision": counts.precision, "recall": counts.recall, "f1": counts.f1}
        told = "  ".join(
            f"{name} {value or 0:.3f} [{bounds[name][0]:.2f}, {bounds[name][1]:.2f}]" for name, value in rates.items()
        )
        print(f"  {asked.value:9} {told}  ECE {error:.3f}  tp {counts.tp} fp {counts.fp} fn {counts.fn}")
        figures[asked.value] = {name: round(value or 0.0, 3) for name, value in rates.items()}
        figures[asked.value]["calibration_error"] = round(error, 3)
    return figures


def show_kinds(judged: Sequence[Judged]) -> None:
    """Print the confusion by category."""
    print("\n  category                 cases | used: yes told right | relevant | misled")
    for kind, entries in by_kind(judged).items():
        columns = []
        for asked in Asked:
            counts = score(entries, asked)
            columns.append(f"{counts.support:3} {counts.tp + counts.fp:3} {counts.tp:3}")
        print(f"  {kind:24} {len(entries):5} |     {'     |     '.join(columns)}")


def mean_figures(runs: Sequence[Figures]) -> Figures:
    """Return the mean of each figure over the splits."""
    return {
        asked.value: {
            name: round(float(np.mean([run[asked.value][name] for run in runs])), 3)
            for name in ("precision", "recall", "f1", "calibration_error")
        }
        for asked in Asked
    }


def cross_validated(title: str, examples: Examples) -> Figures:
    """Print the figures of several splits, the last one by category as well, and return their mean."""
    runs: list[Figures] = []
    judged: list[Judged] = []
    for seed in range(SPLITS):
        judged = cross_validate(examples, seed=seed)
        runs.append(show(f"{title}, cross-validated by project, split {seed + 1}", judged, examples.projects))
    show_kinds(judged)
    print("  mean:", mean_figures(runs))
    return mean_figures(runs)


def plain(figures: Figures) -> dict[str, JsonValue]:
    """Return figures as JSON."""
    return {asked: dict(values) for asked, values in figures.items()}


def main() -> None:
    """Print the figures, and write the weights if asked to."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true")
    is_writing = arguments.parse_args().write
    examples = load_examples()
    held = np.array([is_held_out(project) for project in examples.projects])
    tuned, aside = examples.subset(~held), examples.subset(held)
    tuned_figures = cross_validated("Tuning projects", tuned)
    figures = cross_validated("All projects", examples)
    apart = judge_with(fit_model(tuned), aside)
    aside_figures = show("Projects set aside, judged by a model of the others", apart, aside.projects)
    show_kinds(apart)
    if is_writing:
        fitted: dict[str, JsonValue] = {
            "data": "usage/dev.jsonl",
            "data_sha256": hashlib.sha256(DATA.read_bytes()).hexdigest(),
            "cases": len(examples.cases),
            "projects": len(set(examples.projects)),
            "date": datetime.now(UTC).date().isoformat(),
            "command": COMMAND,
            "embedding_model": "all-MiniLM-L6-v2",
            "cross_validated_by_project": plain(figures),
            "cross_validated_on_tuning_projects": plain(tuned_figures),
            "projects_set_aside": plain(aside_figures),
        }
        write_model(fit_model(examples), fitted)


if __name__ == "__main__":
    main()
