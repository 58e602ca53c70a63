"""Reads labelled memories and queries as JSON lines: our golden set of engineering memories, or anybody's own.

A line is either {"kind": "memory", "id", "type", "content", "age_days", "superseded_by"} or {"kind": "query", "id",
"text", "answers", "style"}. Each file is a project; all lie in one store, as they do with a user.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from sidecar.domain.memory import parse_memory_type
from tests.bench.quality.collections import Collection, DataSet, Document, Question

GOLDEN: Final = Path(__file__).resolve().parents[2] / "golden" / "coding"
NOW: Final = datetime(2026, 12, 1, tzinfo=UTC)
"""When questions are asked, in every set: figures must not change from day to day."""

DEVELOPMENT: Final = frozenset({"ferrybook", "loomgrid", "pantrylog", "quillcast"})
"""Only these may be fitted or tuned on; see the README of the golden set."""


def labelled_files(paths: Sequence[Path], *, name: str) -> DataSet:
    """Return the set made of these files."""
    documents: list[Document] = []
    questions: list[Question] = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line) if line.strip() else {}
            if entry.get("kind") == "memory":
                documents.append(_document(entry, project=path.stem))
            elif entry.get("kind") == "query":
                questions.append(_question(entry, project=path.stem))
    # A store is filled in the order in which things were learned.
    documents.sort(key=lambda document: document.created_at)
    return DataSet(name, (Collection(name, tuple(documents), tuple(questions)),))


def golden() -> Iterator[DataSet]:
    """Yield the part for development and the held-out part of our own set."""
    files = sorted(GOLDEN.glob("*.jsonl"))
    held_out = [file for file in files if file.stem not in DEVELOPMENT]
    for name, part in (("golden-dev", [f for f in files if f not in held_out]), ("golden-test", held_out)):
        if part:
            yield labelled_files(part, name=name)


def _document(entry: dict[str, object], *, project: str) -> Document:
    return Document(
        name=str(entry["id"]),
        text=str(entry["content"]),
        created_at=NOW - timedelta(days=float(str(entry.get("age_days") or 0))),
        project=project,
        memory_type=parse_memory_type(str(entry.get("type") or "fact")),
        superseded_by=str(entry.get("superseded_by") or ""),
    )


def _question(entry: dict[str, object], *, project: str) -> Question:
    answers = entry.get("answers")
    relevant = {str(answer): 1 for answer in answers} if isinstance(answers, list) else {}
    return Question(str(entry["id"]), str(entry["text"]), relevant, str(entry.get("style") or ""), project)
