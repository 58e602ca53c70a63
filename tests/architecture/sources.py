"""What the architecture tests look at: the files that are, or are about to be, in the repository."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PRODUCT: Final = ("sidecar", "client_plugins")
_GENERATED: Final = Path("sidecar/api/v1")


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of ours.

    Attributes:
        path: Relative to the project.
    """

    path: Path
    text: str
    tree: ast.Module

    @property
    def line_count(self) -> int:
        """Lines, blank ones and comments included."""
        return self.text.count("\n")


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return every file that git tracks or would add, relative to the project."""
    git = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    outcome = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        pytest.skip(f"this is no git checkout: {outcome.stderr.strip()}")
    # A tracked file may have been deleted a moment ago, and is then still listed.
    return tuple(sorted(Path(name) for name in outcome.stdout.split("\0") if name and (ROOT / name).is_file()))


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """Return our modules in these top-level folders; generated ones are left out."""
    return tuple(_parsed(folders))


def _parsed(folders: tuple[str, ...]) -> Iterator[Module]:
    """Read and parse one module after the other."""
    for path in tracked_files():
        if path.suffix == ".py" and path.parts[0] in folders and not path.is_relative_to(_GENERATED):
            text = (ROOT / path).read_text(encoding="utf-8")
            yield Module(path, text, ast.parse(text, filename=str(path)))
