"""Modules stay small enough to be read in one go, and are named for what they hold."""

import re
from statistics import median
from typing import Final

from tests.architecture.sources import PRODUCT, modules, tracked_files

MAX_MODULE_LINES: Final = 400
MAX_MEDIAN_LINES: Final = 150
_VAGUE: Final = re.compile(r"(^|_)(utils?|common|helpers?|misc|managers?)$")
# These may stand at the end of a longer name: `words_common` says what is common.
_FINE_AS_ENDING: Final = re.compile(r"._common$")


def _is_vague(stem: str) -> bool:
    """Tell whether a file or folder name says nothing of what is in it."""
    return _VAGUE.search(stem) is not None and _FINE_AS_ENDING.search(stem) is None


def test_no_module_is_too_long() -> None:
    """A module over 400 lines has more than one subject."""
    long = [f"{m.path}: {m.line_count} lines" for m in modules(*PRODUCT) if m.line_count > MAX_MODULE_LINES]
    assert not long, "split by subject: " + ", ".join(long)


def test_half_of_the_modules_are_short() -> None:
    """The typical module fits on a few screens; empty package files do not count."""
    sizes = [module.line_count for module in modules(*PRODUCT) if module.line_count > 1]
    assert median(sizes) <= MAX_MEDIAN_LINES


def test_no_file_is_named_for_nothing() -> None:
    """`utils` attracts everything that nobody thought about."""
    vague = [
        str(path)
        for path in tracked_files()
        if path.parts[0] in {*PRODUCT, "tests", "proto"} and any(map(_is_vague, (*path.parent.parts, path.stem)))
    ]
    assert not vague, f"name the subject or the job: {', '.join(vague)}"


def test_vague_names_are_told_from_good_ones() -> None:
    """The check itself knows which names it is against."""
    assert all(map(_is_vague, ("utils", "common", "helpers", "misc", "manager", "mcp_utils", "store_manager")))
    assert not any(map(_is_vague, ("common_words", "words_common", "managed", "ranking", "miscount")))
