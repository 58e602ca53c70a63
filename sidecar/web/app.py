"""Puts the pages together: who is let in, which view answers, and what is said to those who are not."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from sidecar.errors import SidecarError
from sidecar.web.access import LINK_LIFE_S, SESSION_LIFE_S, Access, Session
from sidecar.web.failures import failure
from sidecar.web.guard import Guard
from sidecar.web.page import Page, PageRoute, Visit
from sidecar.web.pages import all_pages
from sidecar.web.rendering import STATIC_FOLDER, Site
from sidecar.web.services import Services

CSRF_HEADER: Final = "x-csrf-token"
LIVE_HEADER: Final = "sidecar-live"
"""On what a page asks by itself: `unattended` if nobody touched the page since it last did."""

LINK_SEGMENT: Final = "open"
_UNATTENDED: Final = "unattended"


class Dashboard:
    """One dashboard as an ASGI application, and the links to it."""

    def __init__(
        self,
        services: Services,
        *,
        owner: str,
        port: int,
        access: Access | None = None,
        pages: Sequence[Page] | None = None,
    ) -> None:
        """Put the pages together.

        Args:
            services: What they show.
            owner: Whose memories.
            port: Of 127.0.0.1, where it is served.
            access: Who may look; without one, nobody yet.
            pages: What there is; without them, all that `sidecar.web.pages` holds.
        """
        self._services = services
        self._owner = owner
        self._port = port
        self._access = access or Access()
        # Cookies are sent to every port of a host, but only below their path. So a page of some other server on this
        # machine, which cannot know this path, never gets ours.
        self.site = Site(all_pages() if pages is None else pages, prefix=f"/{secrets.token_hex(6)}")
        self._on_use: Callable[[], None] = _nothing
        self._files = {path.relative_to(STATIC_FOLDER).as_posix(): path for path in STATIC_FOLDER.rglob("*.*")}
        below = Router(self._routes(), redirect_slashes=False, default=self._nothing_here)
        router = Router([Mount(self.site.prefix, below)], redirect_slashes=False, default=self._nothing_here)
        self.app: ASGIApp = Guard(router, port=port, link_path=f"{self.site.prefix}/{LINK_SEGMENT}")

    @property
    def cookie_name(self) -> str:
        """One for each port, so that two sidecars do not log each other's people out."""
        return f"sidecar-{self._port}"

    def on_use(self, note: Callable[[], None]) -> None:
        """Have `note` called whenever a person does something here; what a page asks by itself does not count."""
        self._on_use = note

    def new_link(self) -> tuple[str, float]:
        """Return an address that lets one browser in, once, and for how many seconds."""
        url = f"http://127.0.0.1:{self._port}{self.site.prefix}/{LINK_SEGMENT}?token={self._access.new_link()}"
        return url, LINK_LIFE_S

    def _routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route(f"/{LINK_SEGMENT}", self._follow, methods=["GET"]),
            Route("/static/{name:path}", self._file, methods=["GET"]),
        ]
        for page in self.site.pages:
            for route in page.routes:
                path = "/" + "/".join(part for part in (page.path, route.path) if part)
                methods = ["POST"] if route.is_action else ["GET"]
                routes.append(Route(path, self._endpoint(page, route), methods=methods))
        return routes

    async def _follow(self, request: Request) -> Response:
        """Let in whoever comes with a link. A page, not a redirect, leads on: it makes the next request our own.

        After a redirect from another site, or from a program in a browser, a strict cookie would not be sent.
        """
        session = self._access.follow(request.query_params.get("token", ""))
        if session is None:
            return self._refused(HTTPStatus.FORBIDDEN, "This link was used before, or is too old.")
        self._on_use()
        first = self.site.url(self.site.pages[0].name)
        response = HTMLResponse(self.site.render("opened.html", {"first": first}))
        response.set_cookie(
            self.cookie_name,
            session.key,
            max_age=int(SESSION_LIFE_S),
            path=f"{self.site.prefix}/",
            httponly=True,
            samesite="strict",
        )
        return response

    def _endpoint(self, page: Page, route: PageRoute) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = self._access.session(request.cookies.get(self.cookie_name, ""))
            if session is None:
                return self._refused(HTTPStatus.UNAUTHORIZED, "This session has ended, or never began.")
            if route.is_action and not session.is_confirmed_by(request.headers.get(CSRF_HEADER, "")):
                return self._refused(HTTPStatus.FORBIDDEN, "The request did not come from a form of this session.")
            if request.headers.get(LIVE_HEADER) != _UNATTENDED:
                self._on_use()
            return await self._view(page, route, request, session)

        return answer

    async def _view(self, page: Page, route: PageRoute, request: Request, session: Session) -> Response:
        visit = Visit(request, session, self.site, self._services, self._owner, page)
        try:
            return await route.view(visit)
        except SidecarError as error:
            return failure(visit, error)

    async def _file(self, request: Request) -> Response:
        """Give a script or style; they tell nothing and are let out without a session, for the pages of the refused."""
        path = self._files.get(request.path_params["name"])
        return self._missing() if path is None else FileResponse(path)

    async def _nothing_here(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._missing()(scope, receive, send)

    def _missing(self) -> HTMLResponse:
        return self._refused(HTTPStatus.NOT_FOUND, "There is nothing at this address.")

    def _refused(self, status: HTTPStatus, reason: str) -> HTMLResponse:
        """Return a page for somebody who is not known; it names nothing of what is stored."""
        return HTMLResponse(self.site.render("refused.html", {"reason": reason}), status_code=int(status))


def _nothing() -> None:
    """Nobody wants to know."""
