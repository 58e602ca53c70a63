"""The language server's way to the sidecar: found or started in the background at the first need, never waited for by
an editor that only looks.

Belongs to one event loop. A sidecar that keeps dying is not restarted for ever.
"""

import asyncio
import importlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

from client_plugins.kit.restart_budget import RestartBudget
from client_plugins.lsp_bridge.contract import AWAY, RUNNING, STARTING
from client_plugins.lsp_bridge.failures import SidecarAwayError
from sidecar.errors import DeadlineError, SidecarError, SidecarHungError, SidecarNotRunningError, UnavailableError

if TYPE_CHECKING:
    from sidecar.api.v1.admin_service_pb2 import GetStatusResponse
    from sidecar.client import AsyncSidecar

log = logging.getLogger(__name__)

LOOK_S: Final = 0.4
"""How long a request of an editor that only looks may wait for a sidecar that runs, seconds."""

_RETRY_S: Final = 5.0
_MOST_RETRY_S: Final = 60.0
_MODEL_WAIT_S: Final = 10.0
_POLL_S: Final = 0.1
_PROBE_S: Final = 5.0
_CLOSE_AFTER_S: Final = 60.0

_Answer = TypeVar("_Answer")
Ask = Callable[["AsyncSidecar"], Awaitable[_Answer]]
"""Makes one call."""


