"""The commands on the evidence of use, against a scripted sidecar."""

import json

import pytest
from google.protobuf.message import Message

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import insights_service_pb2 as service
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.cli.insights import chart, told
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import A, B, command

_METRICS = service.ExportMetricsResponse(
    first_day="2026-02-01",
    days=2,
    metrics=[
        service.Metric(name="hit_rate", value=0.25, numerator=1, denominator=4, label="a proxy"),
        service.Metric(name="context_precision", reason="no session was judged", label="a proxy"),
        service.Metric(name="useful_recalls", value=3, numerator=3, denominator=9, label="a volume"),
    ],
    series=[service.MetricSeries(name="recalls", values=[1, 4])],
    clients=[service.ClientMetrics(client="codex", answered=5, recalls=4, known=3, coverage=0.75)],
    note="Every figure is a proxy.",
    headline="hit_rate",
)
_WHY = service.ExplainMemoryResponse(
    multiplier=1.104,
    arithmetic="1 + 0.15",
    window_days=90,
    surfaced=3,
    disputed=True,
    events=[service.WeighedEvent(source="judge", valence="useful", standing=service.EVIDENCE_STANDING_OVERRULED)],
    rank_change=service.RankChange(rank=1, rank_without=4, score=0.7, score_without=0.6, reinforcement=1.1),
)
_REPLAY = service.ReplayRecallsResponse(
    outcome="too_little_data",
    reason="3 sessions",
    holdout=service.HoldoutComparison(unreinforced=service.HoldoutArm(recalls=8, useful=2)),
)
CASES: list[tuple[tuple[str, ...], str, Message, str, dict[str, object]]] = [
    (("insights", "--days", "2"), "export_metrics", _METRICS, "hit_rate\t25.0%\t1 of 4", {"days": 2}),
    (("insights",), "export_metrics", _METRICS, "context_precision\t-\t0 of 0\ta proxy (no session", {"days": 0}),
    (("insights",), "export_metrics", _METRICS, "codex\t5\t4\t3 (75%)", {}),
    (("insights",), "export_metrics", service.ExportMetricsResponse(), "No client has recalled", {}),
    (("why", A, "-q", "redis"), "explain_memory", _WHY, "without evidence of use rank 4", {"query": "redis"}),
    (("why", A.lower()), "explain_memory", _WHY, "overruled", {"memory_id": A, "query": ""}),
    (("why", A), "explain_memory", service.ExplainMemoryResponse(), "Nothing was said of its use", {}),
    (
        ("review",),
        "list_review_items",
        service.ListReviewItemsResponse(items=[service.ReviewItem(memory_id=A, signals=2, sources=["judge"])]),
        f"{A}\t2",
        {"limit": 100},
    ),
    (("hygiene",), "run_hygiene", service.RunHygieneResponse(looked_at=1, changed=2), "1 memory with evidence", {}),
    (("hygiene",), "run_hygiene", service.RunHygieneResponse(already_running=True), "under way", {}),
    (("replay", "--useful-gain", "0"), "replay_recalls", _REPLAY, "too little data: 3 sessions", {"days": 90}),
]


