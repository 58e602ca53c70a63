"""Finds the files that a memory names, in text and metadata, and tells whether a file is one of them. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from sidecar.domain.file_activity import guess_file_type

FILES_KEY: Final = "files"
"""Under this name `sidecar/remember` notes the file that a memory is about."""

MAX_MENTIONS: Final = 50

_WORD: Final = re.compile(r"[\w./\\@+~\-]+")
_ENDING: Final = re.compile(r"[\w-]\.[A-Za-z]\w{0,9}$")
_MOST_CHARACTERS: Final = 1_024
# What names a file in metadata, as agents, importers and scripts write it.
_KEYS: Final = frozenset({"path", "paths", FILES_KEY, "file", "file_path", "file_paths", "filename", "source_file"})
# Names that a project has many of: only with a folder before them, or at the root, do they tell one file.
_EVERYWHERE: Final = frozenset(
    {
        *("__init__.py", "__main__.py", "conftest.py", "setup.py", "main.py", "app.py", "utils.py", "models.py"),
        *("index.js", "index.ts", "index.tsx", "index.jsx", "index.html", "main.js", "main.ts", "package.json"),
        *("mod.rs", "lib.rs", "main.rs", "main.go", "cargo.toml", "makefile", "dockerfile", "cmakelists.txt"),
        *("readme", "readme.md", "license", "changelog.md", "pyproject.toml", "tsconfig.json", ".gitignore", ".env"),
    }
)


def mentions_of(content: str, metadata: Mapping[str, object]) -> tuple[str, ...]:
    """Return the paths and file names in a memory, each once, `/` between their parts; those of the metadata first."""
    noted = (_tidy(path) for path in _noted(metadata))
    written = (_tidy(word) for word in _WORD.findall(content) if _is_path(word))
    found = dict.fromkeys(path for path in (*noted, *written) if path)
    return tuple(found)[:MAX_MENTIONS]


def last_part(path: str) -> str:
    """Return the name of a file without its folders, as names are compared."""
    return path.rpartition("/")[2].casefold()


def is_named(mention: str, *, relative: str, absolute: str) -> bool:
    """Tell whether a mention names this file.

    Args:
        mention: As `mentions_of` returns it.
        relative: The file's path below its project; empty if it lies in none.
        absolute: Its whole path, `/` between its parts.
    """
    named, own, whole = mention.casefold().lstrip("/"), relative.casefold(), absolute.casefold()
    if "/" not in named:
        return named == own or (last_part(whole) == named and named not in _EVERYWHERE)
    # Either may begin further up: `auth/login.py` for `src/auth/login.py`, or another checkout's whole path.
    return f"/{whole}".endswith(f"/{named}") or bool(own and "/" in own and named.endswith(f"/{own}"))


def _noted(metadata: Mapping[str, object]) -> Iterable[str]:
    for key, value in metadata.items():
        if key.casefold() in _KEYS:
            yield from _texts(value)
        elif isinstance(value, Mapping):
            for inner, below in value.items():
                if inner.casefold() in _KEYS:
                    yield from _texts(below)


def _texts(value: object) -> Iterable[str]:
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, str):
            yield each


def _is_path(word: str) -> bool:
    stem = word.rstrip(".")
    # What begins with `//` is the rest of an address.
    if len(stem) > _MOST_CHARACTERS or stem.startswith(("//", "@")) or stem.endswith(("/", "\\")):
        return False
    name = re.split(r"[\\/]", stem)[-1]
    is_known = bool(guess_file_type(name))
    has_folder = name != stem.strip("/\\")
    # With a folder before it a name may do without an ending (`hack/Makefile`), or have one that says nothing.
    return (is_known or bool(_ENDING.search(name))) if has_folder else is_known and "." in name.strip(".")


def _tidy(path: str) -> str:
    tidy = path.strip().rstrip(".").replace("\\", "/")[:_MOST_CHARACTERS].removeprefix("file://")
    while tidy.startswith("./"):
        tidy = tidy[2:]
    return tidy.removeprefix("~/").rstrip("/")
