"""Namespaces: `global`, `project:<name>`, and what a reader may ask for."""

import re
from dataclasses import dataclass
from typing import Final

from sidecar.errors import InvalidNamespaceError

GLOBAL: Final = "global"
EVERYTHING: Final = "*"
PROJECT_PREFIX: Final = "project:"

_PROJECT_NAME: Final = re.compile(r"[A-Za-z0-9._\-/]{1,200}")
_FORBIDDEN_PARTS: Final = frozenset({"", ".", ".."})


def parse_namespace(text: str) -> str:
    """Return the namespace if it may be written to.

    Raises:
        InvalidNamespaceError: If it is neither `global` nor `project:<name>` with a good name.
    """
    if text == GLOBAL:
        return text
    name = text.removeprefix(PROJECT_PREFIX)
    if name == text or not _PROJECT_NAME.fullmatch(name) or _FORBIDDEN_PARTS.intersection(name.split("/")):
        raise InvalidNamespaceError(text)
    return text


def project_namespace(project: str) -> str:
    """Return the namespace of a project name; `global` for an empty one."""
    return parse_namespace(f"{PROJECT_PREFIX}{project}") if project else GLOBAL


@dataclass(frozen=True, slots=True)
class NamespaceScope:
    """Which namespaces a read covers; `names` empty means every one."""

    names: tuple[str, ...]

    @property
    def covers_everything(self) -> bool:
        """Whether no namespace is left out."""
        return not self.names

    def covers(self, namespace: str) -> bool:
        """Tell whether a memory of this namespace may be returned."""
        return not self.names or namespace in self.names


def read_scope(asked: str, *, project: str) -> NamespaceScope:
    """Return what a read covers.

    Args:
        asked: `*` for all, a namespace for that one alone, empty for the caller's project and global.
        project: The caller's project; empty if it has none.
    """
    if asked == EVERYTHING:
        return NamespaceScope(())
    if asked:
        return NamespaceScope((parse_namespace(asked),))
    return NamespaceScope(tuple(dict.fromkeys((project_namespace(project), GLOBAL))))
