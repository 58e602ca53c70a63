"""Reads and writes the local judge's weights: one JSON file of numbers that a person can read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sidecar.api.plain import JsonValue
from sidecar.domain.judging.model import JudgeModel, Question, SignalWeight
from sidecar.errors import JudgeUnavailableError

WEIGHTS_PATH: Final = Path(__file__).with_name("data") / "local_judge.json"

_DIGITS: Final = 5
QUESTIONS: Final = ("used", "relevant", "misled")


def read_model(path: Path = WEIGHTS_PATH) -> JudgeModel:
    """Return the model in a file.

    Raises:
        JudgeUnavailableError: If the file cannot be read or is not of this shape.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        used, relevant, misled = (_question(document["questions"][name]) for name in QUESTIONS)
        return JudgeModel(version=str(document["version"]), used=used, relevant=relevant, misled=misled)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise JudgeUnavailableError("local", f"{path} cannot be read ({error}); install the sidecar again") from error


def write_model(model: JudgeModel, fitted: Mapping[str, JsonValue], path: Path = WEIGHTS_PATH) -> None:
    """Write a model.

    Args:
        fitted: On what, when and how it was fitted, and its figures.
    """
    questions = {"used": model.used, "relevant": model.relevant, "misled": model.misled}
    document = {
        "version": model.version,
        "fitted": fitted,
        "questions": {name: _plain(question) for name, question in questions.items()},
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _question(document: Mapping[str, JsonValue]) -> Question:
    weights, curve = document["weights"], document["curve"]
    if not isinstance(weights, dict) or not isinstance(curve, list):
        raise TypeError("`weights` is no object or `curve` no list")
    return Question(
        bias=_number(document["bias"]),
        weights={name: _signal_weight(entry) for name, entry in weights.items()},
        curve=tuple(_pair(point) for point in curve),
    )


def _signal_weight(entry: JsonValue) -> SignalWeight:
    if not isinstance(entry, dict):
        raise TypeError("a weight is no object")
    weight, mean, scale = (_number(entry[name]) for name in ("weight", "mean", "scale"))
    if scale <= 0:
        raise ValueError(f"a scale is {scale}")
    return SignalWeight(weight, mean, scale)


def _pair(point: JsonValue) -> tuple[float, float]:
    if not isinstance(point, list) or len(point) != 2:
        raise TypeError("a point of the curve is no pair")
    return _number(point[0]), _number(point[1])


def _number(value: JsonValue) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _plain(question: Question) -> dict[str, JsonValue]:
    return {
        "bias": round(question.bias, _DIGITS),
        "weights": {
            name: {
                "weight": round(entry.weight, _DIGITS),
                "mean": round(entry.mean, _DIGITS),
                "scale": round(entry.scale, _DIGITS),
            }
            for name, entry in question.weights.items()
        },
        "curve": [[round(raw, _DIGITS), round(calibrated, _DIGITS)] for raw, calibrated in question.curve],
    }
