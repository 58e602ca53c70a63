"""Passes requests to read a transcript on to whoever reads transcripts. Keeps none: a reader that comes later scans.

A reader that does not keep up loses requests, and finds the same files by its next scan.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sidecar.domain.reading_request import ReadingRequest

_MAX_WAITING: Final = 1_000


@dataclass(frozen=True, eq=False)
class _Reader:
    """One who reads transcripts of some clients, or of all if none is named."""

    owner: str
    clients: frozenset[str]
    waiting: asyncio.Queue[ReadingRequest] = field(default_factory=lambda: asyncio.Queue(_MAX_WAITING))

    def reads_for(self, owner: str, client: str) -> bool:
        return owner == self.owner and (not self.clients or client in self.clients)


class RequestReading:
    """Brings requests and readers together. Belongs to the event loop."""

    def __init__(self) -> None:
        self._readers: list[_Reader] = []
        self.requests = 0
        self.lost = 0

    def run(self, owner: str, request: ReadingRequest) -> int:
        """Tell the readers; return how many there were. Nothing has been read by then."""
        self.requests += 1
        told = [reader for reader in self._readers if reader.reads_for(owner, request.client)]
        for reader in told:
            if reader.waiting.full():
                self.lost += 1
                reader.waiting.get_nowait()
            reader.waiting.put_nowait(request)
        return len(told)

    async def watch(self, owner: str, clients: Collection[str]) -> AsyncGenerator[ReadingRequest, None]:
        """Give the requests made from now on, until whoever iterates has enough."""
        with self._reading(_Reader(owner, frozenset(clients))) as reader:
            while True:
                yield await reader.waiting.get()

    @contextmanager
    def _reading(self, reader: _Reader) -> Iterator[_Reader]:
        self._readers.append(reader)
        try:
            yield reader
        finally:
            self._readers.remove(reader)
