"""What `sidecar get` tells of a memory's use, against a scripted sidecar."""

import pytest

from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.entry import run
from sidecar.cli.rendering import counted
from tests.unit.scripted_sidecar import ScriptedSidecar, connect_to

A = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"


def event(valence: service.UsageValence.ValueType, weight: float) -> service.UsageEvent:
    """Return what a session says of the memory."""
    return service.UsageEvent(
        memory_id=A, valence=valence, weight=weight, client="claude-code", session="6f1c9a52-aaaa-4bbb"
    )


def test_get_lists_events_and_counts_those_with_weight(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That a memory was shown is listed, but is no evidence of use."""
    events = [event(service.USAGE_VALENCE_SURFACED, 1.0), event(service.USAGE_VALENCE_USEFUL, 0.5)]
    events.append(event(service.USAGE_VALENCE_RELEVANT, 0.0))
    memory = pb.Memory(id=A, content="Redis.", access_count=1)
    answer = service.GetMemoryResponse(memory=memory, reinforcement=1.1, usage_events=events)
    connect_to(monkeypatch, ScriptedSidecar(get_memory=answer))
    assert run(["get", A], serve=lambda arguments: 0) == 0
    printed = capsys.readouterr().out
    assert "use\tfactor 1.10 from 1 event\n" in printed
    assert "delivered\t1 time\n" in printed
    assert "\tclaude-code\t6f1c9a52\tuseful\t0.50\n" in printed
    assert "\tsurfaced\t" in printed


def test_counts_have_the_right_number() -> None:
    """One is not many."""
    assert [counted(n, "event") for n in (0, 1, 2)] == ["0 events", "1 event", "2 events"]
    assert [counted(n, "memory", "memories") for n in (1, 2)] == ["1 memory", "2 memories"]
