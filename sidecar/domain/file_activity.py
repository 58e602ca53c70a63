"""What sessions did with files: actions, kinds of files, and the files touched last. Opens no file and no folder."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sidecar.domain.text import normalise
from sidecar.errors import InvalidInputError

MAX_PATH_CHARACTERS: Final = 4_096
MAX_FILE_METADATA_BYTES: Final = 4 * 1024
DEFAULT_RECENT_FILES: Final = 20
MAX_RECENT_FILES: Final = 1_000
DEFAULT_RECENT_DAYS: Final = 14
MAX_RECENT_DAYS: Final = 365

_WINDOWS_START: Final = re.compile(r"[A-Za-z]:[\\/]|\\\\")

# A kind of file, the endings that say so, without the dot, and the whole names in lower case.
_KINDS: Final = (
    ("python", "py pyi pyw", ""),
    ("notebook", "ipynb", ""),
    ("javascript", "js jsx mjs cjs", ""),
    ("typescript", "ts tsx mts cts", ""),
    ("go", "go", "go.mod go.sum go.work"),
    ("rust", "rs", ""),
    ("java", "java", ""),
    ("kotlin", "kt kts", ""),
    ("scala", "scala sc", ""),
    ("swift", "swift", ""),
    ("c", "c h", ""),
    ("cpp", "cc cpp cxx hh hpp hxx", ""),
    ("csharp", "cs csx", ""),
    ("ruby", "rb rake gemspec", "gemfile rakefile"),
    ("php", "php", ""),
    ("elixir", "ex exs", ""),
    ("haskell", "hs", ""),
    ("lua", "lua", ""),
    ("r", "r rmd", ""),
    ("dart", "dart", ""),
    ("shell", "sh bash zsh fish ps1 bat cmd", ".bashrc .zshrc .profile"),
    ("sql", "sql", ""),
    ("protobuf", "proto", ""),
    ("graphql", "graphql gql", ""),
    ("html", "html htm xhtml", ""),
    ("css", "css scss sass less", ""),
    ("vue", "vue", ""),
    ("svelte", "svelte", ""),
    ("markdown", "md mdx markdown", ""),
    ("text", "txt rst adoc", "license notice readme changelog"),
    ("json", "json jsonl json5 jsonc", ""),
    ("yaml", "yaml yml", ""),
    ("toml", "toml", "cargo.lock uv.lock poetry.lock"),
    ("xml", "xml xsd svg", ""),
    ("ini", "ini cfg conf properties", ".editorconfig .gitconfig"),
    ("environment", "env", ".env"),
    ("ignore_rules", "", ".gitignore .dockerignore .npmignore .cursorignore"),
    ("terraform", "tf tfvars hcl", ""),
    ("docker", "dockerfile", "dockerfile containerfile"),
    ("make", "mk", "makefile gnumakefile"),
    ("cmake", "cmake", "cmakelists.txt"),
    ("csv", "csv tsv", ""),
    ("image", "png jpg jpeg gif webp ico bmp", ""),
    ("pdf", "pdf", ""),
)
_KIND_BY_ENDING: Final = {ending: kind for kind, endings, _ in _KINDS for ending in endings.split()}
_KIND_BY_NAME: Final = {name: kind for kind, _, names in _KINDS for name in names.split()}


class FileAction(StrEnum):
    """What was done with a file."""

    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    MULTIEDIT = "multiedit"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A session did something with a file.

    Attributes:
        path: As `kept_path` returns it.
        at: UTC.
        project: Empty for none.
    """

    path: str
    action: FileAction
    at: datetime
    session: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class RecentFile:
    """One file and what was done with it. `count` is how often within the days asked for."""

    path: str
    last_action: FileAction
    last_at: datetime
    count: int

    @property
    def file_type(self) -> str:
        """See `guess_file_type`."""
        return guess_file_type(self.path)


