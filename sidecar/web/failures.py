"""Tells of errors on a page: those of ours in their own words, at the form that caused them."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.responses import HTMLResponse

from sidecar import errors
from sidecar.web.page import Visit

# The class itself, or else its nearest base, decides.
_STATUSES: Final[Mapping[type[errors.SidecarError], HTTPStatus]] = {
    errors.SidecarError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.InvalidInputError: HTTPStatus.BAD_REQUEST,
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.StateConflictError: HTTPStatus.CONFLICT,
    errors.UnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.TooManyRequestsError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.StorageFullError: HTTPStatus.INSUFFICIENT_STORAGE,
}
# htmx tells which element asked; an action's form has a place for its errors, named after it.
_FORM: Final = re.compile(r"form#([A-Za-z0-9_-]+)")


def status_of(error: errors.SidecarError) -> HTTPStatus:
    """Return the HTTP status of an error."""
    return next(_STATUSES[cls] for cls in type(error).__mro__ if cls in _STATUSES)


def failure(visit: Visit, error: errors.SidecarError) -> HTMLResponse:
    """Return how an error is told: at its form, as a notice, or as a page."""
    status = int(status_of(error))
    if not visit.is_partial:
        return visit.show("failure.html", {"message": error.message, "code": status}, status=status)
    form = _FORM.fullmatch(visit.request.headers.get("hx-source", ""))
    if form is not None and visit.request.method == "POST":
        headers = {"HX-Retarget": f"#{form[1]}-failure", "HX-Reswap": "innerHTML"}
        return visit.show("failure_at_form.html", {"message": error.message}, status=status, headers=headers)
    headers = {"HX-Retarget": "#toasts", "HX-Reswap": "beforeend"}
    return visit.show("failure_notice.html", {"message": error.message}, status=status, headers=headers)
