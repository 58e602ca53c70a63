"""Finds a model that the Hugging Face tools fetched earlier. Never uses the network."""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError

from sidecar.errors import EmbedderUnavailableError


def local_model_folder(model: str) -> Path:
    """Return the folder of a model: the one given, or that of a hub name in the local cache.

    Raises:
        EmbedderUnavailableError: If it is neither.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    try:
        return Path(snapshot_download(model, local_files_only=True))
    except (OSError, HFValidationError) as error:
        raise EmbedderUnavailableError(
            f"no model {model!r} on this machine; fetch it with `hf download {model}`, or give a folder"
        ) from error
