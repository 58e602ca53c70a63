"""Keeps a vector index over a restart, in one file that is either whole or refused.

Not a backup: whenever the file is in doubt, the index is rebuilt from the memory store. The payload is plain arrays,
not FAISS's own format, whose reader takes flipped bits without complaint and is C++ fed by a file: nothing here
reaches FAISS before length, checksum, model and every row have been checked.

Layout: magic (8 bytes) | length of the manifest (uint32) | BLAKE2b of the manifest (32) | manifest, JSON | keys,
int64 | rows, float32. All numbers are little-endian.
"""

import contextlib
import errno
import hashlib
import json
import logging
import os
import stat
import struct
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from sidecar.adapters.faiss.flat import FaissVectorIndex, IndexRows
from sidecar.errors import IndexRowError, StorageError, StorageFullError, StorageReadOnlyError

log = logging.getLogger(__name__)

_MAGIC: Final = b"MSVEC\x00\x00\x01"
_PREFIX: Final = struct.Struct("<8sI32s")
_DIGEST_BYTES: Final = 32
_MAX_MANIFEST_BYTES: Final = 4096
_KEY_BYTES: Final = 8
_FLOAT_BYTES: Final = 4
_CHUNK_BYTES: Final = 4 << 20
MAX_SNAPSHOT_BYTES: Final = 4 << 30

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class SnapshotRefusal(StrEnum):
    """Why no index came out of a snapshot; shown in the log and by health."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN_FORMAT = "unknown format"
    DAMAGED = "damaged"
    OTHER_MODEL = "other model"
    OTHER_DIMENSION = "other dimension"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class SnapshotLoad:
    """What loading gave: an index, or None and the reason."""

    index: FaissVectorIndex | None
    refusal: SnapshotRefusal | None = None


@dataclass(frozen=True, slots=True)
class _Manifest:
    fingerprint_id: str
    dim: int
    row_count: int
    payload_bytes: int
    payload_blake2b: str


class _RefusedError(Exception):
    """Carries the reason out of the checks; never leaves this module."""

    def __init__(self, refusal: SnapshotRefusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def save_snapshot(path: Path, index: FaissVectorIndex, *, fingerprint_id: str) -> None:
    """Write the index to `path` so that after a crash the file is the old one or the new one, whole.

    Args:
        path: The file, readable by its owner only; its folder is made if it is not there.
        index: Searches go on meanwhile; a copy of its rows is held until the end.
        fingerprint_id: `ModelFingerprint.id` of the embeddings.

    Raises:
        StorageFullError: No space; the old snapshot is intact. So too for the other two.
        StorageReadOnlyError: The folder cannot be written.
        StorageError: The disk refused for another reason.
    """
    rows = index.export_rows()
    partial = _partial(path)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write_snapshot(partial, rows, dim=index.dim, fingerprint_id=fingerprint_id)
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise storage_error(path, error) from error


def load_snapshot(path: Path, *, fingerprint_id: str, dim: int, max_bytes: int = MAX_SNAPSHOT_BYTES) -> SnapshotLoad:
    """Return the index kept at `path`, or the reason why it must be rebuilt. A bad file never raises.

    Args:
        path: What `save_snapshot` wrote; a symbolic link is refused.
        fingerprint_id: `ModelFingerprint.id` that its embeddings must have.
        dim: Length that they must have.
        max_bytes: A larger file is not even read.
    """
    try:
        return _load(path, fingerprint_id=fingerprint_id, dim=dim, max_bytes=max_bytes)
    except _RefusedError as refused:
        refusal = refused.refusal
    except FileNotFoundError:
        refusal = SnapshotRefusal.MISSING
    except OSError as error:
        log.warning("index snapshot not readable", extra={"error_number": error.errno})
        refusal = SnapshotRefusal.UNREADABLE
    log.info("index snapshot refused", extra={"refusal": str(refusal)})
    return SnapshotLoad(None, refusal=refusal)


def discard_snapshot(path: Path) -> None:
    """Remove the snapshot and what a save that was killed left of one; neither need be there.

    Raises:
        StorageReadOnlyError: The folder cannot be written.
        StorageError: The disk refused for another reason.
    """
    try:
        path.unlink(missing_ok=True)
        _partial(path).unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error


def discard_partial(path: Path) -> None:
    """Remove what a save that was killed left; a disk that refuses is left to the next save."""
    try:
        _partial(path).unlink(missing_ok=True)
    except OSError as error:
        log.warning("left-over index file not removed", extra={"error_number": error.errno})


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def _write_snapshot(path: Path, rows: IndexRows, *, dim: int, fingerprint_id: str) -> None:
    keys = rows.keys.astype("<i8", copy=False)
    embeddings = np.ascontiguousarray(rows.embeddings.astype("<f4", copy=False))
    parts = [part.reshape(-1).view(np.uint8).data for part in (keys, embeddings)]
    checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        checksum.update(part)
    manifest = _Manifest(
        fingerprint_id=fingerprint_id,
        dim=dim,
        row_count=len(keys),
        payload_bytes=sum(part.nbytes for part in parts),
        payload_blake2b=checksum.hexdigest(),
    )
    encoded = json.dumps(asdict(manifest), sort_keys=True).encode()
    # Left over by a process that was killed; whatever it is, it is not followed.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        _write_all(file, memoryview(_PREFIX.pack(_MAGIC, len(encoded), _digest(encoded)) + encoded))
        for part in parts:
            _write_all(file, part)
        os.fsync(file.fileno())


def _write_all(file: BinaryIO, content: memoryview) -> None:
    while content:
        # A raw write may take less than it was given, at 2 GiB or just before the disk is full.
        written = file.write(content[:_CHUNK_BYTES])
        content = content[written:]


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, unbuffered; a link, a pipe or a device is refused.

    Raises:
        OSError: It cannot be opened or is no regular file.
    """
    # O_NONBLOCK: opening a FIFO that someone put there must not hang.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def sync_folder(folder: Path) -> None:
    """Make what was renamed or removed in a folder survive a power cut."""
    if os.name == "nt":
        # Windows opens no folders; NTFS journals the rename itself.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load(path: Path, *, fingerprint_id: str, dim: int, max_bytes: int) -> SnapshotLoad:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        if status.st_size > max_bytes:
            raise _RefusedError(SnapshotRefusal.TOO_LARGE)
        manifest, payload_start = _read_manifest(file)
        if manifest.fingerprint_id != fingerprint_id:
            raise _RefusedError(SnapshotRefusal.OTHER_MODEL)
        if manifest.dim != dim:
            raise _RefusedError(SnapshotRefusal.OTHER_DIMENSION)
        _check_sizes(manifest, payload_size=status.st_size - payload_start)
        payload = _read_payload(file, manifest)
    return SnapshotLoad(_build_index(payload, manifest))