class Connection:
    """Connects to the sidecar of one data folder.

    Attributes:
        state: `running`, `starting` or `away`.
        problem: Why it is away; None if it is not, or nothing was tried yet.
        seen: What the sidecar last told of itself; None before the first time.
    """

    def __init__(self, changed: Callable[[], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start nothing yet.

        Args:
            changed: Called in the event loop when what is known of the sidecar is another.
        """
        self.state = STARTING
        self.problem: SidecarError | None = None
        self.seen: GetStatusResponse | None = None
        self._home: str | None = None
        self._changed = changed
        self._clock = clock
        self._budget = RestartBudget(clock)
        self._sidecar: AsyncSidecar | None = None
        self._opening: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None
        # Whether one ran since the last start was counted; None before the first.
        self._has_run: bool | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._not_before = 0.0
        self._retry_s = _RETRY_S

    def use_home(self, home: str | None) -> None:
        """Take the data folder; without one SIDECAR_HOME, else the user's own."""
        self._home = home

    def need(self, *, at_once: bool = False) -> None:
        """Begin to find or start the sidecar, unless it is there or that is under way.

        Args:
            at_once: A person asks for it: also shortly after it failed.
        """
        if self._sidecar is not None or (self._opening is not None and not self._opening.done()):
            return
        if at_once or self._clock() >= self._not_before:
            self._become(STARTING, None)
            self._opening = asyncio.create_task(self._open())

    async def look(self, ask: Ask[_Answer]) -> _Answer | None:
        """Return the answer of a call that only looks, None if there is no sidecar or it takes too long.

        Raises:
            SidecarError: What the sidecar raised.
        """
        sidecar = self._sidecar
        if sidecar is None or self._probe is not None:
            self.need()
            return None
        try:
            return await asyncio.wait_for(_awaited(ask, sidecar), LOOK_S)
        except TimeoutError:
            self._doubt(sidecar)
        except (SidecarNotRunningError, SidecarHungError) as error:
            self._lose(sidecar, error)
            self.need()
        return None

    async def call(self, ask: Ask[_Answer], *, may_repeat: bool = True) -> _Answer:
        """Return the answer of a call that a person waits for; waits for a sidecar that starts.

        Args:
            ask: Makes one call.
            may_repeat: Whether a second one does no harm: it reads, or carries a request key.

        Raises:
            SidecarAwayError: There is none, and it cannot be started.
            SidecarError: What the sidecar raised.
        """
        sidecar = await self._opened()
        try:
            return await ask(sidecar)
        except (SidecarNotRunningError, SidecarHungError) as error:
            self._lose(sidecar, error)
            if isinstance(error, SidecarHungError) or not may_repeat:
                raise
        return await ask(await self._opened())

    async def refresh(self) -> None:
        """Look at how the sidecar is, such as after something was stored; tells it if it is another."""
        seen = await self.look(lambda sidecar: sidecar.get_status())
        if seen is not None:
            is_new = self.seen is None or seen.memory_count != self.seen.memory_count
            self.seen = seen
            if is_new:
                self._changed()

    async def _opened(self) -> "AsyncSidecar":
        self.need(at_once=True)
        if self._opening is not None:
            # Others wait for it too, and this one may be cancelled.
            await asyncio.shield(self._opening)
        if self._sidecar is None:
            raise SidecarAwayError(self.problem or SidecarNotRunningError(self._home or ""))
        return self._sidecar

    async def _open(self) -> None:
        try:
            await self._connect()
        except SidecarError as error:
            log.warning("sidecar away: %s", error.reason)
            self._fail(error)
        except OSError as error:
            log.warning("sidecar away: %s", type(error).__name__)
            self._fail(
                UnavailableError(f"the sidecar cannot be started: {error.strerror}; `sidecar doctor` tells more")
            )
        else:
            self._retry_s = _RETRY_S
            self._become(RUNNING, None)

    async def _connect(self) -> None:
        # gRPC takes 0.1 s to import, in which an editor is to have its empty answers.
        await asyncio.to_thread(importlib.import_module, "sidecar.client")
        from sidecar.client import AsyncSidecar, DataFolder, find_or_start  # noqa: PLC0415

        folder = DataFolder.at(self._home)
        if self._has_run is not False:
            self._budget.spend(str(folder.home))
            self._has_run = False
        await asyncio.to_thread(find_or_start, folder)
        # It must not start one by itself, or the restarts would not be counted.
        sidecar = await AsyncSidecar.connect(folder.home, start=False)
        self.seen = await _seen_with_model(sidecar)
        self._sidecar, self._has_run = sidecar, True

    def _fail(self, error: SidecarError) -> None:
        self._not_before = self._clock() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _MOST_RETRY_S)
        self._become(AWAY, error)

    def _lose(self, sidecar: "AsyncSidecar", error: SidecarError) -> None:
        # Another task may have found the new one already.
        if self._sidecar is sidecar:
            self._sidecar = None
            closing = asyncio.create_task(_close_later(sidecar))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._become(AWAY, error)

    def _doubt(self, sidecar: "AsyncSidecar") -> None:
        """Find out behind the editor's back whether a sidecar that took too long answers at all."""
        if self._probe is None:
            self._probe = asyncio.create_task(self._ask_if_there(sidecar))

    async def _ask_if_there(self, sidecar: "AsyncSidecar") -> None:
        try:
            await sidecar.get_status(deadline_s=_PROBE_S)
        except (SidecarNotRunningError, SidecarHungError, DeadlineError) as error:
            self._lose(sidecar, error)
            self._not_before = self._clock() + self._retry_s
        except SidecarError as error:
            log.warning("sidecar answers with %s", error.reason)
        finally:
            self._probe = None

    def _become(self, state: str, problem: SidecarError | None) -> None:
        is_new = (state, problem and problem.reason) != (self.state, self.problem and self.problem.reason)
        self.state, self.problem = state, problem
        if is_new:
            self._changed()


async def _close_later(sidecar: "AsyncSidecar") -> None:
    # At once would cancel what others still wait for on it, as if their editor had.
    await asyncio.sleep(_CLOSE_AFTER_S)
    await sidecar.close()


async def _awaited(ask: Ask[_Answer], sidecar: "AsyncSidecar") -> _Answer:
    return await ask(sidecar)


async def _seen_with_model(sidecar: "AsyncSidecar") -> "GetStatusResponse":
    """Return the status once the model is loaded: a recall before that would be answered by words alone."""
    from sidecar.api.v1.admin_service_pb2 import PART_STATE_LOADING  # noqa: PLC0415

    deadline = time.monotonic() + _MODEL_WAIT_S
    while True:
        seen = await sidecar.get_status()
        if PART_STATE_LOADING not in (seen.embedder.state, seen.index.state) or time.monotonic() >= deadline:
            return seen
        await asyncio.sleep(_POLL_S)
