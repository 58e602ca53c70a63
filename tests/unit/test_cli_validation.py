"""The commands on whether memories hold, on disputes, health and files, against a scripted sidecar."""

import json
from pathlib import Path

import pytest
from google.protobuf.message import Message

from sidecar.api.v1 import activity_service_pb2 as activity
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import validation_service_pb2 as service
from sidecar.errors import DisputeNotFoundError, DisputeResolvedError
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to
from tests.unit.test_cli_commands import A, B, command

_PROMOTED = service.ConfidenceChange(
    old_confidence=0.8, new_confidence=0.9, promoted=True, type=pb.MEMORY_TYPE_GOLDEN_RULE
)
_FALLEN = service.ConfidenceChange(old_confidence=0.9, new_confidence=0.7, demoted=True, type=pb.MEMORY_TYPE_GOTCHA)
# (what is typed, method, answer, what a person must see, fields of the request)
CASES: list[tuple[tuple[str, ...], str, Message, str, dict[str, object]]] = [
    (("apply", A, "-c", "deploying"), "apply_memory", service.ApplyMemoryResponse(), A, {"context": "deploying"}),
    (
        ("outcome", A, "failed", "--error", "it burnt"),
        "record_outcome",
        service.RecordOutcomeResponse(change=_FALLEN),
        "0.90 → 0.70, no longer a golden rule but gotcha",
        {"success": False, "error": "it burnt"},
    ),
    (
        ("outcome", A, "succeeded"),
        "record_outcome",
        service.RecordOutcomeResponse(change=_PROMOTED),
        "now a golden rule",
        {"success": True},
    ),
    (
        ("validate", A, "succeeded", "--adjustment", "0"),
        "validate_memory",
        service.ValidateMemoryResponse(change=_PROMOTED),
        "0.80 → 0.90",
        {"success": True, "adjustment": 0.0},
    ),
    (
        ("history", A, "--kind", "failed", "-l", "7"),
        "list_validation_events",
        service.ListValidationEventsResponse(
            events=[service.ValidationEvent(id=1, kind=service.VALIDATION_KIND_FAILED, error="it burnt", direct=True)],
            summary=service.ValidationSummary(total=4, succeeded=3, failed=1, success_rate=0.75),
        ),
        "success rate 75%",
        {"kind": service.VALIDATION_KIND_FAILED, "limit": 7},
    ),
    (
        ("contradictions", A, "--threshold", "0.8", "--no-edges"),
        "detect_contradictions",
        service.DetectContradictionsResponse(
            contradictions=[
                service.Contradiction(
                    memory_id=B, similarity=0.9, method="negation", own_part="is", other_part="is not"
                )
            ],
            not_checked=["no language model is configured"],
        ),
        "here “is”, there “is not”",
        {"similarity_threshold": 0.8, "create_edges": False},
    ),
    (
        ("supersedes", A, "--force"),
        "check_supersedes",
        service.CheckSupersedesResponse(superseded_id=B, reason="it did better", edge_id=9),
        "sidecar unrelate 9",
        {"create_edge": True, "force": True},
    ),
    (
        ("supersedes", A, "--no-edge"),
        "check_supersedes",
        service.CheckSupersedesResponse(reason="it has 1 success"),
        "replaces none: it has 1 success",
        {"create_edge": False},
    ),
    (
        ("challenge", A, "it", "is", "wrong", "--evidence", "see log"),
        "challenge_memory",
        service.ChallengeMemoryResponse(dispute=service.Dispute(id=3)),
        "sidecar resolve 3 keep",
        {"reason": "it is wrong", "evidence": "see log"},
    ),
    (
        ("challenge", A, "wrong"),
        "challenge_memory",
        service.ChallengeMemoryResponse(dispute=service.Dispute(id=3), already_pending=True),
        "already",
        {},
    ),
    (
        ("disputes", A, "--all"),
        "list_disputes",
        service.ListDisputesResponse(
            disputes=[service.Dispute(id=3, memory_id=A, reason="wrong", resolution=service.RESOLUTION_KEEP)]
        ),
        "keep",
        {"include_resolved": True, "limit": 0},
    ),
    (
        ("resolve", "3", "retire"),
        "resolve_dispute",
        service.ResolveDisputeResponse(dispute=service.Dispute(id=3, memory_id=A)),
        f"sidecar restore {A}",
        {"dispute_id": 3, "resolution": service.RESOLUTION_RETIRE},
    ),
    (
        ("resolve", "3", "supersede", "--by", B),
        "resolve_dispute",
        service.ResolveDisputeResponse(dispute=service.Dispute(id=3, memory_id=A)),
        "--relation supersedes",
        {"successor_id": B},
    ),
    (("promote", A), "promote_memory", service.PromoteMemoryResponse(), "is promoted", {}),
    (("promote", A), "promote_memory", service.PromoteMemoryResponse(already_promoted=True), "already", {}),
    (("demote", A), "demote_memory", service.DemoteMemoryResponse(was_promoted=True), "no longer promoted", {}),
    (("demote", A), "demote_memory", service.DemoteMemoryResponse(), "was not promoted", {}),
    (
        ("health", "--no-stale", "--stale-days", "9", "-n", "*"),
        "analyze_health",
        maintenance.AnalyzeHealthResponse(
            findings=[
                maintenance.HealthFinding(
                    kind="contradiction",
                    severity=maintenance.SEVERITY_CRITICAL,
                    memory_ids=[A, B],
                    recommendation="Ask the user which one holds.",
                )
            ],
            counts={"contradiction": 1},
            summary="1 of 2 memories needs a look.",
        ),
        "Ask the user which one holds.",
        {"include_stale": False, "include_contradictions": True, "stale_days": 9, "namespace": "*"},
    ),
    (
        ("files", "--days", "3"),
        "list_recent_files",
        activity.ListRecentFilesResponse(
            files=[activity.RecentFile(path="src/a.py", last_action=activity.FILE_ACTION_EDIT, count=4)]
        ),
        "src/a.py",
        {"days": 3, "limit": 0},
    ),
    (
        ("activity", "add", "src/a.py", "edit", "--session", "s-1", "--client", "codex", "--metadata", '{"lines": 3}'),
        "add_file_activity",
        activity.AddFileActivityResponse(id=7, file_type="python"),
        "Noted: edit src/a.py (python)",
        {"path": "src/a.py", "action": activity.FILE_ACTION_EDIT, "project_root": str(Path.cwd())},
    ),
]


