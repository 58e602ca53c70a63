"""The index's place on disk between runs: one file in a folder of its own. See `sidecar.adapters.faiss.snapshot`."""

from pathlib import Path
from typing import Final

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.snapshot import load_snapshot, save_snapshot
from sidecar.ports import VectorIndex
from sidecar.use_cases.semantic_index import LoadedIndex

_FILE_NAME: Final = "vectors.snapshot"


class FaissSnapshots:
    """See `sidecar.use_cases.semantic_index.IndexSnapshots`."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something is saved."""
        self._path = folder / _FILE_NAME

    def load(self, model_id: str, dim: int) -> LoadedIndex:
        """See `IndexSnapshots.load`."""
        loaded = load_snapshot(self._path, fingerprint_id=model_id, dim=dim)
        return LoadedIndex(loaded.index, loaded.refusal or "")

    def save(self, index: VectorIndex, model_id: str) -> None:
        """See `IndexSnapshots.save`."""
        if not isinstance(index, FaissVectorIndex):
            raise TypeError(f"{type(index).__name__} is not an index that this class loaded or was asked to keep")
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        # The keys themselves tell what the store has beyond this file; see `SemanticIndex`.
        save_snapshot(self._path, index, fingerprint_id=model_id, watermark=len(index))

    def discard(self) -> None:
        """See `IndexSnapshots.discard`."""
        self._path.unlink(missing_ok=True)
