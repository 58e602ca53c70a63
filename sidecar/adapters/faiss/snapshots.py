"""The index's place on disk between runs: a folder of its own, with one file for each segment.

See `sidecar.adapters.faiss.snapshot` for the exact segment and `graph_file` for the graph. Rows that neither holds,
since the graph is not written at every save, are brought back from the memory store when the index is opened.
"""

from pathlib import Path
from typing import Final

from sidecar.adapters.faiss.flat import FaissVectorIndex
from sidecar.adapters.faiss.graph import GraphSegment
from sidecar.adapters.faiss.graph_file import discard_graph, discard_partial_graph, load_graph, save_graph
from sidecar.adapters.faiss.layered import LayeredVectorIndex
from sidecar.adapters.faiss.snapshot import discard_partial, discard_snapshot, load_snapshot, save_snapshot
from sidecar.ports import VectorIndex
from sidecar.use_cases.index_upkeep import LoadedIndex

_FILE_NAME: Final = "vectors.snapshot"
_GRAPH_NAME: Final = "vectors.graph"
_WORTH_SAVING: Final = 1.05
"""A graph is a gigabyte at a million rows, so it is written again only once it has grown by so much."""


class FaissSnapshots:
    """See `sidecar.use_cases.index_upkeep.IndexSnapshots`."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; it is made when something is saved."""
        self._path = folder / _FILE_NAME
        self._graph_path = folder / _GRAPH_NAME
        self._saved_rows = 0

    def load(self, model_id: str, dim: int) -> LoadedIndex:
        """See `IndexSnapshots.load`."""
        discard_partial(self._path)
        discard_partial_graph(self._graph_path)
        loaded = load_snapshot(self._path, fingerprint_id=model_id, dim=dim)
        graph = load_graph(self._graph_path, fingerprint_id=model_id, dim=dim)
        self._saved_rows = graph.row_count if graph is not None else 0
        if loaded.index is None and graph is None:
            return LoadedIndex(None, loaded.refusal or "")
        index = LayeredVectorIndex(dim)
        index.restore(loaded.index, graph)
        return LoadedIndex(index, "")

    def save(self, index: VectorIndex, model_id: str) -> None:
        """See `IndexSnapshots.save`."""
        if isinstance(index, FaissVectorIndex):
            save_snapshot(self._path, index, fingerprint_id=model_id)
        elif isinstance(index, LayeredVectorIndex):
            with index.unchanged() as (fresh, graph):
                if graph is not None:
                    self._save_graph(graph, model_id)
                save_snapshot(self._path, fresh, fingerprint_id=model_id)
        else:
            raise TypeError(f"{type(index).__name__} is not an index that this class loaded or was asked to keep")

    def discard(self) -> None:
        """See `IndexSnapshots.discard`."""
        self._saved_rows = 0
        discard_snapshot(self._path)
        discard_graph(self._graph_path)

    def _save_graph(self, graph: GraphSegment, model_id: str) -> None:
        if graph.row_count < self._saved_rows * _WORTH_SAVING and self._saved_rows:
            return
        save_graph(self._graph_path, graph, fingerprint_id=model_id)
        self._saved_rows = graph.row_count
