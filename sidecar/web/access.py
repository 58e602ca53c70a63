"""Who may look: links that work once, and the sessions they open. Kept in memory, so that a restart ends them all."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

LINK_LIFE_S: Final = 120.0
SESSION_LIFE_S: Final = 12 * 3600.0
_MAX_LINKS: Final = 16
_MAX_SESSIONS: Final = 16
_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Session:
    """One browser that followed a link.

    Attributes:
        key: Value of its cookie.
        csrf_token: What a change must carry besides, where no other site can read or set it.
        ends_at: On the monotonic clock.
    """

    key: str = field(repr=False)
    csrf_token: str = field(repr=False)
    ends_at: float

    def is_confirmed_by(self, token: str) -> bool:
        """Tell whether a request carries this session's token."""
        return hmac.compare_digest(token.encode(), self.csrf_token.encode())


class Access:
    """Hands out links, and knows the sessions. Secrets are looked up by their hash, so that timing tells nothing."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nobody let in; `clock` counts seconds and never goes back."""
        self._clock = clock
        self._links: dict[bytes, float] = {}
        self._sessions: dict[bytes, Session] = {}

    def new_link(self) -> str:
        """Return a token that opens one session, once, within two minutes."""
        now = self._clock()
        self._links = {digest: ends_at for digest, ends_at in self._links.items() if ends_at > now}
        while len(self._links) >= _MAX_LINKS:
            del self._links[next(iter(self._links))]
        token = secrets.token_urlsafe(_SECRET_BYTES)
        self._links[_digest(token)] = now + LINK_LIFE_S
        return token

    def follow(self, token: str) -> Session | None:
        """Return the session that a link opens; None if it was followed before, is too old, or never was one."""
        ends_at = self._links.pop(_digest(token), None)
        now = self._clock()
        if ends_at is None or ends_at <= now:
            return None
        while len(self._sessions) >= _MAX_SESSIONS:
            # The oldest goes, so that it is always possible to get in.
            del self._sessions[next(iter(self._sessions))]
        session = Session(
            secrets.token_urlsafe(_SECRET_BYTES), secrets.token_urlsafe(_SECRET_BYTES), now + SESSION_LIFE_S
        )
        self._sessions[_digest(session.key)] = session
        return session

    def session(self, key: str) -> Session | None:
        """Return the session with this cookie; None if there is none, or it has ended."""
        session = self._sessions.get(_digest(key))
        if session is None or session.ends_at <= self._clock():
            return None
        return session


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
