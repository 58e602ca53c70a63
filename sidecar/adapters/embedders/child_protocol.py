"""What the sidecar and its embedding process say to each other over two pipes. Plain JSON and float32; no pickle.

A frame is: length of the header (uint32) | length of the payload (uint32) | header, JSON | payload. The parent sends
`EmbedRequest`s; the child answers each with `Embeddings` or `Failure`, after one `ModelFingerprint` or `Failure` when
it has loaded. Numbers are little-endian.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import BinaryIO, Final

import numpy as np

from sidecar.domain.model import ModelFingerprint
from sidecar.ports import Embedding

_LENGTHS: Final = struct.Struct("<II")
_MAX_HEADER_BYTES: Final = 64 << 20
_MAX_PAYLOAD_BYTES: Final = 256 << 20


class ProtocolBrokenError(Exception):
    """The other side ended in the middle of a frame, or sent something else; the pipe is of no more use."""


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """Texts to embed, as queries (first window only) or as documents (every window)."""

    texts: tuple[str, ...]
    is_query: bool


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The answer: for each text a `(windows, dim)` float32 array."""

    of_texts: tuple[Embedding, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """The model did not load, or did not embed; the process may still live."""

    problem: str


def send_request(pipe: BinaryIO, request: EmbedRequest) -> None:
    """Write a request; an `OSError` means that the child is gone."""
    _write_frame(pipe, {"texts": list(request.texts), "is_query": request.is_query})


def receive_request(pipe: BinaryIO) -> EmbedRequest | None:
    """Return the next request, None when the parent closed the pipe or is gone.

    Raises:
        ProtocolBrokenError: If what came is no request.
    """
    lengths = pipe.read(_LENGTHS.size)
    if not lengths:
        return None
    header, _ = _read_rest(pipe, lengths)
    texts, is_query = header.get("texts"), header.get("is_query")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or type(is_query) is not bool:
        raise ProtocolBrokenError("a frame is no request")
    return EmbedRequest(tuple(texts), is_query)


def send_fingerprint(pipe: BinaryIO, fingerprint: ModelFingerprint) -> None:
    """Tell the parent that the model has loaded."""
    _write_frame(pipe, {"fingerprint": asdict(fingerprint)})


def send_embeddings(pipe: BinaryIO, embeddings: Embeddings) -> None:
    """Answer a request."""
    counts = [len(rows) for rows in embeddings.of_texts]
    payload = b"".join(rows.astype("<f4", copy=False).tobytes() for rows in embeddings.of_texts)
    _write_frame(pipe, {"window_counts": counts}, payload)


def send_failure(pipe: BinaryIO, failure: Failure) -> None:
    """Answer in place of a fingerprint or of embeddings."""
    _write_frame(pipe, {"failure": failure.problem})


def receive_fingerprint(pipe: BinaryIO) -> ModelFingerprint | Failure:
    """Return what the child found when it loaded the model.

    Raises:
        ProtocolBrokenError: If the child ended, or sent something else.
    """
    header, _ = _read_frame(pipe)
    if isinstance(failure := header.get("failure"), str):
        return Failure(failure)
    fields = header.get("fingerprint")
    if not isinstance(fields, dict):
        raise ProtocolBrokenError("a frame is no fingerprint")
    try:
        return ModelFingerprint(**fields)
    except TypeError as error:
        raise ProtocolBrokenError("a fingerprint has other fields") from error


def receive_embeddings(pipe: BinaryIO, *, dim: int) -> Embeddings | Failure:
    """Return the child's answer to a request.

    Raises:
        ProtocolBrokenError: If the child ended, or the answer does not have this dimension.
    """
    header, payload = _read_frame(pipe)
    if isinstance(failure := header.get("failure"), str):
        return Failure(failure)
    counts = _window_counts(header)
    if len(payload) != sum(counts) * dim * np.dtype("<f4").itemsize:
        raise ProtocolBrokenError(f"an answer of {len(payload)} bytes does not hold {sum(counts)} rows of {dim}")
    rows = np.frombuffer(payload, "<f4").astype(np.float32).reshape(-1, dim)
    ends = np.cumsum(counts)
    return Embeddings(tuple(rows[end - count : end] for end, count in zip(ends, counts, strict=True)))


def _window_counts(header: Mapping[str, object]) -> Sequence[int]:
    counts = header.get("window_counts")
    if not isinstance(counts, list) or not all(type(count) is int and count > 0 for count in counts):
        raise ProtocolBrokenError("an answer does not count its windows")
    return counts


def _write_frame(pipe: BinaryIO, header: Mapping[str, object], payload: bytes = b"") -> None:
    encoded = json.dumps(header).encode()
    pipe.write(_LENGTHS.pack(len(encoded), len(payload)) + encoded)
    pipe.write(payload)
    pipe.flush()


def _read_frame(pipe: BinaryIO) -> tuple[Mapping[str, object], bytes]:
    return _read_rest(pipe, pipe.read(_LENGTHS.size))


def _read_rest(pipe: BinaryIO, lengths: bytes) -> tuple[Mapping[str, object], bytes]:
    if len(lengths) < _LENGTHS.size:
        raise ProtocolBrokenError("the pipe ended")
    header_bytes, payload_bytes = _LENGTHS.unpack(lengths)
    if header_bytes > _MAX_HEADER_BYTES or payload_bytes > _MAX_PAYLOAD_BYTES:
        raise ProtocolBrokenError(f"a frame announces {header_bytes} and {payload_bytes} bytes")
    encoded, payload = pipe.read(header_bytes), pipe.read(payload_bytes)
    if len(encoded) < header_bytes or len(payload) < payload_bytes:
        raise ProtocolBrokenError("the pipe ended in the middle of a frame")
    try:
        header = json.loads(encoded)
    except ValueError as error:
        raise ProtocolBrokenError("a header is no JSON") from error
    if not isinstance(header, dict):
        raise ProtocolBrokenError("a header is no object")
    return header, payload
