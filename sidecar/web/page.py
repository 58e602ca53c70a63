"""What a page is, and what its views get and give."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from sidecar.domain.memory import Caller
from sidecar.errors import InvalidInputError
from sidecar.web.access import Session
from sidecar.web.rendering import Site
from sidecar.web.services import Services

CLIENT: Final = "dashboard"
"""Name of the dashboard as a caller, wherever an action is recorded."""

_MAX_FIELDS: Final = 100


@dataclass(frozen=True)
class Visit:
    """One request for a page, by somebody who may."""

    request: Request
    session: Session
    site: Site
    services: Services
    owner: str
    page: "Page"

    @property
    def caller(self) -> Caller:
        """Who calls, for use cases."""
        return Caller(owner=self.owner, client=CLIENT)

    @property
    def is_partial(self) -> bool:
        """Tell whether a part of a page is asked for, by htmx, rather than the page."""
        return self.request.headers.get("hx-request") == "true"

    def query(self, name: str, default: str = "") -> str:
        """Return a value of the query."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int) -> int:
        """Return a whole number of the query.

        Raises:
            InvalidInputError: It is no such number.
        """
        text = self.query(name)
        try:
            return int(text) if text else default
        except ValueError as error:
            raise InvalidInputError(name, text, "a whole number") from error

    def segment(self, name: str) -> str:
        """Return the part of the path that a route names, such as `{memory_id}`."""
        return str(self.request.path_params[name])

    async def form(self) -> Mapping[str, str]:
        """Return the fields of the form that was sent; of a field that is there twice, the last.

        Raises:
            InvalidInputError: It is no form, or too large for one.
        """
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise InvalidInputError("content-type", kind, "application/x-www-form-urlencoded")
        try:
            text = (await self.request.body()).decode("utf-8")
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"))
        except ValueError as error:
            raise InvalidInputError("form", type(error).__name__, f"at most {_MAX_FIELDS} fields of text") from error

    def show(
        self,
        template: str,
        values: Mapping[str, object] | None = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """Return a template with these values, and with `page`, `session`, `visit` and what `Site` gives to all."""
        context = {"page": self.page, "session": self.session, "visit": self, **(values or {})}
        return HTMLResponse(self.site.render(template, context), status_code=status, headers=headers)

    def data(self, content: Mapping[str, object]) -> JSONResponse:
        """Return data for a script of ours."""
        return JSONResponse(content)


View: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One address of a page.

    Attributes:
        path: Below the page's own; empty for the page itself. May name segments, as in `{memory_id}/history`.
        view: Answers.
        is_action: It changes something: only POST reaches it, with the session's token. All others take GET only.
    """

    path: str
    view: View
    is_action: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One entry of the navigation.

    Attributes:
        name: Of its module and of its folder of templates.
        title: As people read it.
        path: Below the dashboard's prefix; empty for the first page.
        order: Place in the navigation.
        icon: The `d` of an SVG path in a square of 16, drawn as a line.
        routes: All addresses.
    """

    name: str
    title: str
    path: str
    order: int
    icon: str
    routes: Sequence[PageRoute] = field(default_factory=tuple)