@dataclass(frozen=True, slots=True)
class RecentFilesQuery:
    """Which files are listed: of one project, or of all if it is empty.

    Raises:
        InvalidInputError: If `limit` is not 1 to 1000 or `days` not 1 to 365.
    """

    project: str = ""
    limit: int = DEFAULT_RECENT_FILES
    days: int = DEFAULT_RECENT_DAYS

    def __post_init__(self) -> None:
        for name, value, most in (("limit", self.limit, MAX_RECENT_FILES), ("days", self.days, MAX_RECENT_DAYS)):
            if not 1 <= value <= most:
                raise InvalidInputError(name, value, f"a number from 1 to {most}")


def parse_file_action(text: str) -> FileAction:
    """Return the action of this name.

    Raises:
        InvalidInputError: Lists the valid names.
    """
    try:
        return FileAction(text)
    except ValueError:
        raise InvalidInputError("action", text, f"one of {', '.join(FileAction)}") from None


def guess_file_type(path: str) -> str:
    """Return the kind of a file by its name, such as `python`; empty if unknown."""
    name = re.split(r"[\\/]", path)[-1].lower()
    if name in _KIND_BY_NAME:
        return _KIND_BY_NAME[name]
    stem, dot, ending = name.rpartition(".")
    if dot and stem and ending in _KIND_BY_ENDING:
        return _KIND_BY_ENDING[ending]
    # Such as `Dockerfile.dev`, `.env.local` and `README`.
    first = name.lstrip(".").split(".")[0]
    return _KIND_BY_NAME.get(first) or _KIND_BY_NAME.get(f".{first}", "")


def kept_path(path: str, *, project_root: str) -> str:
    """Return the path as it is kept: relative to the project where it lies below it, with `/` between its parts.

    Works on the text alone: `.` and `..` are resolved by their letters, and links are not followed.

    Args:
        path: As a client names it, of Windows or any other system.
        project_root: Empty if not known.

    Raises:
        InvalidInputError: If it is blank or too long.
    """
    clean = normalise(path)
    if not clean or len(clean) > MAX_PATH_CHARACTERS:
        raise InvalidInputError("path", path, f"1 to {MAX_PATH_CHARACTERS} characters that are not all blank")
    anchor, parts = _split(clean)
    root_anchor, root_parts = _split(normalise(project_root))
    depth = len(root_parts)
    if (
        anchor
        and _folded(anchor, [root_anchor, *root_parts]) == _folded(anchor, [anchor, *parts[:depth]])
        and parts[depth:]
    ):
        return "/".join(parts[depth:])
    return anchor + "/".join(parts)


def recent_files(events: Iterable[FileEvent], query: RecentFilesQuery, *, now: datetime) -> tuple[RecentFile, ...]:
    """Return the files touched last, the latest first, equal ones by path; of events at one time the last counts."""
    since = now - timedelta(days=query.days)
    found: dict[str, RecentFile] = {}
    for event in events:
        if event.at < since or (query.project and event.project != query.project):
            continue
        known = found.get(event.path)
        if known is None:
            found[event.path] = RecentFile(event.path, event.action, event.at, 1)
        elif event.at >= known.last_at:
            found[event.path] = RecentFile(event.path, event.action, event.at, known.count + 1)
        else:
            found[event.path] = RecentFile(event.path, known.last_action, known.last_at, known.count + 1)
    ordered = sorted(found.values(), key=lambda file: (-file.last_at.timestamp(), file.path))
    return tuple(ordered[: query.limit])


def _split(path: str) -> tuple[str, list[str]]:
    """Return where a path starts, empty for a relative one, and its parts without `.` and `..`."""
    anchor = "/" if path.startswith("/") else ""
    if found := _WINDOWS_START.match(path):
        path = path.replace("\\", "/")
        anchor = "//" if found[0] == "\\\\" else path[:3]
        path = path[len(anchor) :]
    parts: list[str] = []
    for part in path.split("/"):
        if part != "..":
            parts += [part] if part not in {"", "."} else []
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not anchor:
            parts.append(part)
    return anchor, parts


def _folded(anchor: str, parts: list[str]) -> list[str]:
    """Return the parts as they are compared: Windows tells no capitals from small letters."""
    return parts if anchor == "/" else [part.casefold() for part in parts]