def _read_manifest(file: BinaryIO) -> tuple[_Manifest, int]:
    prefix = file.read(_PREFIX.size)
    if not prefix.startswith(_MAGIC):
        raise _RefusedError(SnapshotRefusal.UNKNOWN_FORMAT if len(prefix) >= len(_MAGIC) else SnapshotRefusal.DAMAGED)
    if len(prefix) < _PREFIX.size:
        raise _RefusedError(SnapshotRefusal.DAMAGED)
    _, length, digest = _PREFIX.unpack(prefix)
    if length > _MAX_MANIFEST_BYTES:
        raise _RefusedError(SnapshotRefusal.DAMAGED)
    encoded = file.read(length)
    if _digest(encoded) != digest:
        raise _RefusedError(SnapshotRefusal.DAMAGED)
    return _parse_manifest(encoded), _PREFIX.size + length


def _parse_manifest(encoded: bytes) -> _Manifest:
    try:
        manifest = _Manifest(**json.loads(encoded))
    except (ValueError, TypeError, RecursionError):
        raise _RefusedError(SnapshotRefusal.UNKNOWN_FORMAT) from None
    numbers = (manifest.dim, manifest.row_count, manifest.payload_bytes)
    if not all(type(number) is int for number in numbers):
        raise _RefusedError(SnapshotRefusal.UNKNOWN_FORMAT)
    return manifest


def _check_sizes(manifest: _Manifest, *, payload_size: int) -> None:
    row_bytes = _KEY_BYTES + _FLOAT_BYTES * manifest.dim
    expected = manifest.row_count * row_bytes
    if manifest.row_count < 0 or not expected == manifest.payload_bytes == payload_size:
        raise _RefusedError(SnapshotRefusal.DAMAGED)


def _read_payload(file: BinaryIO, manifest: _Manifest) -> npt.NDArray[np.uint8]:
    payload = np.empty(manifest.payload_bytes, np.uint8)
    checksum = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    rest = payload.data
    while rest:
        # `readinto` of a raw file returns None only for one that does not block, which a regular file never is.
        count = file.readinto(rest[:_CHUNK_BYTES])  # type: ignore[attr-defined]
        if not count:
            raise _RefusedError(SnapshotRefusal.DAMAGED)
        checksum.update(rest[:count])
        rest = rest[count:]
    if checksum.hexdigest() != manifest.payload_blake2b:
        raise _RefusedError(SnapshotRefusal.DAMAGED)
    return payload


def _build_index(payload: npt.NDArray[np.uint8], manifest: _Manifest) -> FaissVectorIndex:
    key_bytes = manifest.row_count * _KEY_BYTES
    keys = payload[:key_bytes].view("<i8").astype(np.int64, copy=False)
    embeddings = payload[key_bytes:].view("<f4").astype(np.float32, copy=False).reshape(-1, manifest.dim)
    index = FaissVectorIndex(manifest.dim)
    try:
        index.upsert(keys, embeddings)
    except IndexRowError:
        # A right checksum over wrong rows: whoever wrote this file was not `save_snapshot`.
        raise _RefusedError(SnapshotRefusal.DAMAGED) from None
    return index


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return our error for what the system said of an index file."""
    if error.errno in _FULL:
        return StorageFullError(str(path))
    if error.errno in _READ_ONLY:
        return StorageReadOnlyError(str(path.parent))
    return StorageError(f"{path} cannot be written ({error.strerror}); the index is rebuilt at the next start")
