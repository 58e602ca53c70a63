"""Notes which files are opened and saved: path, language and time; never what is in them.

Not noted: files outside of projects, those that the repository ignores, pages of ours. Of one file, at most one note of
each kind a minute. What happens while the sidecar starts is kept for a moment.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from client_plugins.lsp_bridge.connection import Connection
from client_plugins.lsp_bridge.contract import RUNNING
from client_plugins.lsp_bridge.desk import Desk
from client_plugins.lsp_bridge.ignored_files import IgnoredFiles
from client_plugins.lsp_bridge.places import Place
from client_plugins.lsp_bridge.views import Views
from sidecar.errors import SidecarError

log = logging.getLogger(__name__)

THROTTLE_S: Final = 60.0
_KEPT_S: Final = 60.0
_MOST_KEPT: Final = 50
_THROTTLED_ENTRIES: Final = 2_048


class Action(Enum):
    """What was done, as the contract of the sidecar names it."""

    READ = "FILE_ACTION_READ"
    EDIT = "FILE_ACTION_EDIT"


@dataclass(frozen=True, slots=True)
class _Touched:
    place: Place
    action: Action
    language: str
    at: float


class FileActivity:
    """Notes files of one editor. Belongs to one event loop."""

    def __init__(self, desk: Desk, views: Views, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._desk = desk
        self._views = views
        self._clock = clock
        self._ignored = IgnoredFiles()
        self._last: dict[tuple[str, Action], float] = {}
        self._waiting: dict[tuple[str, Action], _Touched] = {}
        self._sending: asyncio.Task[None] | None = None

    def note(self, uri: str, action: Action, *, language: str) -> None:
        """Note that a document was opened, or changed and saved; returns before it is noted."""
        place = self._desk.places.place(uri)
        if place is None or not place.relative or not place.project:
            return
        key, now = (place.path, action), self._clock()
        if now - self._last.get(key, -THROTTLE_S) < THROTTLE_S:
            return
        if len(self._last) >= _THROTTLED_ENTRIES:
            self._last.clear()
        self._last[key] = now
        self._waiting[key] = _Touched(place, action, language, now)
        while len(self._waiting) > _MOST_KEPT:
            del self._waiting[next(iter(self._waiting))]
        self.send()

    def send(self) -> None:
        """Send what waits, if there is a sidecar to send it to."""
        if self._connection.state == RUNNING and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send())

    @property
    def _connection(self) -> Connection:
        return self._desk.connection

    async def _send(self) -> None:
        while self._waiting:
            touched = self._waiting.pop(next(iter(self._waiting)))
            if self._clock() - touched.at > _KEPT_S:
                continue
            try:
                if not await asyncio.to_thread(self._is_left_out, touched.place):
                    await self._send_one(touched)
            except SidecarError as error:
                # Not worth more: it is said by what the user asks for.
                log.warning("file activity was not noted: %s", error.reason)
                return

    def _is_left_out(self, place: Place) -> bool:
        return self._views.is_own(place.path) or self._ignored.is_ignored(place.root, place.relative)

    async def _send_one(self, touched: _Touched) -> None:
        from sidecar.api.v1 import activity_service_pb2 as service  # noqa: PLC0415 - protobuf is for calls only

        place = touched.place
        request = service.AddFileActivityRequest(
            path=place.relative,
            action=service.FileAction.Value(touched.action.value),
            project_root=place.root,
            context=self._desk.context(place.project),
        )
        if touched.language:
            request.metadata.update({"language": touched.language})
        await self._connection.look(lambda sidecar: sidecar.add_file_activity(request))
