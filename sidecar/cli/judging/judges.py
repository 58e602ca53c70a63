"""Makes the judge that is to be evaluated, in this process."""

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.judges.choose import choose_judge
from sidecar.adapters.judges.llm import DEFAULT_MAX_BYTES
from sidecar.adapters.judges.local import LocalJudge
from sidecar.adapters.system_clock import SystemClock
from sidecar.domain.judgement import JudgeKind
from sidecar.ports import Judge, LanguageModel


def judge_of(kind: JudgeKind, *, model: LanguageModel | None = None) -> Judge:
    """Return a judge.

    Args:
        model: What the judge `llm` asks; None if there is none.

    Raises:
        InvalidInputError: If the language model is to judge and there is none.
        JudgeUnavailableError: If its files cannot be used.
    """
    return choose_judge(
        kind,
        local=lambda: LocalJudge(OnnxMiniLmEmbedder()),
        model=model,
        clock=SystemClock(),
        max_bytes=DEFAULT_MAX_BYTES,
    )
