"""What a data set is to the harness: documents that become memories, and questions whose right answers are known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sidecar.domain.memory import MemoryType


@dataclass(frozen=True)
class Document:
    """One memory to be. Times are UTC and aware.

    Attributes:
        name: The data set's own name of it.
        project: Of the namespace it lies in.
        superseded_by: Name of the document that replaces it; empty for none.
    """

    name: str
    text: str
    created_at: datetime
    session: str = ""
    project: str = "bench"
    memory_type: MemoryType = MemoryType.FACT
    superseded_by: str = ""


@dataclass(frozen=True)
class Question:
    """One query.

    Attributes:
        relevant: Names of the documents that answer it, each with its grade; empty if nothing does.
        group: What kind of question it is, for figures of parts.
    """

    name: str
    text: str
    relevant: Mapping[str, int] = field(default_factory=dict)
    group: str = ""
    project: str = "bench"


@dataclass(frozen=True)
class Collection:
    """What goes into one store, and what is asked of it."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class DataSet:
    """Collections that make up one row of a table."""

    name: str
    collections: tuple[Collection, ...]
