"""What the lifecycle runs, and how it tells it who it is. The lifecycle knows no store, index or model."""

import asyncio
import math
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc.aio

from sidecar.client.build import THIS_BUILD, Build
from sidecar.client.endpoint import Holder
from sidecar.client.processes import started_at


class Application(Protocol):
    """All that a sidecar does. Building one opens nothing: the lock on the data folder is taken first."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong and what to do, for a person; empty when all is well. Logged at start and end."""
        ...

    async def start(self) -> None:
        """Open the store and begin to load the rest in the background; returns quickly.

        Raises:
            StorageError: The store cannot be used; the sidecar ends.
            SchemaTooNewError: The store is a newer version's; the sidecar ends.
        """
        ...

    def add_to(self, server: grpc.aio.Server) -> None:
        """Add the servicers; called once, after `start`."""
        ...

    async def stop(self) -> None:
        """Finish what was accepted and close all; called once, also if `start` failed."""
        ...


class Stopper:
    """How whoever has a reason asks the sidecar to stop. Belongs to the event loop; signals come through it too."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._reason = ""

    @property
    def reason(self) -> str:
        """Why it stops; empty while it does not."""
        return self._reason

    def request(self, reason: str) -> None:
        """Ask for an orderly stop; the first reason is kept."""
        self._reason = self._reason or reason
        self.event.set()


class OtherUse:
    """When somebody last used the sidecar by another way than a call, such as the dashboard."""

    def __init__(self) -> None:
        self._last = -math.inf

    @property
    def idle_s(self) -> float:
        """Seconds since then; infinite if nobody ever did."""
        return time.monotonic() - self._last

    def note(self) -> None:
        """Note that somebody does now."""
        self._last = time.monotonic()


@dataclass(frozen=True)
class Run:
    """One run of a sidecar: the process, what it is, and how it is asked to stop.

    Attributes:
        holder: This process, with an instance id that no other run has.
        build: Version and protocol.
        stopper: Asks for an orderly stop; `AdminService.Shutdown` uses it.
        other_use: Keeps the sidecar from ending by itself, as calls do.
    """

    holder: Holder
    build: Build = THIS_BUILD
    stopper: Stopper = field(default_factory=Stopper)
    other_use: OtherUse = field(default_factory=OtherUse)

    @classmethod
    def new(cls, build: Build = THIS_BUILD) -> "Run":
        """Return a run of this process."""
        return cls(Holder(pid=os.getpid(), started_at=started_at(), instance_id=secrets.token_hex(8)), build)
