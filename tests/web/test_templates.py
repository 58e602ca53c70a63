"""Templates keep to the content security policy, and escape everything."""

import re
from pathlib import Path

import pytest

from sidecar.web.page import Page
from sidecar.web.pages import all_pages
from sidecar.web.rendering import STATIC_FOLDER, Site, ago, count, percent, size

TEMPLATES = Path(STATIC_FOLDER).with_name("templates")
FORBIDDEN = {
    "a script within the page": r"<script(?![^>]*\bsrc=)",
    "a style within the page": r"<style|\sstyle\s*=",
    "a handler within the page": r"\son[a-z]+\s*=|hx-on",
    "code in an attribute": r"javascript:|[\"']js:",
    "an end of escaping": r"\|\s*safe\b|\bautoescape\b|\bMarkup\(",
    "something from elsewhere": r"(?:src|href)=[\"'](?:https?:)?//",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_template_holds(what: str) -> None:
    """The browser would refuse it, or an attacker would use it."""
    pattern = re.compile(FORBIDDEN[what], re.IGNORECASE)
    found = [
        f"{path.relative_to(TEMPLATES)}: {match.group(0)}"
        for path in TEMPLATES.rglob("*.html")
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_own_scripts_write_no_markup() -> None:
    """Text of memories goes into the page by templates alone."""
    pattern = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function")
    assert [path.name for path in STATIC_FOLDER.glob("*.js") if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_pages_have_names_paths_and_places_of_their_own() -> None:
    """Two engineers who add pages at once must not meet at one address."""
    pages = all_pages()
    for values in ([page.name for page in pages], [page.path for page in pages], [page.order for page in pages]):
        assert len(set(values)) == len(values)
    assert pages[0].name
    assert {page.name for page in pages} >= {"overview"}


def test_addresses_are_made_of_parts() -> None:
    """Names that others chose are escaped, and what is empty is left out."""
    site = Site([Page("overview", "O", "", 1, ""), Page("memories", "M", "memories", 2, "")], prefix="/p")
    assert site.url("overview") == "/p/"
    assert site.url("overview", "figures", days=7) == "/p/figures?days=7"
    assert (
        site.url("memories", "mem_1", query="a&b=<c>", kind="", page=None) == "/p/memories/mem_1?query=a%26b%3D%3Cc%3E"
    )
    assert (site.has_page("memories"), site.has_page("graph")) == (True, False)


def test_figures_are_told_as_people_read_them() -> None:
    """Never zero for nothing, and small shares with a decimal."""
    assert [percent(value) for value in (None, 0.0, 0.004, 0.05, 0.0512, 0.4567, 1.0)] == [
        "–",
        "0 %",
        "0.4 %",
        "5 %",
        "5.1 %",
        "46 %",
        "100 %",
    ]
    assert [count(value) for value in (None, 0, 1234567)] == ["–", "0", "1\u202f234\u202f567"]
    assert [size(value) for value in (999, 1500, 2_500_000, 3_000_000_000)] == ["999 B", "1.5 kB", "2.5 MB", "3.0 GB"]
    assert ago(None) == "–"
