"""Fits one question of the local judge: ridge logistic regression, and the curve that makes it calibrated."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sidecar.domain.judging.model import Question, SignalWeight, logistic

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FOLDS = 5
RIDGES = (5.0, 10.0, 20.0)
NEWTON_STEPS = 50
TINY = 1e-9


def fit_question(
    names: Sequence[str], features: Floats, answers: Bools, groups: Sequence[str], *, line: float, threshold: float
) -> Question:
    """Return the model of one question; the ridge is chosen on folds by group, within these cases only.

    Args:
        line: See `curve_of`, as is `threshold`.
    """
    by_ridge = {ridge: out_of_fold(features, answers, groups, ridge=ridge) for ridge in RIDGES}
    ridge = min(RIDGES, key=lambda ridge: log_loss(by_ridge[ridge], answers))
    bias, weights, mean, scale = _fit(features, answers, ridge=ridge)
    return Question(
        bias=bias,
        weights={
            name: SignalWeight(float(weight), float(middle), float(spread))
            for name, weight, middle, spread in zip(names, weights, mean, scale, strict=True)
        },
        curve=curve_of(line, threshold),
    )


def out_of_fold(features: Floats, answers: Bools, groups: Sequence[str], *, ridge: float) -> Floats:
    """Return raw probabilities of each case by models that saw no case of its group, averaged over three splits."""
    total = np.zeros(len(answers))
    for seed in range(3):
        for held in folds(groups, seed=seed):
            bias, weights, mean, scale = _fit(features[~held], answers[~held], ridge=ridge)
            logits = bias + (features[held] - mean) / scale @ weights
            total[held] += [logistic(float(logit)) for logit in logits]
    return total / 3


def folds(groups: Sequence[str], *, seed: int) -> list[Bools]:
    """Return a mask for each fold; a group is never split."""
    names = np.array(sorted(set(groups)))
    np.random.default_rng(seed).shuffle(names)
    place = {name: number % FOLDS for number, name in enumerate(names)}
    of_case = np.array([place[group] for group in groups])
    return [of_case == number for number in range(FOLDS)]


def log_loss(raw: Floats, answers: Bools) -> float:
    """Return the mean negative log-likelihood."""
    right = np.where(answers, raw, 1.0 - raw)
    return float(-np.log(np.clip(right, TINY, 1.0)).mean())


def curve_of(line: float, threshold: float) -> tuple[tuple[float, float], ...]:
    """Return the curve that brings a place to the threshold; the straight one if it is there already.

    The place is given, not fitted: the best one on a few hundred cases lies anywhere from 0.40 to 0.64 by chance, and
    drawing the line there was no better on other projects.

    Args:
        line: Raw probability from which on the answer is yes.
        threshold: The same, calibrated.
    """
    return ((0.0, 0.0), (line, threshold), (1.0, 1.0))


def _fit(features: Floats, answers: Bools, *, ridge: float) -> tuple[float, Floats, Floats, Floats]:
    """Return bias, weights, means and scales; Newton's method, the bias is not held back."""
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale < TINY] = 1.0
    inputs = np.column_stack([np.ones(len(features)), (features - mean) / scale])
    penalty = np.eye(inputs.shape[1]) * ridge
    penalty[0, 0] = TINY
    found = np.zeros(inputs.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(inputs @ found, -30, 30)))
        slope = inputs.T @ (answers - chance) - penalty @ found
        curvature = (inputs * (chance * (1.0 - chance) + TINY)[:, None]).T @ inputs + penalty
        step = np.linalg.solve(curvature, slope)
        found += step
        if np.abs(step).max() < TINY:
            break
    return float(found[0]), found[1:], mean, scale
