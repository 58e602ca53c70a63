"""No file of the repository holds what belongs to one machine, or is left for later."""

import re
from typing import Final

import pytest

from tests.architecture.sources import ROOT, tracked_files

# The brackets keep this file from finding itself.
_LEFT_FOR_LATER: Final = re.compile(r"\b([T]ODO|[F]IXME|[X]XX)\b")
_MACHINE_PATH: Final = re.compile(
    r"(?<![\w./~-])/(?:[r]oot|[w]ork|private/[t]mp|(?:home|Users)/(?!(?:dev|alice|user|you)/)\w+)/"
)
_REGISTRY_HOST: Final = re.compile(
    r"\b(?:[p]ypi\.org|[p]ythonhosted\.org|registry\.[n]pmjs\.org|[n]pmjs\.com|deb\.[d]ebian\.org"
    r"|download\.[p]ytorch\.org|proxy\.[g]olang\.org|[c]rates\.io)\b"
)
_BINARY: Final = frozenset({".onnx", ".png", ".gif", ".gz", ".ico", ".woff2", ".faiss", ".bin"})
# Recorded client sessions and data files hold words that are not ours; tool markers in them are no plans.
# Files of others, taken as they are.
_VENDORED: Final = "sidecar/web/static/vendor"
_DATA: Final = frozenset({".jsonl", ".json", ".lock", ".txt", ".csv"})


def _found(pattern: re.Pattern[str], *, data_too: bool) -> list[str]:
    """Return `file:line: text` for each line that the pattern matches."""
    return [
        f"{path}:{number}: {match.group(0)}"
        for path in tracked_files()
        if path.suffix not in _BINARY and not path.is_relative_to(_VENDORED) and (data_too or path.suffix not in _DATA)
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if (match := pattern.search(line))
    ]


def test_nothing_is_left_for_later() -> None:
    """What is not done is an issue with a number, not a note in the code."""
    found = _found(_LEFT_FOR_LATER, data_too=False)
    assert not found, "\n".join(found)


def test_no_path_of_a_machine() -> None:
    """A path that exists on one machine only fails on every other; recordings name made-up folders."""
    found = _found(_MACHINE_PATH, data_too=True)
    assert not found, "\n".join(found)


def test_no_registry_host() -> None:
    """Where packages come from is the user's choice: mirrors and offline folders must work unchanged."""
    found = _found(_REGISTRY_HOST, data_too=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (_LEFT_FOR_LATER, "# T-ODO: later"),
        (_MACHINE_PATH, 'open("/-work/main/x")'),
        (_MACHINE_PATH, "cd /-root/.venv"),
        (_MACHINE_PATH, "/-home/jane/project"),
        (_REGISTRY_HOST, "https://p-ypi.org/simple"),
    ],
)
def test_pattern_finds_what_it_is_for(pattern: re.Pattern[str], text: str) -> None:
    """A pattern that matches nothing anywhere would go unnoticed."""
    assert pattern.search(text.replace("-", ""))


@pytest.mark.parametrize("text", ["src/wo-rk/item.py", "./ro-ot/x", "/home/dev/shop/app.py", "/homework/", "~/wo-rk/x"])
def test_made_up_paths_are_allowed(text: str) -> None:
    """Tests and recordings need paths that belong to nobody."""
    assert _MACHINE_PATH.search(text.replace("-", "")) is None
