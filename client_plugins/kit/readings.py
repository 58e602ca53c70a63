"""Takes requests to read a transcript now, and lets through those that lead to a transcript of their client.

A request comes from a hook, and what a hook is told comes from a client's settings and payloads: its path is taken for
nothing but a hint which of the files that would be read anyway to read first. What is refused is counted and logged
without its path.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from client_plugins.kit.scanner import WatchedRoot, found_at
from client_plugins.kit.sink import EvidenceSink
from sidecar.domain.reading_request import ReadingRequest
from sidecar.errors import SidecarError, UnavailableError

_FIRST_WAIT_S: Final = 0.5
_LAST_WAIT_S: Final = 30.0

log = logging.getLogger(__name__)


def confined_path(wanted: ReadingRequest, roots: Sequence[WatchedRoot]) -> Path | None:
    """Return the path of the transcript that is asked for, links resolved; None if it is none of its client's.

    Args:
        roots: Resolved, of any clients.
    """
    asked = Path(wanted.transcript_path)
    if not _is_local(wanted.transcript_path):
        return None
    try:
        # Strict: what is not there cannot be read, and a path with a loop of links in it is nowhere.
        path = Path(os.path.realpath(asked, strict=True))
    except (OSError, ValueError):
        return None
    own = (root for root in roots if root.plugin.name == wanted.client)
    return path if any(found_at(root, path) is not None for root in own) else None


def _is_local(path: str) -> bool:
    # Windows would send the user's credentials to the host of a network path by only looking at it.
    return Path(path).is_absolute() and not path.startswith(("\\\\", "//"))


class Readings:
    """Follows the requests of one sidecar. Belongs to the event loop."""

    def __init__(
        self, sink: EvidenceSink, clients: Sequence[str], *, roots: Callable[[], Sequence[WatchedRoot]]
    ) -> None:
        """Take what is needed.

        Args:
            clients: Whose requests are wanted.
            roots: Gives the folders of transcripts as they are now.
        """
        self._sink = sink
        self._clients = clients
        self._roots = roots
        self.refused = 0

    async def follow(self, read: Callable[[Path], None]) -> None:
        """Call `read` with each transcript that is asked for, until cancelled or the sidecar cannot tell.

        A sidecar that went away is waited for: whether to go on without it is not decided here.
        """
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                async with aclosing(self._sink.reading_requests(self._clients)) as requests:
                    async for wanted in requests:
                        wait_s = _FIRST_WAIT_S
                        self._take(wanted, read)
            except UnavailableError as error:
                log.info("requests to read are not heard for now", extra={"reason": error.reason})
            except SidecarError as error:
                # An older sidecar has no such requests; changes are noticed without them.
                log.warning("requests to read are not heard", extra={"reason": error.reason})
                return
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _LAST_WAIT_S)

    def _take(self, wanted: ReadingRequest, read: Callable[[Path], None]) -> None:
        path = confined_path(wanted, self._roots())
        if path is None and _is_local(wanted.transcript_path) and not os.path.lexists(wanted.transcript_path):
            # A client may say so before it has written the first line; the file is noticed when it comes.
            log.debug("transcript to read is not there", extra={"client": wanted.client})
            return
        if path is None:
            self.refused += 1
            log.warning("request to read refused", extra={"client": wanted.client, "refused_count": self.refused})
            return
        read(path)
