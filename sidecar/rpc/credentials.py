"""Who calls, as far as the credentials say. The owner of every row comes from here and never from a request."""

import contextvars
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sidecar.errors import UnauthenticatedError

AUTHORIZATION: Final = "authorization"
LOCAL_OWNER: Final = "local"
"""Owner of all that is stored by the one user of a data folder."""

_SCHEME: Final = "Bearer "
_owner: contextvars.ContextVar[str] = contextvars.ContextVar("owner")


@dataclass(frozen=True)
class Credentials:
    """The one token of a data folder and the owner that it stands for."""

    token: str = field(repr=False)
    owner: str = LOCAL_OWNER

    def owner_of(self, metadata: Iterable[tuple[str, str | bytes]]) -> str:
        """Return whose call this is.

        Raises:
            UnauthenticatedError: It carries no token, several, or another one.
        """
        values = [value for key, value in metadata if key == AUTHORIZATION]
        expected = (_SCHEME + self.token).encode()
        given = values[0] if len(values) == 1 else b""
        # In constant time, or the token could be found character by character.
        if not hmac.compare_digest(given.encode() if isinstance(given, str) else given, expected):
            raise UnauthenticatedError
        return self.owner


def current_owner() -> str:
    """Return the owner of the call that is being answered.

    Raises:
        UnauthenticatedError: There is no call, or it was let through without a token.
    """
    try:
        return _owner.get()
    except LookupError as error:
        raise UnauthenticatedError from error


def set_current_owner(owner: str) -> None:
    """Say whose call the present task answers; for the interceptor and for tests of servicers."""
    _owner.set(owner)
