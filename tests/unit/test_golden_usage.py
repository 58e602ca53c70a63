"""The labelled sessions of our own: what must hold of them before any judge is measured on them."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from sidecar.domain.ids import find_memory_ids, is_memory_id
from sidecar.domain.judging.labelled import LabelledCase, read_labelled

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "usage"
# Sessions, projects, pairs, used, relevant, misled: as in the table of the README there.
COUNTS = {"a": (78, 15, 268, 84, 126, 6), "b": (80, 15, 268, 78, 127, 9)}


@cache
def cases_of(name: str) -> tuple[LabelledCase, ...]:
    """The cases of one file."""
    return tuple(read_labelled((FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")))


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_those_of_the_readme(name: str) -> None:
    """The table in the README tells what is there."""
    cases = cases_of(name)
    labels = [entry.label for entry in cases]
    counts = (
        len({entry.transcript for entry in cases}),
        len({entry.project for entry in cases}),
        len(cases),
        *(sum(getattr(label, asked) for label in labels) for asked in ("used", "relevant", "misled")),
    )
    assert counts == COUNTS[name]
    assert f"| {' | '.join(map(str, counts))} |" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COUNTS)
def test_labels_agree_with_each_other(name: str) -> None:
    """What misled was not used, either was relevant, and each pair has a category and occurs once."""
    for entry in cases_of(name):
        label = entry.label
        assert not (label.used and label.misled), entry.transcript
        assert label.relevant or not (label.used or label.misled), entry.transcript
        assert label.kind, entry.transcript
        assert is_memory_id(entry.case.memory_id)
    pairs = Counter((entry.transcript, entry.case.memory_id) for entry in cases_of(name))
    assert max(pairs.values()) == 1


def test_no_project_is_on_both_sides() -> None:
    """What is chosen on one file is tested on other projects, with other memories."""
    left, right = (cases_of(name) for name in COUNTS)
    assert not {entry.project for entry in left} & {entry.project for entry in right}
    assert not {entry.case.memory_id for entry in left} & {entry.case.memory_id for entry in right}


@pytest.mark.parametrize("name", COUNTS)
def test_ids_in_a_transcript_are_of_shown_memories(name: str) -> None:
    """A printed recall result names what was shown; otherwise the echo would not be one."""
    shown: dict[str, set[str]] = {}
    for entry in cases_of(name):
        shown.setdefault(entry.transcript, set()).add(entry.case.memory_id)
    for entry in cases_of(name):
        named = {found for piece in entry.case.after for found in find_memory_ids(piece.text)}
        assert named <= shown[entry.transcript], entry.transcript
