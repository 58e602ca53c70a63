"""Between messages about use and domain values."""

from typing import Final

from sidecar.api.v1 import insights_service_pb2 as pb
from sidecar.domain.hygiene import ReviewItem
from sidecar.domain.judge_jobs import ParkedJudgeJob, StoredVerdict
from sidecar.domain.metrics import NOTE, ClientCounts, Metrics
from sidecar.domain.reinforcement import IN_USE, WINDOW_DAYS, Constants, arithmetic
from sidecar.domain.replay import Arm, Figure, Holdout, Part, ReplayReport
from sidecar.domain.weighing import Standing, WeighedEvent
from sidecar.rpc.convert import timestamp
from sidecar.use_cases.explain_memory import MemoryExplanation, RankChange

_STANDING_NUMBERS: Final[dict[Standing, pb.EvidenceStanding.ValueType]] = {
    value: pb.EvidenceStanding.Value(f"EVIDENCE_STANDING_{value.name}") for value in Standing
}


def metrics_response(metrics: Metrics) -> pb.ExportMetricsResponse:
    """Return the figures of a window."""
    return pb.ExportMetricsResponse(
        first_day=metrics.window.first.isoformat(),
        days=metrics.window.days,
        metrics=[
            pb.Metric(
                name=metric.name,
                value=metric.value,
                numerator=metric.numerator,
                denominator=metric.denominator,
                reason=metric.reason,
                label=metric.label,
            )
            for metric in metrics.metrics
        ],
        series=[pb.MetricSeries(name=name, values=values) for name, values in metrics.series.items()],
        clients=[_client(counts) for counts in metrics.clients],
        note=NOTE,
        headline=metrics.headline,
    )


def explanation(memory_id: str, found: MemoryExplanation) -> pb.ExplainMemoryResponse:
    """Return why a memory ranks as it does."""
    evidence = found.evidence
    return pb.ExplainMemoryResponse(
        multiplier=evidence.multiplier,
        useful=evidence.evidence.useful,
        misled=evidence.evidence.misled,
        arithmetic=arithmetic(evidence.evidence),
        window_days=WINDOW_DAYS,
        events=[_weighed_event(memory_id, weighed) for weighed in evidence.weighed],
        surfaced=evidence.surfaced,
        verdicts=[_verdict(stored) for stored in found.verdicts],
        disputed=evidence.is_disputed,
        standing_rule=evidence.is_standing_rule,
        rank_change=None if found.rank_change is None else _rank_change(found.rank_change),
    )


def review_item(item: ReviewItem) -> pb.ReviewItem:
    """Return a memory that somebody should look at."""
    return pb.ReviewItem(
        memory_id=item.memory_id,
        signals=item.signals,
        latest_time=timestamp(item.latest_at),
        sources=item.sources,
        dispute_ids=item.dispute_ids,
    )


def parked_job(job: ParkedJudgeJob) -> pb.ParkedJudgeJob:
    """Return a job that was given up."""
    return pb.ParkedJudgeJob(
        client=job.key.client,
        session=job.key.session,
        memory_id=job.key.memory_id,
        attempts=job.attempts,
        reason=job.reason,
    )


def constants(message: pb.ReinforcementConstants) -> Constants:
    """Return the constants; what is unset is as in use."""
    return Constants(
        useful_gain=message.useful_gain if message.HasField("useful_gain") else IN_USE.useful_gain,
        misled_loss=message.misled_loss if message.HasField("misled_loss") else IN_USE.misled_loss,
        lowest=message.lowest if message.HasField("lowest") else IN_USE.lowest,
        highest=message.highest if message.HasField("highest") else IN_USE.highest,
    )


def replay_response(report: ReplayReport) -> pb.ReplayRecallsResponse:
    """Return what a replay found."""
    return pb.ReplayRecallsResponse(
        recalls=report.recalls,
        judged_recalls=report.telling,
        sessions=report.sessions,
        tuning=_part(report.tuning),
        held_out=_part(report.held_out),
        outcome=report.outcome,
        reason=report.reason,
        holdout=_holdout(report.holdout),
    )


def _client(counts: ClientCounts) -> pb.ClientMetrics:
    return pb.ClientMetrics(
        client=counts.client,
        recalls=counts.recalls,
        known=counts.known,
        cannot_record=counts.cannot_record,
        unknown=counts.unknown,
        coverage=counts.coverage,
        shown=counts.shown,
        judged=counts.judged,
        used=counts.used,
        answered=counts.answered,
    )


def _weighed_event(memory_id: str, weighed: WeighedEvent) -> pb.WeighedEvent:
    event = weighed.event
    return pb.WeighedEvent(
        source=event.source or "",
        valence=event.valence,
        weight=event.weight,
        client=event.client,
        session=event.session,
        time=timestamp(event.at),
        standing=_STANDING_NUMBERS[weighed.standing],
        about_id=event.memory_id if event.memory_id != memory_id else "",
    )


def _verdict(stored: StoredVerdict) -> pb.MemoryVerdict:
    return pb.MemoryVerdict(
        client=stored.key.client,
        session=stored.key.session,
        judge=stored.judge,
        used=stored.verdict.used,
        relevant=stored.verdict.relevant,
        misled=stored.verdict.misled,
        shown_time=timestamp(stored.shown_at),
        judged_time=timestamp(stored.judged_at),
    )


def _rank_change(change: RankChange) -> pb.RankChange:
    return pb.RankChange(
        rank=change.rank,
        rank_without=change.rank_without,
        score=change.score,
        score_without=change.score_without,
        relevance=change.relevance,
        reinforcement=change.reinforcement,
    )


def _part(part: Part) -> pb.ReplayPart:
    return pb.ReplayPart(
        sessions=part.sessions,
        recalls=part.recalls,
        mean_reciprocal_rank=_figure(part.reciprocal_rank),
        ndcg=_figure(part.ndcg),
        useful_share=_figure(part.useful_share),
    )


def _figure(figure: Figure) -> pb.ReplayFigure:
    return pb.ReplayFigure(
        baseline=figure.baseline, proposed=figure.proposed, difference_low=figure.low, difference_high=figure.high
    )


def _holdout(holdout: Holdout) -> pb.HoldoutComparison:
    return pb.HoldoutComparison(
        reinforced=_arm(holdout.reinforced),
        unreinforced=_arm(holdout.unreinforced),
        difference_low=holdout.low,
        difference_high=holdout.high,
    )


def _arm(arm: Arm) -> pb.HoldoutArm:
    return pb.HoldoutArm(sessions=arm.sessions, recalls=arm.recalls, useful=arm.useful)
