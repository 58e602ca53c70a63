"""Fits the weights of `sidecar.domain.relevance` and prints them with their figures.

Run: python -m tests.bench.fit_relevance

Data: the LoCoMo development conversations beside the project (never copied into it). Every candidate of a question,
the 100 nearest by meaning and the 100 best by words, is one example. Right ones are rare, so they weigh as much as all
wrong ones of their question together: relevance 0.5 is even odds among candidates. Figures are cross-validated by
conversation.
"""

import json
import math
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.domain.words import inverse_document_frequency, term_score, tokenise

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "locomo" / "locomo_dev_corrected.json"
CANDIDATES = 100
CUT = 10
EVIDENCE_ID = re.compile(r"D:?(\d+):(\d+)")
QUESTION_CATEGORIES = range(1, 5)
NEWTON_STEPS = 50
RIDGE = 1e-3

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """One question's candidates. `features` is (n, 2): cosine and word share; `found` of `relevant_count` are right."""

    conversation: int
    features: Floats
    is_right: npt.NDArray[np.bool_]
    relevant_count: int


def turn_text(turn: dict[str, str]) -> str:
    """Return a dialogue turn as one memory."""
    caption = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{caption}"


def load_questions(embedder: OnnxMiniLmEmbedder) -> list[Question]:
    """Return all questions that have evidence."""
    questions: list[Question] = []
    for number, sample in enumerate(json.loads(DATA.read_text())):
        turns = {
            turn["dia_id"]: turn_text(turn)
            for name, session in sample["conversation"].items()
            if re.fullmatch(r"session_\d+", name)
            for turn in session
        }
        questions.extend(_questions_of(number, sample["qa"], turns, embedder))
    return questions


def _questions_of(
    number: int, pairs: list[dict[str, object]], turns: dict[str, str], embedder: OnnxMiniLmEmbedder
) -> list[Question]:
    names = list(turns)
    documents = [Counter(tokenise(text)) for text in turns.values()]
    lengths = np.array([sum(document.values()) for document in documents])
    holding = Counter(term for document in documents for term in document)
    vectors = np.stack([rows[0] for rows in embedder.embed_documents(list(turns.values()))])
    found: list[Question] = []
    for pair in pairs:
        evidence = {f"D{a}:{b}" for text in _texts(pair.get("evidence")) for a, b in EVIDENCE_ID.findall(text)}
        relevant = [names.index(name) for name in evidence if name in turns]
        if pair.get("category") not in QUESTION_CATEGORIES or not relevant:
            continue
        question = str(pair["question"])
        cosines = vectors @ embedder.embed_query(question)
        shares = _word_shares(question, documents, holding, lengths)
        chosen = np.union1d(np.argsort(-cosines)[:CANDIDATES], np.argsort(-shares)[:CANDIDATES])
        is_right = np.isin(chosen, relevant)
        features = np.column_stack([cosines[chosen], shares[chosen]]).astype(np.float64)
        found.append(Question(number, features, is_right, len(relevant)))
    return found


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _word_shares(
    question: str, documents: list[Counter[str]], holding: Counter[str], lengths: npt.NDArray[np.int64]
) -> Floats:
    terms = [term for term in dict.fromkeys(tokenise(question)) if term in holding]
    idf = {term: inverse_document_frequency(len(documents), holding[term]) for term in terms}
    best = sum(idf.values())
    mean = float(lengths.mean())
    scores = [
        sum(term_score(d[t], idf[t], length=int(n), mean_length=mean) for t in terms if t in d)
        for d, n in zip(documents, lengths, strict=True)
    ]
    return np.minimum(np.array(scores) / best, 1.0) if best else np.zeros(len(documents))


def fit(questions: list[Question], columns: list[int]) -> Floats:
    """Return bias and weights of a ridge logistic regression on these columns, by Newton's method."""
    x = np.concatenate([np.column_stack([np.ones(len(q.features)), q.features[:, columns]]) for q in questions])
    y = np.concatenate([q.is_right for q in questions]).astype(np.float64)
    weight = np.concatenate([_balance(q.is_right) for q in questions])
    beta = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 1.0 / (1.0 + np.exp(-(x @ beta)))
        gradient = x.T @ (weight * (p - y)) + RIDGE * beta
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(beta))
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    return beta


def _balance(is_right: npt.NDArray[np.bool_]) -> Floats:
    right = max(int(is_right.sum()), 1)
    wrong = max(int((~is_right).sum()), 1)
    return np.where(is_right, 0.5 / right, 0.5 / wrong)


def recall_at_cut(questions: list[Question], beta: Floats, columns: list[int]) -> float:
    """Return the mean share of a question's relevant turns among the first ten."""
    shares = []
    for q in questions:
        order = np.argsort(-(q.features[:, columns] @ beta[1:]), kind="stable")[:CUT]
        shares.append(q.is_right[order].sum() / q.relevant_count)
    return float(np.mean(shares))


def main() -> None:
    """Print weights and figures."""
    if not DATA.exists():
        sys.exit(f"no data at {DATA.name}: it lies beside the project and is not shipped")
    questions = load_questions(OnnxMiniLmEmbedder())
    print(f"{len(questions)} questions, {sum(len(q.features) for q in questions)} candidates")
    for name, columns in (("both", [0, 1]), ("words", [1]), ("meaning", [0])):
        held_out = []
        for conversation in sorted({q.conversation for q in questions}):
            rest = [q for q in questions if q.conversation != conversation]
            held = [q for q in questions if q.conversation == conversation]
            held_out.append((recall_at_cut(held, fit(rest, columns), columns), len(held)))
        mean = sum(r * n for r, n in held_out) / sum(n for _, n in held_out)
        beta = fit(questions, columns)
        print(f"{name}: weights {np.round(beta, 2).tolist()}, recall@10 (fraction) on unseen conversations {mean:.3f}")
    _print_floors(questions, fit(questions, [0, 1]))


def _print_floors(questions: list[Question], beta: Floats) -> None:
    """Show what each floor costs in answers and keeps out in others."""
    logits = [(beta[0] + q.features @ beta[1:], q.is_right) for q in questions]
    for floor in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        cut = math.log(floor / (1 - floor))
        kept = sum(int((z[r] >= cut).sum()) for z, r in logits) / sum(int(r.sum()) for _, r in logits)
        noise = sum(int((z[~r] >= cut).sum()) for z, r in logits) / sum(int((~r).sum()) for _, r in logits)
        print(f"floor {floor:.2f}: keeps {kept:.3f} of right candidates and {noise:.3f} of wrong ones")


if __name__ == "__main__":
    main()
