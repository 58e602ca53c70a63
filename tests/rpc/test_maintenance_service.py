"""The MaintenanceService over real gRPC: health, export, import, backup, integrity."""

import json
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import graph_service_pb2 as graph
from sidecar.api.v1 import maintenance_service_pb2 as pb
from sidecar.api.v1 import memory_pb2
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import AsyncSidecar, Sidecar
from sidecar.errors import InvalidInputError, InvalidNamespaceError
from tests.e2e.running import running_sidecar, wait_until_embedded

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    """A sidecar of the test's own: these operations are about all that is stored."""
    with running_sidecar(tmp_path / "home") as running:
        yield running


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Sidecar]:
    """Another one to import into."""
    with running_sidecar(tmp_path / "other") as running:
        yield running


def remember(sidecar: Sidecar, content: str, **fields: object) -> str:
    request = memory.RememberRequest(content=content, auto_link=False, **fields)  # type: ignore[arg-type]
    return sidecar.remember(request).memory_id


def relate(sidecar: Sidecar, source: str, target: str, relation: memory_pb2.Relation.ValueType) -> None:
    sidecar.relate(graph.RelateRequest(source_id=source, target_id=target, relation=relation))


def export(sidecar: Sidecar, *, include_forgotten: bool = False) -> bytes:
    request = pb.ExportMemoriesRequest(include_forgotten=include_forgotten)
    return b"".join(piece.lines for piece in sidecar.export_memories(request))


def bring_in(sidecar: Sidecar, data: bytes, *, cut_at: int = 7) -> pb.ImportMemoriesResponse:
    return sidecar.import_memories(_pieces(data, cut_at))


def _pieces(data: bytes, size: int) -> Iterable[pb.ImportMemoriesRequest]:
    for start in range(0, len(data), size):
        yield pb.ImportMemoriesRequest(lines=data[start : start + size])


def fill(sidecar: Sidecar) -> dict[str, str]:
    """Store one of each kind of thing."""
    ids = {
        "old": remember(sidecar, "The cache is memcached.", metadata={"ticket": 7}),
        "new": remember(sidecar, "The cache is Redis, größer und 東."),
        "gone": remember(sidecar, "To be forgotten."),
    }
    relate(sidecar, ids["new"], ids["old"], memory_pb2.RELATION_SUPERSEDES)
    sidecar.record_outcome(validation.RecordOutcomeRequest(memory_id=ids["new"], success=True))
    sidecar.challenge_memory(validation.ChallengeMemoryRequest(memory_id=ids["new"], reason="Is it?"))
    sidecar.recall(memory.RecallRequest(query="which cache"))
    sidecar.forget_memories(memory.ForgetMemoriesRequest(memory_id=ids["gone"]))
    return ids


# --- health ---


def test_health_of_an_empty_store(sidecar: Sidecar) -> None:
    """Nothing looked at, nothing found; every kind is counted."""
    report = sidecar.analyze_health(pb.AnalyzeHealthRequest())
    assert (list(report.findings), report.analyzed) == ([], 0)
    assert set(report.counts) == {
        "contradiction",
        "low_confidence",
        "stale",
        "stale_golden_rule",
        "not_embedded",
        "parked",
    }
    assert report.summary


def test_health_finds_contradictions_and_low_confidence(sidecar: Sidecar) -> None:
    """The most urgent first, each with what to do; a resolved contradiction is none."""
    yes, no = remember(sidecar, "Retries are on."), remember(sidecar, "Retries are off.")
    doubtful = remember(sidecar, "Perhaps.", confidence=0.1)
    relate(sidecar, yes, no, memory_pb2.RELATION_CONTRADICTS)
    wait_until_embedded(sidecar)
    report = sidecar.analyze_health(pb.AnalyzeHealthRequest())
    assert [(finding.kind, finding.severity) for finding in report.findings] == [
        ("contradiction", pb.SEVERITY_CRITICAL),
        ("low_confidence", pb.SEVERITY_WARNING),
    ]
    assert [set(finding.memory_ids) for finding in report.findings] == [{yes, no}, {doubtful}]
    assert all(finding.recommendation for finding in report.findings)
    assert (report.counts["contradiction"], report.counts["low_confidence"], report.counts["stale"]) == (1, 1, 0)
    assert report.analyzed == 3
    nothing = pb.AnalyzeHealthRequest(include_contradictions=False, include_low_confidence=False, include_stale=False)
    assert not sidecar.analyze_health(nothing).findings
    relate(sidecar, yes, no, memory_pb2.RELATION_SUPERSEDES)
    assert sidecar.analyze_health(pb.AnalyzeHealthRequest()).counts["contradiction"] == 0


def test_health_looks_where_it_is_told(sidecar: Sidecar) -> None:
    """The caller's project and `global` by default."""
    remember(sidecar, "Mine.", confidence=0.1)
    remember(sidecar, "Theirs.", confidence=0.1, namespace="project:theirs")
    assert sidecar.analyze_health(pb.AnalyzeHealthRequest()).counts["low_confidence"] == 1
    assert sidecar.analyze_health(pb.AnalyzeHealthRequest(namespace="*")).counts["low_confidence"] == 2
    assert sidecar.analyze_health(pb.AnalyzeHealthRequest(namespace="project:theirs")).analyzed == 1


def test_health_names_the_bad_field(sidecar: Sidecar) -> None:
    """Days from 1 to 3650, a namespace that can be."""
    for days in (-1, 3651):
        with pytest.raises(InvalidInputError) as caught:
            sidecar.analyze_health(pb.AnalyzeHealthRequest(stale_days=days))
        assert caught.value.metadata["field"] == "stale_days"
    with pytest.raises(InvalidNamespaceError):
        sidecar.analyze_health(pb.AnalyzeHealthRequest(namespace="nonsense"))


