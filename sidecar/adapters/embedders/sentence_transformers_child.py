"""The process that runs sentence-transformers: `python -I -m <this module> MODEL NAME`. Not for import.

It is apart from the sidecar because importing torch takes seconds, its OpenMP library and FAISS's crash together on
some systems, and whatever a model does can then end this process only. It ends when its parent closes the pipe or dies.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from sidecar.adapters.embedders.child_protocol import (
    Failure,
    receive_request,
    send_embeddings,
    send_failure,
    send_fingerprint,
)
from sidecar.adapters.embedders.model_folder import weights_fingerprint
from sidecar.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from sidecar.adapters.embedders.hosted_model import HostedModel

_ENVIRONMENT: Final = {
    # A hub name with the network blocked would retry for a minute; whoever wants a model fetches it beforehand.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # More threads than one spin beside a busy compiler and take ten times as long.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def _claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout for the protocol; what any library prints goes to stderr instead."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return requests, answers


def _serve(model: "HostedModel", requests: BinaryIO, answers: BinaryIO) -> None:
    while (request := receive_request(requests)) is not None:
        try:
            embeddings = model.embed(request)
        except Exception as error:  # noqa: BLE001 - the parent is told, and one bad text must not end the process
            # Not the message: it may quote the text.
            send_failure(answers, Failure(f"the model failed with {type(error).__name__}"))
        else:
            send_embeddings(answers, embeddings)


def _load(model_source: str, name: str) -> "HostedModel":
    # Not at the top: these libraries read the environment when imported, print, and may not be installed.
    from sidecar.adapters.embedders.local_models import local_model_folder  # noqa: PLC0415

    folder = local_model_folder(model_source)
    weights = weights_fingerprint(folder)
    # Last, because it takes seconds and a refusal should not.
    from sidecar.adapters.embedders.hosted_model import HostedModel  # noqa: PLC0415

    return HostedModel(folder, name=name, weights=weights)


def main() -> int:
    """Load the model of the first argument, called by the second, and answer requests until the pipe ends."""
    model_source, name = sys.argv[1:3]
    requests, answers = _claim_pipes()
    os.environ.update(_ENVIRONMENT)
    try:
        model = _load(model_source, name)
    except EmbedderUnavailableError as error:
        send_failure(answers, Failure(str(error.metadata.get("problem", error.message))))
        return 1
    except Exception as error:  # noqa: BLE001 - a foreign model fails in any way; the parent raises it as ours
        send_failure(answers, Failure(f"{model_source} does not load: {type(error).__name__}: {error}"))
        return 1
    send_fingerprint(answers, model.fingerprint)
    _serve(model, requests, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
