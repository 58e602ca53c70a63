"""Made-up engineering memories and queries for timing, the same at every run. Not for judging quality."""

import random
from collections.abc import Iterator
from typing import Final

import numpy as np

from sidecar.ports import Embedding

_SUBJECTS: Final = (
    "the billing worker", "the ingest service", "our API gateway", "the nightly report", "the search index",
    "the mobile client", "the session cache", "the payment adapter", "the audit log", "the scheduler",
    "the feature flag store", "the image pipeline", "the tenant router", "the export job", "the admin console",
)  # fmt: skip
_VERBS: Final = (
    "retries", "locks", "caches", "validates", "drops", "batches", "signs", "archives", "rejects", "re-indexes",
    "throttles", "mirrors", "rotates", "compresses", "rebuilds",
)  # fmt: skip
_OBJECTS: Final = (
    "stale invoices", "orphaned uploads", "unsigned webhooks", "large attachments", "duplicate events", "old tokens",
    "malformed rows", "slow queries", "expired sessions", "foreign currencies", "partial orders", "empty carts",
    "nested comments", "broken links", "late shipments",
)  # fmt: skip
_REASONS: Final = (
    "because a deadlock stopped checkout in May", "since the provider counts every attempt",
    "so that a restart loses nothing", "as agreed after the outage", "because the queue is not ordered",
    "to stay under the memory limit", "since clocks on the edge nodes drift", "so that audits can replay it",
    "because two workers raced for the same row", "until the migration is finished",
)  # fmt: skip
_CENTRES: Final = 512
_SPREAD: Final = 0.6


def texts(count: int, *, seed: int = 7) -> Iterator[str]:
    """Yield memories of about 40 words, each once."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for number in range(count):
        sentences = [
            f"{chance.choice(_SUBJECTS).capitalize()} {chance.choice(_VERBS)} {chance.choice(_OBJECTS)} after "
            f"{chance.randrange(2, 900)} s {chance.choice(_REASONS)}."
            for _ in range(2)
        ]
        yield f"{' '.join(sentences)} See change {number:06d} in module_{chance.randrange(400)}.py."


def queries(count: int, *, seed: int = 11) -> list[str]:
    """Return questions of about nine words, each once."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    return [
        f"why does {chance.choice(_SUBJECTS)} handle {chance.choice(_OBJECTS)} in module_{chance.randrange(400)} "
        f"number {number}"
        for number in range(count)
    ]


def embeddings(count: int, dim: int, *, seed: int = 13) -> Embedding:
    """Return `(count, dim)` unit vectors in clusters, as real ones are."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((_CENTRES, dim), dtype=np.float32)
    rows = centres[chance.integers(0, _CENTRES, count)]
    rows = rows + _SPREAD * chance.standard_normal((count, dim), dtype=np.float32)
    unit: Embedding = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
