"""The operating system's clock and randomness."""

import secrets
from datetime import UTC, datetime


class SystemClock:
    """See `sidecar.ports.Clock`."""

    def now(self) -> datetime:
        """See `Clock.now`."""
        return datetime.now(UTC)

    def random_bytes(self, count: int) -> bytes:
        """See `Clock.random_bytes`."""
        return secrets.token_bytes(count)
