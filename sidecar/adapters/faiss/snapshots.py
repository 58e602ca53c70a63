"""The index's place on disk between runs: one file in a folder of its own. See `sidecar.adapters.faiss.snapshot`."""

from pathlib import Path
from typing import Final

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.snapshot import discard_partial, discard_snapshot, load_snapshot, save_snapshot
from sidecar.ports import VectorIndex
from sidecar.use_cases.index_upkeep import LoadedIndex

_FILE_NAME: Final = "vectors.snapshot"


class FaissSnapshots:
    """See `sidecar.use_cases.index_upkeep.IndexSnapshots`."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something is saved."""
        self._path = folder / _FILE_NAME

    def load(self, model_id: str, dim: int) -> LoadedIndex:
        """See `IndexSnapshots.load`."""
        discard_partial(self._path)
        loaded = load_snapshot(self._path, fingerprint_id=model_id, dim=dim)
        return LoadedIndex(loaded.index, loaded.refusal or "")

    def save(self, index: VectorIndex, model_id: str) -> None:
        """See `IndexSnapshots.save`."""
        if not isinstance(index, FaissVectorIndex):
            raise TypeError(f"{type(index).__name__} is not an index that this class loaded or was asked to keep")
        save_snapshot(self._path, index, fingerprint_id=model_id)

    def discard(self) -> None:
        """See `IndexSnapshots.discard`."""
        discard_snapshot(self._path)
