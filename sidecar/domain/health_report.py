"""Tells which memories need a look, and what to do about each. Takes plain rows one by one, so that a store can stream.

It never sees text of memories, keeps no row, and holds at most so many findings of each kind, however many rows come.
"""

import heapq
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sidecar.domain.confidence import settle_confidence
from sidecar.domain.memory import GOLDEN_CONFIDENCE
from sidecar.errors import InvalidInputError

LOW_CONFIDENCE: Final = 0.15
DEFAULT_STALE_DAYS: Final = 30
MAX_STALE_DAYS: Final = 3_650
MAX_FINDINGS: Final = 1_000


class Severity(StrEnum):
    """How urgent a finding is, the least first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class HealthKind(StrEnum):
    """What is the matter, the most urgent first."""

    CONTRADICTION = "contradiction"
    PARKED = "parked"
    LOW_CONFIDENCE = "low_confidence"
    STALE_GOLDEN_RULE = "stale_golden_rule"
    STALE = "stale"
    NOT_EMBEDDED = "not_embedded"


SEVERITIES: Final = {
    HealthKind.CONTRADICTION: Severity.CRITICAL,
    HealthKind.PARKED: Severity.WARNING,
    HealthKind.LOW_CONFIDENCE: Severity.WARNING,
    HealthKind.STALE_GOLDEN_RULE: Severity.WARNING,
    HealthKind.STALE: Severity.INFO,
    HealthKind.NOT_EMBEDDED: Severity.INFO,
}

_RECOMMENDATIONS: Final = {
    HealthKind.CONTRADICTION: "read both; `sidecar relate NEWER OLDER supersedes` or `sidecar forget` the wrong one",
    HealthKind.PARKED: "run `sidecar doctor`: it says why embedding failed, and how to queue the memory anew",
    HealthKind.LOW_CONFIDENCE: "`sidecar validate` it if it holds, or `sidecar forget` it",
    HealthKind.STALE_GOLDEN_RULE: "it stands in every briefing: `sidecar validate` it, or `sidecar challenge` it",
    HealthKind.STALE: "`sidecar validate` it if it still holds, or `sidecar forget` it",
    HealthKind.NOT_EMBEDDED: "wait: it is found by words until it is embedded; `sidecar status` shows the backlog",
}

_WORDS: Final = {
    HealthKind.CONTRADICTION: ("open contradiction", "open contradictions"),
    HealthKind.PARKED: ("memory that could not be embedded", "memories that could not be embedded"),
    HealthKind.LOW_CONFIDENCE: ("of low confidence", "of low confidence"),
    HealthKind.STALE_GOLDEN_RULE: ("stale golden rule", "stale golden rules"),
    HealthKind.STALE: ("stale", "stale"),
    HealthKind.NOT_EMBEDDED: ("waiting to be embedded", "waiting to be embedded"),
}


@dataclass(frozen=True, slots=True)
class HealthQuery:
    """What to look for.

    Attributes:
        stale_days: A memory without a success or failure, nor creation, in so many days is stale; 1 to 3650.
        low_confidence: A memory less sure than this needs a look.
        golden_confidence: From this confidence on a memory is a golden rule.

    Raises:
        InvalidInputError: If `stale_days` is outside its bounds.
    """

    has_contradictions: bool = True
    has_low_confidence: bool = True
    has_stale: bool = True
    stale_days: int = DEFAULT_STALE_DAYS
    low_confidence: float = LOW_CONFIDENCE
    golden_confidence: float = GOLDEN_CONFIDENCE

    def __post_init__(self) -> None:
        if not 1 <= self.stale_days <= MAX_STALE_DAYS:
            raise InvalidInputError("stale_days", self.stale_days, f"a number from 1 to {MAX_STALE_DAYS}")


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """An active memory. Times are UTC and aware.

    Attributes:
        is_golden_rule: By its type; whether it is by its confidence is for the analysis to say.
        last_outcome_at: When it last succeeded or failed; None if it never did.
    """

    memory_id: str
    confidence: float
    is_golden_rule: bool
    created_at: datetime
    last_outcome_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ContradictionRow:
    """A `contradicts` edge between two memories.

    Attributes:
        is_between_active: Whether both are active; one that is superseded or forgotten resolves it.
        has_successor_edge: Whether one of the two supersedes the other.
        is_resolved: Whether a person ended a dispute about it.
    """

    source_id: str
    target_id: str
    created_at: datetime
    is_between_active: bool = True
    has_successor_edge: bool = False
    is_resolved: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nothing says yet which of the two holds."""
        return self.is_between_active and not self.has_successor_edge and not self.is_resolved


