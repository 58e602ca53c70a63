"""The health report: its rules, its bounds, and the same answer in whatever order rows come."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.health_report import (
    MAX_FINDINGS,
    ContradictionRow,
    EmbedJobRow,
    HealthAnalysis,
    HealthKind,
    HealthQuery,
    HealthReport,
    MemoryRow,
    Severity,
)
from sidecar.errors import InvalidInputError

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FRESH = NOW - timedelta(days=30)
OLD = NOW - timedelta(days=30, seconds=1)

Row = MemoryRow | ContradictionRow | EmbedJobRow


def row(memory_id: str = "m", confidence: float = 0.5, **fields: object) -> MemoryRow:
    values: dict[str, object] = {"is_golden_rule": False, "created_at": FRESH}
    return MemoryRow(memory_id, confidence, **(values | fields))  # type: ignore[arg-type]


def analyze(rows: Sequence[Row], query: HealthQuery | None = None) -> HealthReport:
    analysis = HealthAnalysis(query or HealthQuery(), NOW)
    for one in rows:
        if isinstance(one, MemoryRow):
            analysis.add_memory(one)
        elif isinstance(one, ContradictionRow):
            analysis.add_contradiction(one)
        else:
            analysis.add_embed_job(one)
    return analysis.report()


def found(rows: Sequence[Row], query: HealthQuery | None = None) -> list[tuple[HealthKind, tuple[str, ...]]]:
    return [(finding.kind, finding.memory_ids) for finding in analyze(rows, query).findings]


def test_open_contradiction_is_critical() -> None:
    """Two active memories that cannot both be true come first."""
    report = analyze([row(confidence=0.1), ContradictionRow("a", "b", NOW)])
    first = report.findings[0]
    assert (first.kind, first.severity, first.memory_ids) == (HealthKind.CONTRADICTION, Severity.CRITICAL, ("a", "b"))
    assert report.worst is Severity.CRITICAL


@pytest.mark.parametrize(
    "resolved",
    [
        ContradictionRow("a", "b", NOW, is_between_active=False),
        ContradictionRow("a", "b", NOW, has_successor_edge=True),
        ContradictionRow("a", "b", NOW, is_resolved=True),
    ],
)
def test_resolved_contradiction_is_no_finding(resolved: ContradictionRow) -> None:
    """Once it is said which of the two holds there is nothing left to do."""
    assert found([resolved]) == []


@pytest.mark.parametrize(("confidence", "is_low"), [(0.0, True), (0.149, True), (0.15, False), (0.3 - 0.15, False)])
def test_low_confidence_is_below_its_threshold(confidence: float, is_low: bool) -> None:
    """0.15 itself is not low, however it was computed."""
    assert bool(found([row(confidence=confidence)])) is is_low


@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        (row(created_at=FRESH), None),
        (row(created_at=OLD), HealthKind.STALE),
        (row(created_at=OLD, last_outcome_at=FRESH), None),
        (row(created_at=OLD, last_outcome_at=OLD), HealthKind.STALE),
        (row(created_at=OLD, is_golden_rule=True), HealthKind.STALE_GOLDEN_RULE),
        (row(created_at=OLD, confidence=0.9 - 1e-12), HealthKind.STALE_GOLDEN_RULE),
        (row(created_at=OLD, confidence=0.899), HealthKind.STALE),
    ],
)
def test_stale_is_unconfirmed_within_the_window(memory: MemoryRow, kind: HealthKind | None) -> None:
    """A success or failure counts, else creation; golden rules are a kind of their own."""
    assert found([memory]) == ([(kind, ("m",))] if kind else [])


def test_settings_move_what_is_low_and_what_is_golden() -> None:
    """Figures of their own, for whoever has other ones."""
    query = HealthQuery(low_confidence=0.3, golden_confidence=0.6)
    report = analyze([row("low", confidence=0.29), row("rule", created_at=OLD, confidence=0.6)], query)
    kinds = {finding.memory_ids: finding.kind for finding in report.findings}
    assert kinds == {("low",): HealthKind.LOW_CONFIDENCE, ("rule",): HealthKind.STALE_GOLDEN_RULE}


def test_flags_switch_findings_and_counts_off() -> None:
    """What was not looked for is absent, not zero; the embedding backlog is always told."""
    rows: list[Row] = [
        row(confidence=0.1, created_at=OLD),
        ContradictionRow("a", "b", NOW),
        EmbedJobRow("p", is_parked=True, queued_at=NOW),
        EmbedJobRow("q", is_parked=False, queued_at=NOW),
    ]
    query = HealthQuery(has_contradictions=False, has_low_confidence=False, has_stale=False)
    report = analyze(rows, query)
    assert report.counts == {HealthKind.PARKED: 1, HealthKind.NOT_EMBEDDED: 1}
    assert [finding.kind for finding in report.findings] == [HealthKind.PARKED, HealthKind.NOT_EMBEDDED]
    assert len(analyze(rows).findings) == 5


def test_every_kind_says_what_to_do() -> None:
    """A finding without a way out is a complaint."""
    rows: list[Row] = [
        row("low", 0.1),
        row("old", created_at=OLD),
        row("rule", created_at=OLD, is_golden_rule=True),
        ContradictionRow("a", "b", NOW),
        EmbedJobRow("p", is_parked=True, queued_at=NOW),
        EmbedJobRow("q", is_parked=False, queued_at=NOW),
    ]
    report = analyze(rows)
    assert {finding.kind for finding in report.findings} == set(HealthKind)
    assert all(finding.recommendation for finding in report.findings)
    severities = [list(Severity).index(finding.severity) for finding in report.findings]
    assert severities == sorted(severities, reverse=True)
    assert report.summary.startswith("3 memories looked at: 1 open contradiction, ")


def test_healthy_store_says_so() -> None:
    """Nothing found is an answer."""
    report = analyze([row()])
    assert (report.findings, report.worst) == ((), None)
    assert report.summary == "1 memory looked at: nothing needs a look"


def test_many_rows_are_counted_and_the_worst_listed() -> None:
    """A hundred thousand stale memories are counted, the thousand oldest listed, and progress can be read."""
    analysis = HealthAnalysis(HealthQuery(), NOW)
    for n in range(100_000):
        analysis.add_memory(row(f"m{n}", created_at=OLD - timedelta(minutes=n)))
    assert analysis.analyzed == 100_000
    report = analysis.report()
    assert report.counts[HealthKind.STALE] == 100_000
    assert [f.memory_ids[0] for f in report.findings] == [f"m{n}" for n in range(99_999, 99_999 - MAX_FINDINGS, -1)]


_times = st.integers(0, 60).map(lambda days: NOW - timedelta(days=days))
_memories = st.builds(
    MemoryRow,
    st.sampled_from("abcdef"),
    st.floats(0, 0.3),
    st.booleans(),
    _times,
    st.none() | _times,
)
_rows: st.SearchStrategy[Row] = st.one_of(
    _memories,
    st.builds(ContradictionRow, st.sampled_from("abc"), st.sampled_from("def"), _times, st.booleans()),
    st.builds(EmbedJobRow, st.sampled_from("abcdef"), st.booleans(), _times),
)


@given(st.lists(_rows, max_size=20), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows: list[Row], chance: object) -> None:
    """A store may stream in any order; counts and findings agree."""
    shuffled = list(rows)
    shuffle: Callable[[list[Row]], None] = chance.shuffle  # type: ignore[attr-defined]
    shuffle(shuffled)
    report = analyze(rows)
    assert report == analyze(shuffled)
    assert sum(report.counts.values()) == len(report.findings)
    assert report.analyzed == sum(isinstance(one, MemoryRow) for one in rows)


@pytest.mark.parametrize("days", [0, -1, 3651])
def test_window_out_of_bounds_is_refused(days: int) -> None:
    """1 to 3650 days."""
    with pytest.raises(InvalidInputError):
        HealthQuery(stale_days=days)