@pytest.mark.parametrize(("typed", "method", "answer", "seen", "fields"), CASES, ids=lambda case: str(case)[:40])
def test_commands_ask_and_tell(
    typed: tuple[str, ...],
    method: str,
    answer: Message,
    seen: str,
    fields: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is typed reaches the sidecar, and its answer the person; with --json as a document."""
    sidecar = ScriptedSidecar(**{method: answer})
    connect_to(monkeypatch, sidecar)
    assert command(*typed) == 0
    assert seen in capsys.readouterr().out
    for name, value in fields.items():
        assert getattr(sidecar.requests[0], name) == value
    assert command(*typed, "--json") == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


def test_replay_without_constants_compares_with_no_reinforcement(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured then is what reinforcement does at all."""
    sidecar = ScriptedSidecar(replay_recalls=_REPLAY)
    connect_to(monkeypatch, sidecar)
    assert command("replay") == 0
    assert (sidecar.requests[-1].baseline.useful_gain, sidecar.requests[-1].baseline.HasField("misled_loss")) == (
        0,
        True,
    )


def test_judge_retries_only_when_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """And shows what was given up."""
    parked = service.ParkedJudgeJob(memory_id=A, client="codex", session="s", attempts=5, reason="ValueError")
    queue = service.GetJudgeQueueResponse(judge="local-1", waiting=1, parked=1, parked_jobs=[parked])
    sidecar = ScriptedSidecar(get_judge_queue=queue, retry_judge_jobs=service.RetryJudgeJobsResponse(retried=7))
    connect_to(monkeypatch, sidecar)
    assert command("judge") == 0
    shown = capsys.readouterr().out
    assert "judge local-1: 1 waiting, 0 done, 1 given up" in shown
    assert "ValueError" in shown
    assert "7 jobs" not in shown
    assert command("judge", "--retry") == 0
    assert "7 jobs will be judged again" in capsys.readouterr().out


_JUDGED = service.ListReviewItemsResponse(items=[service.ReviewItem(memory_id=A, signals=2, sources=["judge"])])


@pytest.mark.parametrize(
    ("typed", "resolution", "undo"),
    [
        (("accept",), validation.RESOLUTION_RETIRE, f"undo: sidecar restore {A}"),
        (("accept", "--by", B), validation.RESOLUTION_SUPERSEDE, f"undo: sidecar unrelate {B} {A}"),
        (("dismiss",), validation.RESOLUTION_KEEP, f"undo: sidecar challenge {A} REASON"),
    ],
)
def test_what_only_a_judge_speaks_against_is_settled_in_one_command(
    typed: tuple[str, ...],
    resolution: int,
    undo: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """There is no dispute to resolve yet: one is opened, with who says so, and ended."""
    sidecar = ScriptedSidecar(
        list_review_items=_JUDGED,
        explain_memory=service.ExplainMemoryResponse(),
        challenge_memory=validation.ChallengeMemoryResponse(dispute=validation.Dispute(id=7)),
        resolve_dispute=validation.ResolveDisputeResponse(),
    )
    connect_to(monkeypatch, sidecar)
    assert command("review", A, *typed) == 0
    assert undo in capsys.readouterr().out
    opened, ended = sidecar.requests[-2:]
    assert (opened.memory_id, opened.reason) == (A, "misled 2 sessions, says judge; settled in a review")
    assert (ended.dispute_id, ended.resolution) == (7, resolution)


@pytest.mark.parametrize("typed", [("accept", "--by", "x"), ("dismiss", "--by", B), (), ("keep",)], ids=" ".join)
def test_what_makes_no_decision_changes_nothing(typed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one on a memory that is not on the list."""
    sidecar = ScriptedSidecar(list_review_items=_JUDGED)
    connect_to(monkeypatch, sidecar)
    assert command("review", A, *typed) == 2
    assert sidecar.requests == []
    assert command("review", B, "accept") == 2
    assert len(sidecar.requests) == 1


def test_status_names_the_judge_what_was_given_up_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its own row, with the reason of each."""
    given_up = admin.ParkedVerdict(memory_id=A, client="codex", session="s-1", attempts=5, reason="ValueError")
    judge = admin.JudgeQueueStatus(
        state=admin.PART_STATE_DEGRADED, name="local-2", waiting=3, done=1, parked=1, parked_verdicts=[given_up]
    )
    connect_to(monkeypatch, ScriptedSidecar(get_status=admin.GetStatusResponse(judge=judge)))
    assert command("status") == 0
    shown = capsys.readouterr().out
    assert "judge\tdegraded, local-2, 3 waiting, 1 done, 1 given up" in shown
    assert f"Not judged: {A} in session s-1 of codex after 5 attempts: ValueError" in shown


def test_no_review_is_said_beside_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script gets an empty result."""
    connect_to(monkeypatch, ScriptedSidecar(list_review_items=service.ListReviewItemsResponse()))
    assert command("review") == 0
    assert capsys.readouterr().out == ""


def test_charts_show_every_day_and_fit_a_terminal() -> None:
    """A day with something is never empty, and a year is summed up."""
    assert chart([0, 1, 1000]) == "·▁█"
    assert chart([0, 0]) == "none"
    assert chart([]) == "none"
    assert len(chart([1] * 365)) <= 40


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        (service.Metric(value=0.0, denominator=3), "0.0%"),
        (service.Metric(value=1.0, numerator=1, denominator=1), "100.0%"),
        (service.Metric(name="useful_recalls", value=0.0, denominator=3), "0"),
        (service.Metric(reason="nothing"), "-"),
    ],
)
def test_figures_are_told_as_what_they_are(metric: service.Metric, shown: str) -> None:
    """Shares in percent, volumes as they are, and nothing where there is none."""
    assert told(metric) == shown
