"""Finds model files that come with a pip package, and verifies them. Imports no such package: weights are only data."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Final

from sidecar.errors import EmbedderUnavailableError

_CHUNK_BYTES: Final = 1 << 20


def package_folder(package: str, *, distribution: str) -> Path:
    """Return the folder of an installed package without running any of its code.

    Args:
        package: Its import name, top level.
        distribution: Its name for pip, for the message.

    Raises:
        EmbedderUnavailableError: If it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderUnavailableError(f"the package {distribution} is not installed; run `pip install {distribution}`")
    return Path(next(iter(spec.submodule_search_locations)))


def read_verified(path: Path, *, sha256: str, origin: str) -> bytes:
    """Return the bytes of a file whose SHA-256 is known; what was checked is what is used.

    Args:
        path: The file, read whole.
        sha256: What it must be, in hexadecimal.
        origin: The pip name of what it comes with, for the message.

    Raises:
        EmbedderUnavailableError: If it is missing, cannot be read, or differs.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbedderUnavailableError(
            f"{path} cannot be read ({error.strerror}); run `pip install --force-reinstall {origin}`"
        ) from error
    _require_same(path, hashlib.sha256(content).hexdigest(), sha256, origin)
    return content


def verify_file(path: Path, *, sha256: str, origin: str) -> None:
    """Check a file that a library will read itself; see `read_verified`."""
    _require_same(path, file_sha256(path), sha256, origin)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal, reading it in pieces.

    Raises:
        EmbedderUnavailableError: If it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise EmbedderUnavailableError(f"{path} cannot be read ({error.strerror})") from error
    return digest.hexdigest()


def _require_same(path: Path, found: str, expected: str, origin: str) -> None:
    if found != expected:
        raise EmbedderUnavailableError(
            f"{path} has SHA-256 {found}, not {expected}, and was not loaded; "
            f"run `pip install --force-reinstall {origin}`"
        )