@dataclass(frozen=True, slots=True)
class EmbedJobRow:
    """A memory without a vector under the model in use."""

    memory_id: str
    is_parked: bool
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing that needs a look, and what to do about it."""

    kind: HealthKind
    memory_ids: tuple[str, ...]

    @property
    def severity(self) -> Severity:
        """How urgent it is."""
        return SEVERITIES[self.kind]

    @property
    def recommendation(self) -> str:
        """What to do about it, for a person."""
        return _RECOMMENDATIONS[self.kind]


@dataclass(frozen=True, slots=True)
class HealthReport:
    """What was found.

    Attributes:
        findings: The most urgent kind first, within a kind the worst; at most `MAX_FINDINGS`.
        counts: How many of each kind that was looked for, also those that are not listed.
        analyzed: How many memories were looked at.
        summary: The whole in a sentence.
    """

    findings: tuple[HealthFinding, ...]
    counts: dict[HealthKind, int]
    analyzed: int
    summary: str

    @property
    def worst(self) -> Severity | None:
        """The most urgent severity found; None if nothing was."""
        found = {SEVERITIES[kind] for kind, count in self.counts.items() if count}
        return max(found, key=list(Severity).index, default=None)


@dataclass(slots=True)
class HealthAnalysis:
    """Gathers findings while rows come, in whatever order. `analyzed` may be read meanwhile, to show progress."""

    query: HealthQuery
    now: datetime
    analyzed: int = 0
    _counts: Counter[HealthKind] = field(default_factory=Counter)
    # The worst of each kind, as heaps whose root is the least bad.
    _worst: dict[HealthKind, list[tuple[float, tuple[str, ...]]]] = field(default_factory=dict)
    _stale_before: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._stale_before = self.now - timedelta(days=self.query.stale_days)

    def add_memory(self, row: MemoryRow) -> None:
        """Look at one active memory."""
        self.analyzed += 1
        confidence = settle_confidence(row.confidence)
        if self.query.has_low_confidence and confidence < self.query.low_confidence:
            self._note(HealthKind.LOW_CONFIDENCE, (row.memory_id,), badness=-confidence)
        confirmed_at = row.last_outcome_at or row.created_at
        if self.query.has_stale and confirmed_at < self._stale_before:
            is_rule = row.is_golden_rule or confidence >= self.query.golden_confidence
            kind = HealthKind.STALE_GOLDEN_RULE if is_rule else HealthKind.STALE
            self._note(kind, (row.memory_id,), badness=-confirmed_at.timestamp())

    def add_contradiction(self, row: ContradictionRow) -> None:
        """Look at one `contradicts` edge."""
        if self.query.has_contradictions and row.is_open:
            self._note(HealthKind.CONTRADICTION, (row.source_id, row.target_id), badness=-row.created_at.timestamp())

    def add_embed_job(self, row: EmbedJobRow) -> None:
        """Look at one memory that has no vector; looked for whatever the query says, since recall suffers at once."""
        kind = HealthKind.PARKED if row.is_parked else HealthKind.NOT_EMBEDDED
        self._note(kind, (row.memory_id,), badness=-row.queued_at.timestamp())

    def report(self) -> HealthReport:
        """Return what was found so far; the same for the same rows in any order."""
        findings = [
            HealthFinding(kind, memory_ids)
            for kind in HealthKind
            for _, memory_ids in sorted(self._worst.get(kind, ()), key=lambda entry: (-entry[0], entry[1]))
        ]
        counts = {kind: self._counts[kind] for kind in HealthKind if self._is_looked_for(kind)}
        return HealthReport(tuple(findings[:MAX_FINDINGS]), counts, self.analyzed, self._in_words(counts))

    def _note(self, kind: HealthKind, memory_ids: tuple[str, ...], *, badness: float) -> None:
        self._counts[kind] += 1
        worst = self._worst.setdefault(kind, [])
        entry = (badness, memory_ids)
        if len(worst) < MAX_FINDINGS:
            heapq.heappush(worst, entry)
        else:
            heapq.heappushpop(worst, entry)

    def _is_looked_for(self, kind: HealthKind) -> bool:
        flags = {
            HealthKind.CONTRADICTION: self.query.has_contradictions,
            HealthKind.LOW_CONFIDENCE: self.query.has_low_confidence,
            HealthKind.STALE: self.query.has_stale,
            HealthKind.STALE_GOLDEN_RULE: self.query.has_stale,
        }
        return flags.get(kind, True)

    def _in_words(self, counts: dict[HealthKind, int]) -> str:
        looked_at = f"{self.analyzed} {'memory' if self.analyzed == 1 else 'memories'} looked at"
        found = [f"{count} {_WORDS[kind][count != 1]}" for kind, count in counts.items() if count]
        return f"{looked_at}: {', '.join(found) or 'nothing needs a look'}"
