"""What was acknowledged or delivered is neither lost nor doubled where the sidecar is killed in between."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import Sidecar
from tests.e2e.running import running_sidecar, wait_until_embedded


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    # Words alone find what is asked for here, and a sidecar without a model starts sooner.
    with running_sidecar(tmp_path / "home", embedder="none") as running:
        yield running


def kill(sidecar: Sidecar) -> None:
    """End the sidecar as a crash would; the client starts it anew with its next call."""
    os.kill(sidecar.get_status(admin.GetStatusRequest()).pid, signal.SIGKILL)


def test_recall_repeated_after_a_crash_counts_once(sidecar: Sidecar) -> None:
    """Nobody can tell whether the first answer arrived; the agent was shown the memory once."""
    stored = sidecar.remember(pb.RememberRequest(content="Ferries leave at dawn."))
    request = pb.RecallRequest(query="when do ferries leave", request_key="ferries")
    first = sidecar.recall(request)
    sidecar.remember(pb.RememberRequest(content="Written behind the note of it."))
    kill(sidecar)
    again = sidecar.recall(request)
    sidecar.remember(pb.RememberRequest(content="And behind the second."))
    found = sidecar.get_memory(pb.GetMemoryRequest(memory_id=stored.memory_id))
    assert first.recall_id == again.recall_id != ""
    assert [event.recall_id for event in found.usage_events] == [first.recall_id]
    assert found.memory.access_count == 1


def test_session_is_briefed_once_over_a_crash(sidecar: Sidecar) -> None:
    """What was claimed is known to the next sidecar; a repeat of the very request is answered."""
    sidecar.remember(pb.RememberRequest(content="Ferries leave at dawn."))
    request = pb.BuildContextRequest(once_per_session=True, request_key="first")
    told = sidecar.build_context(request)
    kill(sidecar)
    assert sidecar.build_context(pb.BuildContextRequest(once_per_session=True)).markdown == ""
    again = sidecar.build_context(request)
    assert (list(again.memory_ids), again.recall_id) == (list(told.memory_ids), told.recall_id)


def test_wish_for_relations_outlives_a_crash_before_embedding(tmp_path: Path) -> None:
    """Acknowledged, then killed: the next sidecar embeds the memory and relates it as its caller wished."""
    home = tmp_path / "home"
    texts = ("The mast is painted in spring.", "The mast is painted in early spring.", "The mast is painted in May.")
    with running_sidecar(home, embedder="none") as sidecar:
        plain = [pb.RememberRequest(content=text, auto_link=False) for text in texts[:2]]
        others = [sidecar.remember(request).memory_id for request in plain]
        wish = pb.RememberRequest(content=texts[2], max_auto_links=1, similarity_threshold=0.3)
        wished = sidecar.remember(wish).memory_id
        kill(sidecar)
    with running_sidecar(home, embedder="minilm-onnx") as sidecar:
        wait_until_embedded(sidecar)
        # Nothing else tells that relating is over: it comes behind embedding, and this behind both.
        sidecar.remember(pb.RememberRequest(content="The hull is painted in autumn.", wait_for_index=True))
        edges = {edge.id: edge for memory_id in others for edge in edges_of(sidecar, memory_id)}
        [edge] = edges.values()
        assert edge.source_id == wished
        assert edge.relation == memory_pb2.RELATION_RELATES_TO


def edges_of(sidecar: Sidecar, memory_id: str) -> list[memory_pb2.Edge]:
    """Return the relations of a memory."""
    return list(sidecar.get_memory(pb.GetMemoryRequest(memory_id=memory_id)).edges)
