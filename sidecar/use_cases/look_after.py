"""Backs the database up and checks it, while it is in use."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from sidecar.domain.maintenance import BackUp
from sidecar.errors import InvalidInputError
from sidecar.ports import Keys, MaintenanceStore, MemoryStore
from sidecar.use_cases.semantic_index import SemanticIndex

_LOOKS_AGAIN: Final = 3
_PAUSE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Integrity:
    """What a check found.

    Attributes:
        faults: Every one, for a person; empty when all is well.
        stored_vectors: Of the model in use; 0 without one, so too `indexed_vectors`.
    """

    faults: tuple[str, ...]
    stored_vectors: int
    indexed_vectors: int


class LookAfter:
    """Backs up and checks."""

    def __init__(self, *, store: MemoryStore, maintenance: MaintenanceStore, semantic: SemanticIndex) -> None:
        self._store = store
        self._maintenance = maintenance
        self._semantic = semantic

    async def back_up(self, path: str) -> BackUp:
        """Write a checked copy of the database.

        Raises:
            InvalidInputError: If the path is not absolute, is there already, or its folder is not.
            StorageError: If the copy cannot be written, or is not sound.
        """
        if not path or "\0" in path:
            raise InvalidInputError("path", path, "the absolute path of a file that does not exist yet")
        return await self._maintenance.back_up(Path(path))

    async def check(self) -> Integrity:
        """Check the database, and that index and database agree."""
        faults = list(await self._store.check_integrity())
        model_id = self._semantic.model_id
        if not model_id:
            return Integrity(tuple(faults), 0, 0)
        missing, surplus, after, indexed = await self._difference(model_id)
        for _ in range(_LOOKS_AGAIN):
            if not len(missing) and not len(surplus):
                break
            # What is stored gets into the index a moment later.
            await asyncio.sleep(_PAUSE_S)
            missing, surplus, after, indexed = await self._difference(model_id)
        if len(missing):
            faults.append(f"{len(missing)} stored vectors are not in the index; `sidecar restart` puts them in")
        if len(surplus):
            faults.append(f"{len(surplus)} vectors of the index are not stored; `sidecar restart` takes them out")
        return Integrity(tuple(faults), len(after), len(indexed))

    async def _difference(self, model_id: str) -> tuple[Keys, Keys, Keys, Keys]:
        """Return the keys that the index lacks, those it should not have, all that are stored, and all it has."""
        before = await self._store.embedded_keys(model_id)
        indexed = await self._semantic.keys()
        # What was stored or purged meanwhile is no fault, so each side is compared with what must be there.
        after = await self._store.embedded_keys(model_id)
        missing = np.setdiff1d(np.intersect1d(before, after), indexed)
        surplus = np.setdiff1d(indexed, np.union1d(before, after))
        return missing, surplus, after, indexed
