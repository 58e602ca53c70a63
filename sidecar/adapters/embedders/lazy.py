"""An embedder that is loaded when it is first asked, once for all who share it. Embeds nothing itself."""

import threading
from collections.abc import Callable, Sequence

from sidecar.domain.model import ModelFingerprint
from sidecar.ports import Embedder, Embedding


class SharedLoad:
    """Loads an embedder at the first call and gives the same one ever after; safe to call from several threads."""

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._embedder: Embedder | None = None

    def __call__(self) -> Embedder:
        """Return the embedder; a load that failed is tried again by the next call."""
        with self._loading:
            if self._embedder is None:
                self._embedder = self._load()
            return self._embedder


class LazyEmbedder:
    """See `Embedder`. Any method but `close` may load it first, and raise what loading raises."""

    def __init__(self, load: SharedLoad) -> None:
        self._load = load

    @property
    def fingerprint(self) -> ModelFingerprint:
        """See `Embedder.fingerprint`."""
        return self._load().fingerprint

    def embed_query(self, text: str) -> Embedding:
        """See `Embedder.embed_query`."""
        return self._load().embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """See `Embedder.embed_documents`."""
        return self._load().embed_documents(texts)

    def close(self) -> None:
        """Leave the shared embedder to those who own it."""
