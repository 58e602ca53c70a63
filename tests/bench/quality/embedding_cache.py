"""The default embedder with its results kept on disk between runs, outside the project: a set is embedded once."""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.domain.model import ModelFingerprint
from sidecar.ports import Embedding

CACHE_VARIABLE: Final = "SIDECAR_BENCH_CACHE"
_QUERY: Final = "query"
_DOCUMENT: Final = "document"


def cache_path() -> Path:
    """Return where the vectors are kept; the variable names another folder."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path(tempfile.gettempdir()) / "sidecar-bench")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / "vectors.db"


class CachedEmbedder:
    """See `Embedder`: vectors are those of the default model, computed once for each text and model."""

    def __init__(self, path: Path) -> None:
        self._embedder = OnnxMiniLmEmbedder()
        self._model_id = self._embedder.fingerprint.id
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=60)
        self._database.execute("CREATE TABLE IF NOT EXISTS vectors (name BLOB PRIMARY KEY, vector BLOB)")

    @property
    def fingerprint(self) -> ModelFingerprint:
        """See `Embedder.fingerprint`."""
        return self._embedder.fingerprint

    def embed_query(self, text: str) -> Embedding:
        """See `Embedder.embed_query`."""
        kept = self._kept(_QUERY, text)
        if kept is None:
            kept = self._embedder.embed_query(text)[np.newaxis, :]
            self._keep(_QUERY, text, kept)
        row: Embedding = kept[0]
        return row

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """See `Embedder.embed_documents`."""
        found = [self._kept(_DOCUMENT, text) for text in texts]
        missing = [text for text, kept in zip(texts, found, strict=True) if kept is None]
        made = dict(zip(missing, self._embedder.embed_documents(missing), strict=True)) if missing else {}
        for text, embedding in made.items():
            self._keep(_DOCUMENT, text, embedding)
        return [made[text] if kept is None else kept for text, kept in zip(texts, found, strict=True)]

    def close(self) -> None:
        """See `Embedder.close`."""
        self._embedder.close()
        self._database.close()

    def _name(self, purpose: str, text: str) -> bytes:
        return hashlib.sha256("\0".join((self._model_id, purpose, text)).encode("utf-8", "surrogatepass")).digest()

    def _kept(self, purpose: str, text: str) -> Embedding | None:
        row = self._database.execute(
            "SELECT vector FROM vectors WHERE name = ?", (self._name(purpose, text),)
        ).fetchone()
        if row is None:
            return None
        return np.frombuffer(row[0], np.float32).reshape(-1, self.fingerprint.dim).copy()

    def _keep(self, purpose: str, text: str, embedding: Embedding) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?)", (self._name(purpose, text), embedding.tobytes())
        )
