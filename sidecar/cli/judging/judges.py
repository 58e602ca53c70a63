"""Makes the judge that is to be evaluated, in this process. One that asks a model asks it as the sidecar does."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sidecar.adapters.embedders.minilm_onnx import OnnxMiniLmEmbedder
from sidecar.adapters.in_memory.llm_ledger import InMemoryLlmLedger
from sidecar.adapters.judges.choose import choose_judge
from sidecar.adapters.judges.local import LocalJudge
from sidecar.adapters.llm.choose import load_with_key
from sidecar.adapters.llm.named_model import llm_settings
from sidecar.adapters.redaction import SecretRedactor
from sidecar.adapters.system_clock import SystemClock
from sidecar.client.trusted_files import read_private_file
from sidecar.config import Settings, load_settings
from sidecar.domain.judgement import JudgeKind
from sidecar.domain.llm import LlmBudget
from sidecar.ports import Judge
from sidecar.use_cases.spend_llm import SpendLlm


@dataclass(frozen=True)
class JudgeAtWork:
    """A judge, and the language model that it asks; None if it asks none."""

    judge: Judge
    model: SpendLlm | None = None


@asynccontextmanager
async def open_judge(
    kind: JudgeKind, home: Path | None, *, max_calls: int | None, max_tokens: int | None
) -> AsyncIterator[JudgeAtWork]:
    """Give a judge while the context is entered.

    Args:
        home: Data folder whose settings name the language model; not looked at for the local judge.
        max_calls: Most questions; None for as many as the settings allow in a day. `max_tokens` likewise.

    Raises:
        InvalidInputError: If the language model is to judge, and is off or not rightly set up.
        UntrustedPathError: If somebody else may read its key.
        JudgeUnavailableError: If the judge's files cannot be used.
    """
    if kind is JudgeKind.LOCAL:
        yield JudgeAtWork(LocalJudge(OnnxMiniLmEmbedder()))
        return
    settings = load_settings(home=home)
    model = _language_model(settings, max_calls, max_tokens)
    judge = choose_judge(
        kind,
        local=lambda: LocalJudge(OnnxMiniLmEmbedder()),
        model=model,
        clock=SystemClock(),
        max_bytes=settings.judge_llm_bytes,
    )
    try:
        yield JudgeAtWork(judge, model)
    finally:
        if model is not None:
            await model.close()


def _language_model(settings: Settings, max_calls: int | None, max_tokens: int | None) -> SpendLlm | None:
    model = load_with_key(llm_settings(settings), os.environ, read_private=read_private_file)
    if model is None:
        return None
    budget = LlmBudget(
        settings.llm_calls_a_day if max_calls is None else max_calls,
        settings.llm_tokens_a_day if max_tokens is None else max_tokens,
    )
    # A ledger of its own: the sidecar's is in the database, which this command does not open.
    return SpendLlm(
        model=model, ledger=InMemoryLlmLedger(), redactor=SecretRedactor(), budget=budget, clock=SystemClock()
    )
