"""Turns figures into tables for people, one document for programs, and a file with a line for each answer."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.quality.collections import Question
from tests.bench.quality.figures import Interval, difference, interval
from tests.bench.quality.measuring import OURS, RANKERS, Asked, floor_costs, values

FIGURES: Final = ("any@5", "R@5", "all@5", "any@10", "R@10", "all@10", "MRR@10", "nDCG@10")
_WITH_INTERVAL: Final = ("R@10", "nDCG@10")
_SHOWN: Final = 5


def table(name: str, asked: Sequence[Asked]) -> str:
    """Return a Markdown table of all rankers; R is the found share of what is right."""
    count = len(values(asked, OURS, FIGURES[0]))
    lines = [
        f"**{name}**, {count} questions",
        "",
        "| ranker | " + " | ".join(FIGURES) + " | ours ahead at R@10 | at nDCG@10 |",
        "|---|" + "---|" * (len(FIGURES) + 2),
    ]
    for ranker in RANKERS:
        cells = [_cell(interval(values(asked, ranker, figure)), figure) for figure in FIGURES]
        ahead = [_signed(_ahead(asked, ranker, figure)) if ranker != OURS else "" for figure in _WITH_INTERVAL]
        lines.append(f"| {ranker} | " + " | ".join((*cells, *ahead)) + " |")
    return "\n".join(lines + _groups(asked) + _abstention(asked))


def document(asked: Mapping[str, Sequence[Asked]]) -> dict[str, object]:
    """Return everything for programs: by set, ranker and figure the mean and its interval."""
    return {
        name: {
            ranker: {figure: vars(interval(values(answers, ranker, figure))) for figure in FIGURES}
            for ranker in RANKERS
        }
        for name, answers in asked.items()
    }


def write_answers(path: Path, asked: Mapping[str, Sequence[Asked]]) -> None:
    """Write one JSON line for each question and ranker; texts stay where they are, names tell which."""
    with path.open("w", encoding="utf-8") as file:
        for name, answers in asked.items():
            for one in answers:
                line = {
                    "set": name,
                    "collection": one.collection,
                    "question": one.question.name,
                    "group": one.question.group,
                    "ranker": one.ranker,
                    "relevant": sorted(one.question.relevant),
                    "ranked": one.ranked[:10],
                    "scores": one.scores[:10],
                    **one.figures,
                }
                file.write(json.dumps(line) + "\n")


def _ahead(asked: Sequence[Asked], ranker: str, figure: str) -> Interval:
    return difference(values(asked, OURS, figure), values(asked, ranker, figure))


def _cell(found: Interval, figure: str) -> str:
    bounds = f" ({found.low:.3f}–{found.high:.3f})" if figure in _WITH_INTERVAL else ""
    return f"{found.mean:.3f}{bounds}"


def _signed(found: Interval) -> str:
    return f"{found.mean:+.3f} ({found.low:+.3f} to {found.high:+.3f})"


def _groups(asked: Sequence[Asked]) -> list[str]:
    groups = sorted({one.question.group for one in asked if one.question.group and one.figures})
    if not groups:
        return []
    lines = ["", "| ours, by kind | questions | R@5 | R@10 | nDCG@10 |", "|---|---|---|---|---|"]
    for group in groups:
        found = [values(asked, OURS, figure, partial(_is_of, group)) for figure in ("R@5", "R@10", "nDCG@10")]
        means = " | ".join(f"{sum(f) / len(f):.3f}" for f in found)
        lines.append(f"| {group} | {len(found[0])} | {means} |")
    return lines


def _is_of(group: str, question: Question) -> bool:
    return question.group == group


def _abstention(asked: Sequence[Asked]) -> list[str]:
    costs = floor_costs(asked, cut=_SHOWN)
    if not costs:
        return []
    lines = [
        "",
        "| lowest score | answers lost among the first five | no answer, and nothing returned |",
        "|---|---|---|",
    ]
    return lines + [f"| {cost.floor:.2f} | {cost.lost:.3f} | {cost.abstained:.3f} |" for cost in costs]
