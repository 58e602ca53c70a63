"""Documents keep their form, and what they link to exists."""

import re
from typing import Final

from tests.architecture.sources import ROOT, tracked_files

_RECORD: Final = re.compile(r"(\d{4})-[a-z0-9-]+\.md")
_SECTIONS: Final = ("## Context", "## Options", "## Choice", "## Consequences")
_LINK: Final = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)")
_MAX_RECORD_LINES: Final = 60


def test_decision_records_are_numbered_without_gaps() -> None:
    """A number names one record for ever."""
    names = sorted(path.name for path in (ROOT / "docs/decisions").iterdir())
    numbers = [int(match.group(1)) for name in names if (match := _RECORD.fullmatch(name))]
    assert numbers == list(range(1, len(names) + 1)), names


def test_decision_records_have_their_four_parts() -> None:
    """Half a page: what was weighed, what was chosen, what follows."""
    for path in (ROOT / "docs/decisions").iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert [line for line in lines if line.startswith("## ")] == list(_SECTIONS), path.name
        assert len(lines) <= _MAX_RECORD_LINES, path.name


def test_links_between_documents_lead_somewhere() -> None:
    """A renamed document must not leave readers at a dead end."""
    dead = [
        f"{path}: {target}"
        for path in tracked_files()
        if path.suffix == ".md"
        for target in _LINK.findall((ROOT / path).read_text(encoding="utf-8"))
        if not (ROOT / path.parent / target).exists()
    ]
    assert not dead, "\n".join(dead)


def test_glossary_explains_the_words_it_uses() -> None:
    """A word in italics promises an entry."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    entries = {term.strip() for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE) for term in row.split(",")}
    promised = set(re.findall(r"(?<!\*)\*([a-z ]+)\*(?!\*)", text)) - {"italics"}
    missing = {word for word in promised if word not in entries and word.removesuffix("s") not in entries}
    assert not missing, missing
