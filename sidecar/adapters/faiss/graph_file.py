"""Keeps a graph of near vectors over a restart, in a file that is either whole or refused.

FAISS's reader takes flipped bits without complaint, so the file is read by it only after its length and checksum, kept
in a manifest beside it, were found to be right. Not a backup: what is refused is built anew from the memory store.

The manifest: BLAKE2b of what follows (32 bytes) | JSON, one line | key of each row, int64 little-endian.
"""

import contextlib
import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import faiss
import numpy as np

from sidecar.adapters.faiss.graph import GraphSegment
from sidecar.adapters.faiss.snapshot import open_regular, storage_error, sync_folder
from sidecar.ports import Keys

log = logging.getLogger(__name__)

_DIGEST_BYTES: Final = 32
_CHUNK_BYTES: Final = 4 << 20
_MAX_BYTES: Final = 16 << 30


@dataclass(frozen=True, slots=True)
class _Manifest:
    fingerprint_id: str
    dim: int
    row_count: int
    graph_bytes: int
    graph_blake2b: str


class _RefusedError(Exception):
    """Carries the reason out of the checks; never leaves this module."""


def save_graph(path: Path, segment: GraphSegment, *, fingerprint_id: str) -> None:
    """Write a graph that nobody changes meanwhile; after a crash the two files agree or are refused.

    Args:
        path: Of the graph; its manifest lies beside it. The folder is made if it is not there.
        fingerprint_id: `ModelFingerprint.id` of the embeddings.

    Raises:
        StorageError: Or a leaf, if the disk refuses; what was there may be gone then.
    """
    partial = _partial(path)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_private(partial, b"")
        try:
            faiss.write_index(segment.graph, str(partial))
        except RuntimeError as error:
            # FAISS tells of a full disk by a text.
            raise OSError(f"FAISS could not write it: {error}") from error
        size, digest = _synced_digest(partial)
        manifest = _Manifest(fingerprint_id, segment.graph.d, segment.row_count, size, digest)
        partial.replace(path)
        body = json.dumps(asdict(manifest)).encode() + b"\n" + segment.key_of_row().astype("<i8").tobytes()
        _write_private(partial, hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() + body)
        partial.replace(_manifest_path(path))
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def load_graph(path: Path, *, fingerprint_id: str, dim: int) -> GraphSegment | None:
    """Return the graph kept at `path` if there is not the least doubt about it. A bad file never raises."""
    try:
        return _load(path, fingerprint_id=fingerprint_id, dim=dim)
    except FileNotFoundError:
        return None
    except (_RefusedError, OSError, RuntimeError, ValueError, TypeError) as error:
        # Whatever is wrong with it, it is built anew; RuntimeError is FAISS's.
        reason = str(error) if isinstance(error, _RefusedError) else type(error).__name__
        log.info("the kept graph of near vectors is refused", extra={"refusal": reason})
        return None


def discard_graph(path: Path) -> None:
    """Remove graph, manifest and what a killed save left; none need be there.

    Raises:
        StorageError: Or a leaf, if the disk refuses.
    """
    try:
        for each in (_manifest_path(path), path, _partial(path)):
            each.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error


def discard_partial_graph(path: Path) -> None:
    """Remove what a killed save left, if the disk lets us."""
    with contextlib.suppress(OSError):
        _partial(path).unlink(missing_ok=True)


def _load(path: Path, *, fingerprint_id: str, dim: int) -> GraphSegment:
    manifest, keys = _read_manifest(_manifest_path(path))
    if manifest.fingerprint_id != fingerprint_id or manifest.dim != dim:
        raise _RefusedError("other model")
    if (path.stat().st_size, len(keys)) != (manifest.graph_bytes, manifest.row_count):
        raise _RefusedError("damaged")
    if _digest_of(path) != manifest.graph_blake2b:
        raise _RefusedError("damaged")
    graph = faiss.read_index(str(path))
    if not isinstance(graph, faiss.IndexHNSWSQ) or (graph.d, graph.ntotal) != (dim, len(keys)):
        raise _RefusedError("unknown format")
    return GraphSegment.restored(graph, keys)


def _read_manifest(path: Path) -> tuple[_Manifest, Keys]:
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > _MAX_BYTES:
            raise _RefusedError("too large")
        digest, body = file.read(_DIGEST_BYTES), file.read()
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        raise _RefusedError("damaged")
    line, _, keys = body.partition(b"\n")
    return _Manifest(**json.loads(line)), np.frombuffer(keys, "<i8").astype(np.int64)


def _digest_of(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _synced_digest(path: Path) -> tuple[int, str]:
    with open_regular(path) as file:
        os.fsync(file.fileno())
        size = os.fstat(file.fileno()).st_size
    return size, _digest_of(path)


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _manifest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.manifest")


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")
