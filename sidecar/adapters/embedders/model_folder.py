"""Decides whether a sentence-transformers model folder may be loaded: data yes, code no. Loads nothing itself."""

import hashlib
import json
from pathlib import Path
from typing import Final

from sidecar.adapters.embedders.packaged_files import file_sha256
from sidecar.errors import EmbedderUnavailableError

_PICKLE_SUFFIXES: Final = frozenset({".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib"})
_OWN_MODULES: Final = "sentence_transformers."


def weights_fingerprint(folder: Path) -> str:
    """Return the SHA-256 of the folder's safetensors: of the file, or of the list of files if there are several.

    Raises:
        EmbedderUnavailableError: If it has none, has a part in a pickle format only, or names code of its own.
    """
    _refuse_own_code(folder)
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        raise EmbedderUnavailableError(
            f"{folder} has no *.safetensors file, and other weight formats can run code; use a model that ships one"
        )
    _refuse_pickled_parts(folder)
    digests = [file_sha256(path) for path in weights]
    if len(digests) == 1:
        return digests[0]
    lines = (f"{path.relative_to(folder).as_posix()} {digest}\n" for path, digest in zip(weights, digests, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _refuse_own_code(folder: Path) -> None:
    path = folder / "modules.json"
    try:
        modules = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbedderUnavailableError(
            f"{folder} is not a sentence-transformers model: its modules.json cannot be read"
        ) from error
    types = [module.get("type") if isinstance(module, dict) else None for module in modules]
    for module_type in types:
        if not isinstance(module_type, str) or not module_type.startswith(_OWN_MODULES):
            raise EmbedderUnavailableError(
                f"{path} asks for {module_type!r}, which is not part of sentence-transformers; "
                "models with code of their own are not run"
            )


def _refuse_pickled_parts(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.suffix.lower() in _PICKLE_SUFFIXES and not any(path.parent.glob("*.safetensors")):
            raise EmbedderUnavailableError(f"{path} has no safetensors beside it and can run code; it is not loaded")
