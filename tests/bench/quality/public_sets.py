"""Reads the public data sets that lie beside the project: LoCoMo, Cranfield and CoSQA. They are never shipped.

LoCoMo: one store for each conversation, one memory for each turn (speaker, text, caption of a shared picture), created
at its session's date; questions of categories 1 to 4 with evidence; relevant are the evidence turns.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.bench.quality.collections import Collection, DataSet, Document, Question

DATA: Final = Path(__file__).resolve().parents[4] / "shared" / "data"
LOCOMO: Final = DATA / "locomo" / "locomo_dev_corrected.json"

_EVIDENCE_ID: Final = re.compile(r"D:?(\d+):(\d+)")
_SESSION: Final = re.compile(r"session_\d+")
_CATEGORIES: Final = {1: "several turns", 2: "time", 3: "common knowledge", 4: "one turn"}
_UNDATED: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""All documents of a set without dates: nothing can be read from their order."""


def locomo() -> DataSet:
    """Return the conversations."""
    samples = json.loads(LOCOMO.read_text(encoding="utf-8"))
    return DataSet("locomo", tuple(_conversation(f"conversation {i}", sample) for i, sample in enumerate(samples)))


def _conversation(name: str, sample: dict[str, dict[str, object]]) -> Collection:
    documents = tuple(_turns(sample["conversation"]))
    known = {document.name for document in documents}
    return Collection(name, documents, tuple(_questions(name, sample["qa"], known)))


def _turns(conversation: dict[str, object]) -> Iterator[Document]:
    for session, turns in conversation.items():
        if not _SESSION.fullmatch(session) or not isinstance(turns, list):
            continue
        at = _session_time(str(conversation[f"{session}_date_time"]))
        for turn in turns:
            caption = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Document(turn["dia_id"], f"{turn['speaker']}: {turn['text']}{caption}", at, session)


def _session_time(text: str) -> datetime:
    # Such as "1:56 pm on 8 May, 2023".
    return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _questions(name: str, pairs: object, known: set[str]) -> Iterator[Question]:
    assert isinstance(pairs, list)
    for number, pair in enumerate(pairs):
        evidence = {f"D{a}:{b}" for text in pair.get("evidence") or () for a, b in _EVIDENCE_ID.findall(str(text))}
        relevant = dict.fromkeys(sorted(evidence & known), 1)
        if pair.get("category") in _CATEGORIES and relevant:
            yield Question(f"{name} q{number}", str(pair["question"]), relevant, _CATEGORIES[pair["category"]])


def cranfield() -> DataSet:
    """Return the 1,400 abstracts in one store. A judgement of 1 to 4 means relevant, all alike."""
    documents = [
        Document(number, " ".join(re.split(r"^\.W\n", rest, flags=re.M)[-1].split()), _UNDATED, session=f"doc {number}")
        for number, rest in _records(DATA / "cranfield" / "cran.all.1400")
    ]
    kept = tuple(document for document in documents if document.text)
    known = {document.name for document in kept}
    relevant: dict[str, dict[str, int]] = {}
    for line in (DATA / "cranfield" / "cranqrel").read_text().splitlines():
        query, document, code = line.split()[:3]
        if int(code) > 0 and document in known:
            relevant.setdefault(query, {})[document] = 1
    # Judgements number the queries by their place, not by the number they carry.
    queries = [" ".join(rest.split(".W\n")[1].split()) for _, rest in _records(DATA / "cranfield" / "cran.qry")]
    questions = (Question(f"q{n}", text, relevant.get(str(n), {})) for n, text in enumerate(queries, 1))
    return DataSet("cranfield", (Collection("cranfield", kept, tuple(q for q in questions if q.relevant)),))


def _records(path: Path) -> Iterator[tuple[str, str]]:
    for record in re.split(r"^\.I ", path.read_text(), flags=re.M)[1:]:
        number, _, rest = record.partition("\n")
        yield number.strip(), rest


def cosqa() -> DataSet:
    """Return the 6,267 functions in one store, and the development queries, each with one right answer."""
    numbers = json.loads((DATA / "cosqa" / "code_idx_map.txt").read_text(encoding="utf-8"))
    documents = tuple(Document(str(n), code, _UNDATED, session=f"function {n}") for code, n in numbers.items())
    asked = json.loads((DATA / "cosqa" / "cosqa-retrieval-dev-500.json").read_text(encoding="utf-8"))
    questions = tuple(Question(q["idx"], q["doc"], {str(q["retrieval_idx"]): 1}) for q in asked)
    return DataSet("cosqa", (Collection("cosqa", documents, questions),))
