"""Makes the language model that the settings name, with its key and its budget. Connects to nothing.

A URL that cannot be one stops the start, as any such setting does. A key that is not there does not: it depends on who
started the sidecar, and everything but the language model works without.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from sidecar.adapters.judges.choose import choose_judge
from sidecar.client.trusted_files import read_private_file
from sidecar.config import Settings
from sidecar.domain.judgement import JudgeKind
from sidecar.domain.llm import LlmProvider, LlmSpending, LlmStatus
from sidecar.errors import InvalidInputError, UntrustedPathError
from sidecar.ports import Clock, Judge, LlmLedger, Redactor
from sidecar.server import policies
from sidecar.use_cases.spend_llm import SpendLlm


@dataclass(frozen=True)
class LlmSetUp:
    """The language model as it is set up.

    Attributes:
        model: What to ask; None if it is off, or cannot be asked.
        unusable: What is shown in that case.
    """

    model: SpendLlm | None
    unusable: LlmStatus

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be asked although it is set up, for a person; empty otherwise."""
        problem = self.unusable.problem
        return (f"the language model is not asked: {problem}",) if problem and self.model is None else ()

    async def status(self) -> LlmStatus:
        """Return where texts go, and what was spent today."""
        return self.unusable if self.model is None else await self.model.status()

    async def close(self) -> None:
        """Close its connections."""
        if self.model is not None:
            await self.model.close()


def set_up_llm(settings: Settings, *, ledger: LlmLedger, redactor: Redactor, clock: Clock) -> LlmSetUp:
    """Return the language model; call it within the event loop that asks it.

    Raises:
        InvalidInputError: If provider, URL or model do not fit together, or the language model is to judge but off.
    """
    budget = policies.llm_budget(settings)
    provider = LlmProvider(settings.llm)
    if provider is LlmProvider.OFF:
        if settings.judge == JudgeKind.LLM:
            raise InvalidInputError("judge", settings.judge, "`local`, or a language model named by the setting `llm`")
        return LlmSetUp(None, LlmStatus(None, budget, LlmSpending()))
    # The HTTP library takes a tenth of a second to import: for those alone who ask a model.
    from sidecar.adapters.llm.choose import load_with_key  # noqa: PLC0415
    from sidecar.adapters.llm.endpoint import parse_address  # noqa: PLC0415
    from sidecar.adapters.llm.named_model import llm_settings  # noqa: PLC0415

    named = llm_settings(settings)
    endpoint = parse_address(named).endpoint
    try:
        model = load_with_key(named, os.environ, read_private=read_private_file)
    except (InvalidInputError, UntrustedPathError) as error:
        return LlmSetUp(None, LlmStatus(endpoint, budget, LlmSpending(), problem=error.message))
    assert model is not None, "a provider is named"
    spend = SpendLlm(model=model, ledger=ledger, redactor=redactor, budget=budget, clock=clock)
    return LlmSetUp(spend, LlmStatus(endpoint, budget, LlmSpending()))


def pick_judge(settings: Settings, llm: LlmSetUp, *, local: Callable[[], Judge], clock: Clock) -> Judge | None:
    """Return the judge that the settings name.

    None if that is the language model and it cannot be asked; `LlmSetUp.problems` says why.

    Args:
        settings: Those that `set_up_llm` took.
        llm: The language model.
        local: Makes the local judge.
        clock: For chance.
    """
    kind = JudgeKind(settings.judge)
    if kind is JudgeKind.LLM and llm.model is None:
        return None
    return choose_judge(kind, local=local, model=llm.model, clock=clock, max_bytes=settings.judge_llm_bytes)