@pytest.mark.parametrize(("arguments", "method", "answer", "told", "asked"), CASES)
def test_command_asks_and_tells(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    method: str,
    answer: Message,
    told: str,
    asked: dict[str, object],
) -> None:
    """What is typed reaches the sidecar as it is meant, and what matters of the answer is seen in both forms."""
    sidecar = ScriptedSidecar(**{method: answer})
    connect_to(monkeypatch, sidecar)
    assert command(*arguments) == 0
    assert told in " ".join(capsys.readouterr().out.split())
    request = sidecar.requests[0]
    assert {name: getattr(request, name) for name in asked} == asked
    assert command(*arguments, "--json") == 0
    assert set(json.loads(capsys.readouterr().out)) == {field.name for field in answer.DESCRIPTOR.fields}


def test_what_was_not_checked_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing found is no proof, so what was left out must be seen."""
    answer = service.DetectContradictionsResponse(compared=4, not_checked=["no language model is configured"])
    connect_to(monkeypatch, ScriptedSidecar(detect_contradictions=answer))
    assert command("contradictions", A) == 0
    told = capsys.readouterr().err
    assert "None of 4" in told
    assert "Not checked: no language model" in told


def test_empty_lists_are_success_and_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing found is said on stderr, so that what is piped stays empty."""
    empty = ScriptedSidecar(
        list_disputes=service.ListDisputesResponse(), list_recent_files=activity.ListRecentFilesResponse()
    )
    connect_to(monkeypatch, empty)
    for name in ("disputes", "files"):
        assert command(name) == 0
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("outcome", A, "maybe"),
        ("validate", A, "succeeded", "--adjustment", "2"),
        ("history", A, "--kind", "novel"),
        ("history", A, "--limit", "0"),
        ("challenge", A),
        ("resolve", "x", "keep"),
        ("resolve", "3", "drop"),
        ("resolve", "3", "supersede"),
        ("resolve", "3", "supersede", "--by", "x"),
        ("resolve", "3", "keep", "--by", B),
        ("health", "--stale-days", "0"),
        ("files", "--days", "400"),
        ("activity", "add", "a.py", "rename"),
        ("activity", "add", "a.py", "edit", "--metadata", "[1]"),
    ],
)
def test_wrong_values_change_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """A wrong value is told before any sidecar is asked."""
    sidecar = ScriptedSidecar()
    connect_to(monkeypatch, sidecar)
    assert command(*arguments) == 2
    assert not sidecar.requests
    assert capsys.readouterr().err.startswith("Error: ")


@pytest.mark.parametrize(("error", "code"), [(DisputeNotFoundError(3), 7), (DisputeResolvedError(3, "keep"), 8)])
def test_dispute_that_cannot_be_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    """One that is not there and one that has ended are told apart."""
    connect_to(monkeypatch, ScriptedSidecar(resolve_dispute=error))
    assert command("resolve", "3", "keep") == code
    assert "Traceback" not in capsys.readouterr().err
