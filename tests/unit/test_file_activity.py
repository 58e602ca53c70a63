"""File activity: paths by their letters alone, kinds by name, the latest action per file."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.domain.file_activity import (
    MAX_PATH_CHARACTERS,
    FileAction,
    FileEvent,
    RecentFilesQuery,
    guess_file_type,
    kept_path,
    parse_file_action,
    recent_files,
)
from sidecar.errors import InvalidInputError

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/srv/a/app/src/x.py", "/srv/a/app", "src/x.py"),
        ("/srv/a/app/src/x.py", "/srv/a/app/", "src/x.py"),
        ("/srv/a/app/./src//../x.py", "/srv/a/app", "x.py"),
        ("/srv/a/app/../secret", "/srv/a/app", "/srv/a/secret"),
        ("/srv/a/app-evil/x.py", "/srv/a/app", "/srv/a/app-evil/x.py"),
        ("/srv/a/app", "/srv/a/app", "/srv/a/app"),
        ("/srv/A/app/x.py", "/srv/a/app", "/srv/A/app/x.py"),
        ("src/x.py", "/srv/a/app", "src/x.py"),
        ("./src/../../x.py", "", "../x.py"),
        ("/../../etc/x", "", "/etc/x"),
        ("/x.py", "/", "x.py"),
        ("C:\\Work\\App\\src\\x.py", "c:\\work\\app", "src/x.py"),
        ("C:/Work/App/x.py", "C:\\Work\\App", "x.py"),
        ("C:\\..\\x.py", "D:\\", "C:/x.py"),
        ("\\\\server\\share\\x.py", "\\\\server\\share", "x.py"),
        ("/c/x.py", "C:\\c", "/c/x.py"),
        ("/a/b\\c.py", "/a", "b\\c.py"),
        ("  /a/x.py\n", "/a", "x.py"),
    ],
)
def test_paths_are_kept_relative_to_the_project(path: str, root: str, expected: str) -> None:
    """Compared part by part, so that a twin whose name starts alike, or a way out by `..`, is not taken for inside."""
    assert kept_path(path, project_root=root) == expected


_any_path = st.text(st.sampled_from("ab./\\:C \n"), min_size=1, max_size=30)


@given(_any_path, _any_path | st.just(""))
def test_any_path_is_kept_or_refused(path: str, root: str) -> None:
    """No text from a client fails in another way, and what is kept has no `..` behind a name."""
    if not path.strip():
        with pytest.raises(InvalidInputError):
            kept_path(path, project_root=root)
        return
    kept = kept_path(path, project_root=root)
    parts = kept.split("/")
    names = [n for n, part in enumerate(parts) if part not in {"..", ""}]
    assert ".." not in parts[min(names, default=len(parts)) :]
    assert parts[:2] != ["", ".."]


@pytest.mark.parametrize("path", ["", "  \n", "\0", "x" * (MAX_PATH_CHARACTERS + 1)])
def test_blank_and_endless_paths_are_refused(path: str) -> None:
    """1 to 4096 characters."""
    with pytest.raises(InvalidInputError):
        kept_path(path, project_root="")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("src/a.py", "python"),
        ("A.PY", "python"),
        ("x/Dockerfile", "docker"),
        ("Dockerfile.dev", "docker"),
        (".env", "environment"),
        (".env.local", "environment"),
        ("C:\\x\\main.rs", "rust"),
        ("Makefile", "make"),
        ("CMakeLists.txt", "cmake"),
        ("README", "text"),
        ("README.md", "markdown"),
        (".gitignore", "ignore_rules"),
        (".py", ""),
        ("binary", ""),
        ("a.unknown", ""),
        ("", ""),
        ("dir.py/", ""),
    ],
)
def test_kind_is_guessed_from_the_name(path: str, kind: str) -> None:
    """The whole name first, then its ending."""
    assert guess_file_type(path) == kind


def test_actions_are_five() -> None:
    """An unknown one is refused with the list."""
    assert [parse_file_action(name) for name in ("read", "write", "edit", "multiedit", "delete")] == list(FileAction)
    with pytest.raises(InvalidInputError, match="read, write, edit, multiedit, delete"):
        parse_file_action("rename")


_events = st.lists(
    st.builds(
        FileEvent,
        st.sampled_from(["a.py", "b.md", "c"]),
        st.sampled_from(list(FileAction)),
        st.integers(0, 20).map(lambda days: NOW - timedelta(days=days)),
        st.just("s"),
        st.sampled_from(["app", "other", ""]),
    ),
    max_size=30,
)


@given(_events, st.integers(1, 4), st.integers(1, 20), st.sampled_from(["app", ""]))
def test_recent_files_tell_last_action_and_count(events: list[FileEvent], limit: int, days: int, project: str) -> None:
    """One line a file, the latest first, counted within the window and the project only."""
    files = recent_files(events, RecentFilesQuery(project, limit, days), now=NOW)
    within = [e for e in events if e.at >= NOW - timedelta(days=days) and (not project or e.project == project)]
    counts = Counter(e.path for e in within)
    assert len(files) == min(limit, len(counts))
    assert [f.last_at for f in files] == sorted((f.last_at for f in files), reverse=True)
    for file in files:
        mine = [e for e in within if e.path == file.path]
        assert file.count == counts[file.path]
        assert file.last_at == max(e.at for e in mine)
        assert file.last_action == [e for e in mine if e.at == file.last_at][-1].action


@pytest.mark.parametrize("values", [{"limit": 0}, {"limit": 1001}, {"days": 0}, {"days": 366}])
def test_limits_are_checked(values: dict[str, int]) -> None:
    """1 to 1000 files, 1 to 365 days."""
    with pytest.raises(InvalidInputError):
        RecentFilesQuery(**values)  # type: ignore[arg-type]