# --- export and import ---


def test_export_imports_to_an_identical_export(sidecar: Sidecar, other: Sidecar) -> None:
    """Round trip; the second import changes nothing; what was imported is found."""
    ids = fill(sidecar)
    lines = export(sidecar, include_forgotten=True)
    first = bring_in(other, lines)
    record_count = len(lines.splitlines()) - 1
    assert (first.imported, first.unchanged, first.refused_count) == (record_count, 0, 0)
    again = bring_in(other, lines, cut_at=4096)
    assert (again.imported, again.unchanged, again.refused_count) == (0, record_count, 0)
    assert export(other, include_forgotten=True) == lines
    wait_until_embedded(other)
    found = other.recall(memory.RecallRequest(query="which cache do we use")).memories
    assert [recalled.memory.id for recalled in found] == [ids["new"]]
    old = other.get_memory(memory.GetMemoryRequest(memory_id=ids["old"])).memory
    assert (old.state, old.superseded_by) == (memory_pb2.MEMORY_STATE_SUPERSEDED, ids["new"])


def test_export_leaves_the_forgotten_out_unless_asked(sidecar: Sidecar) -> None:
    """And tells how far it is."""
    ids = fill(sidecar)
    assert ids["gone"] not in export(sidecar).decode()
    assert ids["gone"] in export(sidecar, include_forgotten=True).decode()
    pieces = list(sidecar.export_memories(pb.ExportMemoriesRequest()))
    line_count = len(b"".join(piece.lines for piece in pieces).splitlines())
    assert (pieces[-1].done, pieces[-1].total) == (line_count, line_count)


def test_export_of_nothing_is_a_header(sidecar: Sidecar, other: Sidecar) -> None:
    """Which can be imported too."""
    lines = export(sidecar)
    assert json.loads(lines)["record"] == "export"
    answer = bring_in(other, lines)
    assert (answer.imported, answer.unchanged, answer.refused_count) == (0, 0, 0)


def test_import_tells_what_it_cannot_take(sidecar: Sidecar, other: Sidecar) -> None:
    """By line number; the rest is taken, the last line also without its end, and no secret gets in."""
    remember(sidecar, "Good one.")
    header, good = export(sidecar).splitlines()[:2]
    leaking = good.replace(b"Good one.", f"Token {SECRET}.".encode())
    bad = [b"not json", b'{"record":"memory"}', b"", b'{"record":"unheard"}', b"x" * 600_000]
    answer = bring_in(other, b"\n".join([header, *bad, leaking]), cut_at=65_536)
    assert (answer.imported, answer.refused_count) == (1, 4)
    assert [line.partition(":")[0] for line in answer.refused] == ["line 2", "line 3", "line 5", "line 6"]
    [stored] = other.list_memories(memory.ListMemoriesRequest(filter=memory.MemoryFilter(namespace="*"))).memories
    assert SECRET not in stored.content
    assert "[redacted:" in stored.content


def test_import_tells_of_a_hundred_refusals_and_counts_all(sidecar: Sidecar) -> None:
    """A file of something else must not fill memory."""
    answer = bring_in(sidecar, b"nonsense\n" * 150, cut_at=1000)
    assert (len(answer.refused), answer.refused_count) == (100, 150)


async def test_asynchronous_client_streams_too(sidecar: Sidecar, other: Sidecar) -> None:
    """The same two methods for programs with an event loop."""
    fill(sidecar)
    home, target = Path(sidecar.get_status().data_folder), Path(other.get_status().data_folder)
    async with await AsyncSidecar.connect(home, start=False) as source:
        pieces = [piece async for piece in source.export_memories(pb.ExportMemoriesRequest())]

    async def requests() -> object:
        for piece in pieces:
            yield pb.ImportMemoriesRequest(lines=piece.lines)

    async with await AsyncSidecar.connect(target, start=False) as sink:
        answer = await sink.import_memories(requests())  # type: ignore[arg-type]
    assert answer.imported > 0
    assert answer.refused_count == 0


# --- backup and integrity ---


def test_backup_is_private_and_counted(sidecar: Sidecar, tmp_path: Path) -> None:
    """A copy that another sidecar could use."""
    remember(sidecar, "Worth keeping.")
    target = tmp_path / "copy.db"
    answer = sidecar.back_up(pb.BackUpRequest(path=str(target)))
    assert answer.size_bytes == target.stat().st_size > 0
    assert answer.memory_count == 1
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_backup_names_a_bad_path(sidecar: Sidecar, tmp_path: Path) -> None:
    """Relative, taken, in no folder, missing."""
    taken = tmp_path / "taken"
    taken.write_text("mine")
    for path in ("", "relative.db", str(taken), str(tmp_path / "nowhere" / "copy.db"), "/tmp/with\0null"):
        with pytest.raises(InvalidInputError) as caught:
            sidecar.back_up(pb.BackUpRequest(path=path))
        assert caught.value.metadata["field"] == "path"
    assert taken.read_text() == "mine"


def test_integrity_of_a_sound_store(sidecar: Sidecar) -> None:
    """Index and database agree."""
    for number in range(3):
        remember(sidecar, f"Vector {number}.")
    wait_until_embedded(sidecar)
    found = sidecar.check_integrity(pb.CheckIntegrityRequest())
    assert list(found.faults) == []
    assert (found.stored_vectors, found.indexed_vectors) == (3, 3)
    assert sidecar.get_status(admin.GetStatusRequest()).index.size == 3
