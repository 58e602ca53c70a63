"""The ActivityService over real gRPC: what files sessions touched."""

from collections.abc import Iterator

import pytest

from sidecar.api.v1 import activity_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from sidecar.errors import ContentTooLargeError, InvalidInputError, InvalidNamespaceError
from tests.e2e.running import running_sidecar


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home"), embedder="none") as running:
        yield running


@pytest.fixture
def caller(request: pytest.FixtureRequest) -> CallContext:
    """A caller in a project of the test's own."""
    return CallContext(client="test", session="s", project=request.node.name.partition("[")[0])


def touch(
    sidecar: Sidecar,
    caller: CallContext,
    path: str,
    action: pb.FileAction.ValueType = pb.FILE_ACTION_READ,
    root: str = "",
) -> pb.AddFileActivityResponse:
    request = pb.AddFileActivityRequest(path=path, action=action, project_root=root, context=caller)
    return sidecar.add_file_activity(request)


def recent(sidecar: Sidecar, caller: CallContext, **fields: object) -> list[pb.RecentFile]:
    return list(sidecar.list_recent_files(pb.ListRecentFilesRequest(context=caller, **fields)).files)  # type: ignore[arg-type]


def test_recent_files_are_one_line_each_latest_first(sidecar: Sidecar, caller: CallContext) -> None:
    """With the last thing done and how often; paths are kept relative to the project."""
    first = touch(sidecar, caller, "/src/app/main.py", pb.FILE_ACTION_READ, root="/src/app")
    touch(sidecar, caller, "/src/app/Makefile", pb.FILE_ACTION_WRITE, root="/src/app")
    second = touch(sidecar, caller, "/src/app/./main.py", pb.FILE_ACTION_EDIT, root="/src/app")
    outside = touch(sidecar, caller, "/etc/unheard.of", pb.FILE_ACTION_DELETE, root="/src/app")
    assert (first.file_type, outside.file_type) == ("python", "")
    assert second.id > first.id
    files = recent(sidecar, caller)
    assert [(file.path, file.last_action, file.count, file.file_type) for file in files] == [
        ("/etc/unheard.of", pb.FILE_ACTION_DELETE, 1, ""),
        ("main.py", pb.FILE_ACTION_EDIT, 2, "python"),
        ("Makefile", pb.FILE_ACTION_WRITE, 1, "make"),
    ]
    assert all(file.HasField("last_time") for file in files)


def test_twenty_files_of_the_callers_project_by_default(sidecar: Sidecar, caller: CallContext) -> None:
    """Another project can be named; without any, all are listed."""
    for number in range(21):
        touch(sidecar, caller, f"file{number}.go", pb.FILE_ACTION_MULTIEDIT)
    other = CallContext(project="another-project")
    touch(sidecar, other, "other.rs")
    assert len(recent(sidecar, caller)) == 20
    assert len(recent(sidecar, caller, limit=21)) == 21
    assert [file.path for file in recent(sidecar, caller, limit=1)] == ["file20.go"]
    assert [file.path for file in recent(sidecar, caller, project="another-project")] == ["other.rs"]
    everywhere = {file.path for file in recent(sidecar, CallContext(client="test"), limit=1000)}
    assert {"other.rs", "file0.go"} <= everywhere


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("path", {"path": ""}),
        ("path", {"path": " \n"}),
        ("path", {"path": "x" * 4097}),
        ("action", {"action": 0}),
        ("action", {"action": 9}),
    ],
)
def test_add_names_the_bad_field(sidecar: Sidecar, caller: CallContext, field: str, change: dict[str, object]) -> None:
    """And notes nothing."""
    values = {"path": "a.py", "action": pb.FILE_ACTION_READ, "context": caller} | change
    with pytest.raises(InvalidInputError) as caught:
        sidecar.add_file_activity(pb.AddFileActivityRequest(**values))  # type: ignore[arg-type]
    assert caught.value.metadata["field"] == field
    assert not recent(sidecar, caller)


def test_metadata_is_bounded_and_projects_have_good_names(sidecar: Sidecar, caller: CallContext) -> None:
    """At most 4 KiB as JSON."""
    request = pb.AddFileActivityRequest(path="a.py", action=pb.FILE_ACTION_READ, context=caller)
    request.metadata.update({"lines": 3})
    assert sidecar.add_file_activity(request).id > 0
    request.metadata.update({"long": "x" * 4096})
    with pytest.raises(ContentTooLargeError) as caught:
        sidecar.add_file_activity(request)
    assert caught.value.metadata["field"] == "metadata"
    with pytest.raises(InvalidNamespaceError):
        touch(sidecar, CallContext(project="no/../good"), "a.py")


@pytest.mark.parametrize(
    ("field", "change"),
    [("limit", {"limit": 1001}), ("limit", {"limit": -1}), ("days", {"days": 366}), ("days", {"days": -1})],
)
def test_list_names_the_bad_field(sidecar: Sidecar, caller: CallContext, field: str, change: dict[str, int]) -> None:
    """What is out of range is refused, not cut."""
    with pytest.raises(InvalidInputError) as caught:
        recent(sidecar, caller, **change)
    assert caught.value.metadata["field"] == field
