"""Makes HTML of templates. Everything is escaped, and a name that a template does not get is an error."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

if TYPE_CHECKING:
    from sidecar.web.page import Page

_TEMPLATES: Final = Path(__file__).with_name("templates")
STATIC_FOLDER: Final = Path(__file__).with_name("static")
_NOTHING: Final = "–"
_STEPS: Final = ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3600, "h"), (60, "min"))
_ALMOST_NOW_S: Final = 60.0


class Site:
    """All pages of one dashboard, the addresses below which they lie, and the templates they are made with."""

    def __init__(self, pages: Iterable["Page"], *, prefix: str) -> None:
        """Take the pages.

        Args:
            pages: In any order; the navigation goes by `Page.order`.
            prefix: Path below which everything lies, such as `/3f9a`.
        """
        self.pages: Sequence[Page] = tuple(sorted(pages, key=lambda page: page.order))
        self.prefix = prefix
        self._paths = {page.name: page.path for page in self.pages}
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(percent=percent, count=count, when=when, ago=ago, size=size)
        self._environment.globals.update(
            url=self.url,
            static=self.static,
            has_page=self.has_page,
            pages=self.pages,
            request_key=new_request_key,
        )

    def render(self, template: str, context: Mapping[str, object]) -> str:
        """Return a template's text, such as `overview/page.html`."""
        return self._environment.get_template(template).render(context)

    def has_page(self, name: str) -> bool:
        """Tell whether there is such a page, for links to pages of others."""
        return name in self._paths

    def url(self, page: str, /, *segments: str, **query: object) -> str:
        """Return the address of a page, or of what is below it.

        Args:
            page: Name of the page.
            segments: Of letters, digits and `_.~-` only, such as ids of ours; anything else goes into the query.
            query: Values that are None or empty are left out.
        """
        path = "/".join(part for part in (self._paths[page], *segments) if part)
        told = [(name, value) for name, value in query.items() if value not in (None, "")]
        return f"{self.prefix}/{path}" + (f"?{urlencode(told, doseq=True)}" if told else "")

    def static(self, name: str) -> str:
        """Return the address of a file in `static`."""
        return f"{self.prefix}/static/{name}"


def percent(value: float | None) -> str:
    """Return a share as people read it: with one decimal below ten percent, a dash for none."""
    if value is None:
        return _NOTHING
    share = value * 100
    return f"{share:.1f} %" if 0 < share < 10 and round(share, 1) != round(share) else f"{share:.0f} %"


def count(value: float | None) -> str:
    """Return a whole number in groups of three, parted by narrow spaces; a dash for none."""
    return _NOTHING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def when(moment: datetime | None) -> str:
    """Return a moment to the minute, UTC; a dash for none."""
    return _NOTHING if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def ago(moment: datetime | None) -> str:
    """Return how long ago a moment was, roughly; a dash for none."""
    if moment is None:
        return _NOTHING
    passed_s = (_now() - moment).total_seconds()
    if passed_s < _ALMOST_NOW_S:
        return "just now"
    length_s, unit = next((length_s, unit) for length_s, unit in _STEPS if passed_s >= length_s)
    return f"{passed_s // length_s:.0f} {unit} ago"


def size(byte_count: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "kB", "MB"):
        if byte_count < 1000:
            return f"{byte_count:.0f} {unit}" if unit == "B" else f"{byte_count:.1f} {unit}"
        byte_count /= 1000
    return f"{byte_count:.1f} GB"


def new_request_key() -> str:
    """Return a key for a form, so that sending it twice does it once."""
    return secrets.token_hex(16)


def _now() -> datetime:
    return datetime.now(UTC)
