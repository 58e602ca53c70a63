"""The project of a working directory, found by reading; worktrees, submodules and hostile folders included."""

import os
from pathlib import Path

import pytest

from client_plugins.kit.project import CachedProjects, project_name
from sidecar.domain.namespace import project_namespace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with code below it."""
    folder = tmp_path / "home" / "dev"
    folder.mkdir(parents=True)
    return folder


def _repository(folder: Path) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_all_parts_of_a_repository_are_one_project(home: Path) -> None:
    """Main work tree, a folder in it and two linked worktrees share their memories."""
    shop = _repository(home / "code" / "shop")
    (shop / "src" / "deep").mkdir(parents=True)
    for name in ("shop-fix", "other"):
        tree = home / "trees" / name
        tree.mkdir(parents=True)
        (tree / ".git").write_text(f"gitdir: {shop}/.git/worktrees/{name}\n")
    found = [shop, shop / "src" / "deep", home / "trees" / "shop-fix", home / "trees" / "other"]
    assert {project_name(str(folder), home=home) for folder in found} == {"shop"}


@pytest.mark.parametrize(
    ("git_folder", "expected"),
    [
        ("/srv/git/shop.git/worktrees/x", "shop"),
        ("/srv/shop/.bare/worktrees/x", "shop"),
        ("/srv/shop/.git/modules/lib", "tree"),
        ("../../.git/modules/lib", "tree"),
        ("C:/Users/dev/shop/.git/worktrees/x", "shop"),
        ("C:\\Users\\dev\\shop\\.git\\worktrees\\x", "shop"),
    ],
)
def test_git_files_are_read_as_text(home: Path, git_folder: str, expected: str) -> None:
    """Bare clones give their name to their worktrees; a submodule is a project of its own."""
    tree = home / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git_folder}\n")
    assert project_name(str(tree), home=home) == expected


def test_home_and_the_root_of_the_disk_are_no_project(home: Path) -> None:
    """Otherwise everything would land in one project named after the user."""
    assert project_name(str(home), home=home) == ""
    assert project_name("/", home=home) == ""
    _repository(home)
    (home / "notes").mkdir()
    assert project_name(str(home), home=home) == ""
    assert project_name(str(home / "notes"), home=home) == "notes"


def test_a_folder_outside_of_repositories_goes_by_its_name(home: Path) -> None:
    """So does one that is not on this machine: deleted, or a container's."""
    (home / "notes").mkdir()
    assert project_name(str(home / "notes"), home=home) == "notes"
    assert project_name("/nowhere/on/earth/shop", home=home) == "shop"
    assert project_name("C:\\Users\\dev\\shop", home=home) == "shop"
    assert project_name("\\\\server\\share\\shop", home=home) == "shop"


def test_a_link_leads_to_the_project_itself(home: Path) -> None:
    """A repository reached by two paths has one name."""
    shop = _repository(home / "shop")
    (home / "link").symlink_to(shop)
    assert project_name(str(home / "link"), home=home) == "shop"


@pytest.mark.parametrize("cwd", ["", "relative/path", "~", ".", "a\0b", "/" + "x" * 5_000])
def test_what_is_no_absolute_path_is_no_project(home: Path, cwd: str) -> None:
    """A guess would put memories where they do not belong."""
    assert project_name(cwd, home=home) == ""


def test_names_always_fit_a_namespace(home: Path) -> None:
    """Names with other letters stay apart from each other, and `..` is never one."""
    odd = ["my project", "проект", "事業", "...", "a:b*c", "x" * 300, "-", "\ud800"]
    names = [project_name(f"/nowhere/{name}", home=home) for name in odd]
    assert names[0] == "my-project"
    assert len(set(names)) == len(odd)
    for name in names:
        project_namespace(name)


def test_hostile_git_entries_change_nothing(home: Path, tmp_path: Path) -> None:
    """Nothing runs, nothing is followed, and the folder still goes by its name."""
    trap = home / "trap"
    trap.mkdir()
    git = trap / ".git"
    for content in (b"gitdir:", b"gitdir: a\nb", b"\xff\xfe", b"gitdir: " + b"x/" * 3_000, b"x" * 10**6):
        git.write_bytes(content)
        assert project_name(str(trap), home=home) == "trap"
    git.unlink()
    os.mkfifo(git)
    assert project_name(str(trap), home=home) == "trap"
    git.unlink()
    git.symlink_to(_repository(tmp_path / "elsewhere") / ".git")
    assert project_name(str(trap), home=home) == "trap"


def test_names_are_remembered_for_a_while(home: Path) -> None:
    """Each record carries its folder; asking the disk every time would be slow, never again would be stale."""
    now = [0.0]
    projects = CachedProjects(home=home, now=lambda: now[0])
    folder = home / "shop" / "src"
    folder.mkdir(parents=True)
    assert projects(str(folder)) == "src"
    _repository(home / "shop")
    assert projects(str(folder)) == "src"
    now[0] = 301.0
    assert projects(str(folder)) == "shop"
