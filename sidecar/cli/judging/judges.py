"""The judges that can be evaluated; the place where another one is added."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.judges.local import LocalJudge
from sidecar.errors import JudgeUnavailableError
from sidecar.ports import Judge


class JudgeKind(StrEnum):
    """Which judge."""

    LOCAL = "local"
    LLM = "llm"


def judge_of(kind: JudgeKind) -> Judge:
    """Return a judge that runs in this process.

    Raises:
        JudgeUnavailableError: If it cannot run here.
    """
    make = _JUDGES.get(kind)
    if make is None:
        raise JudgeUnavailableError(kind.value, "no language model is set up for it; use `--judge local`")
    return make()


def _local() -> Judge:
    return LocalJudge(OnnxMiniLmEmbedder())


_JUDGES: Final[Mapping[JudgeKind, Callable[[], Judge]]] = {JudgeKind.LOCAL: _local}
