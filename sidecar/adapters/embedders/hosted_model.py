"""A sentence-transformers model as the embedding process holds it. Imports torch: never import it in the sidecar."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
import transformers
from sentence_transformers import SentenceTransformer

from sidecar.adapters.embedders.child_protocol import Embeddings, EmbedRequest
from sidecar.adapters.embedders.windows import OVERLAP_TOKENS, window_spans
from sidecar.domain.model import ModelFingerprint
from sidecar.ports import Embedding

# Small, so that the memory one run takes stays bounded.
_BATCH_WINDOWS: Final = 8
_DEFAULT_MAX_TOKENS: Final = 512


class HostedModel:
    """A sentence-transformers model on the processor, and how its texts are cut."""

    def __init__(self, folder: Path, *, name: str, weights: str) -> None:
        """Load a model; what can go wrong is up to the libraries.

        Args:
            folder: One that `weights_fingerprint` let pass.
            name: What its fingerprint calls it.
            weights: What `weights_fingerprint` said.
        """
        torch.set_num_threads(1)
        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self._model = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        self._model.eval()
        self._tokenizer = self._model.tokenizer
        self._query_prefix = self._model.prompts.get("query") or ""
        self._document_prefix = self._model.prompts.get("document") or ""
        self._max_tokens = int(self._model.max_seq_length or _DEFAULT_MAX_TOKENS)
        self.fingerprint = ModelFingerprint(
            model=name,
            weights=weights,
            dim=int(self._model.get_embedding_dimension() or 0),
            pooling=_pooling_of(self._model),
            normalised=True,
            max_tokens=self._max_tokens,
            precision=str(self._model.dtype).removeprefix("torch."),
            query_prefix=self._query_prefix,
            document_prefix=self._document_prefix,
        )

    def embed(self, request: EmbedRequest) -> Embeddings:
        """Embed each text, a query's first window only."""
        prefix = self._query_prefix if request.is_query else self._document_prefix
        windows = [self._windows_of(text, prefix) for text in request.texts]
        if request.is_query:
            windows = [of_text[:1] for of_text in windows]
        rows = self._encode([window for of_text in windows for window in of_text], prefix)
        ends = np.cumsum([len(of_text) for of_text in windows])
        return Embeddings(
            tuple(rows[end - len(of_text) : end] for of_text, end in zip(windows, ends.tolist(), strict=True))
        )

    def _encode(self, windows: Sequence[str], prefix: str) -> Embedding:
        rows: Embedding = self._model.encode(
            list(windows),
            # An empty prompt is given too: else the model's default one would be put before documents.
            prompt=prefix,
            batch_size=_BATCH_WINDOWS,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return rows.astype(np.float32, copy=False)

    def _windows_of(self, text: str, prefix: str) -> list[str]:
        window_tokens = self._max_tokens - self._tokenizer.num_special_tokens_to_add()
        if prefix:
            window_tokens -= len(self._tokenizer(prefix, add_special_tokens=False)["input_ids"])
        if window_tokens <= OVERLAP_TOKENS or not self._tokenizer.is_fast:
            # Nothing says where in the text a token lies; the model itself cuts it at its limit.
            return [text]
        encoded = self._tokenizer(
            text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
        )
        characters = encoded["offset_mapping"]
        if len(characters) <= window_tokens:
            return [text]
        spans = window_spans(encoded.word_ids(), window_tokens=window_tokens)
        return [text[characters[start][0] : characters[end - 1][1]] for start, end in spans]


def _pooling_of(model: SentenceTransformer) -> str:
    names = [str(module.pooling_mode) for module in model if hasattr(module, "pooling_mode")]
    return "+".join(names) or "unknown"
