"""Spending on the language model: never over the budget, never with a secret, always counted. Over real sockets."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from sidecar.adapters.in_memory.llm_ledger import InMemoryLlmLedger
from sidecar.adapters.llm.choose import load_language_model
from sidecar.adapters.llm.endpoint import LlmSettings
from sidecar.adapters.redaction import SecretRedactor
from sidecar.domain.llm import LlmBudget, LlmProvider, LlmRequest, LlmSpending
from sidecar.errors import (
    InvalidInputError,
    LlmAnswerMalformedError,
    LlmBudgetSpentError,
    LlmUnavailableError,
    LlmUnreachableError,
)
from sidecar.ports import Redactor
from sidecar.use_cases.spend_llm import SpendLlm
from tests.scripted_llm import Reply, ScriptedLlm, openai_reply
from tests.unit.fake_parts import START, PlainRedactor, SteppingClock

SCHEMA = {"type": "object", "properties": {"same": {"type": "boolean"}}, "required": ["same"]}
REQUEST = LlmRequest("Compare.", "a | b", SCHEMA, max_tokens=50)
WIDE = LlmBudget(1_000, 10_000_000)
GOOD = openai_reply('{"same": true}')
TODAY = START.date()


@pytest.fixture
def server() -> Iterator[ScriptedLlm]:
    """An endpoint that answers well unless the test says otherwise."""
    with ScriptedLlm(lambda _: GOOD) as running:
        yield running


@asynccontextmanager
async def spender(
    url: str,
    *,
    budget: LlmBudget = WIDE,
    ledger: InMemoryLlmLedger | None = None,
    redactor: Redactor | None = None,
    clock: SteppingClock | None = None,
) -> AsyncIterator[SpendLlm]:
    """The use case over a real adapter."""
    model = load_language_model(LlmSettings(LlmProvider.OPENAI_COMPATIBLE, url, "tiny", timeout_s=10), {})
    assert model is not None
    made = SpendLlm(
        model=model,
        ledger=ledger or InMemoryLlmLedger(),
        redactor=redactor or PlainRedactor(),
        budget=budget,
        clock=clock or SteppingClock(),
    )
    yield made
    await made.close()


async def test_calls_beyond_the_budget_are_not_sent(server: ScriptedLlm) -> None:
    """A hard limit is one that the server can see."""
    async with spender(server.url, budget=LlmBudget(3, 10_000_000)) as llm:
        for _ in range(3):
            await llm.complete(REQUEST)
        with pytest.raises(LlmBudgetSpentError, match="3 of 3 calls"):
            await llm.complete(REQUEST)
        status = await llm.status()
    assert len(server.asked) == 3
    assert status.spent_today == LlmSpending(3, 3 * 120)
    assert status.counters == {"answered": 3, "malformed": 0, "unavailable": 0, "over_budget": 1, "redacted": 0}
    assert "budget" in status.problem
    assert status.endpoint is not None
    assert status.endpoint.host == server.host


async def test_budget_holds_when_many_ask_at_once(server: ScriptedLlm) -> None:
    """Tokens are set aside before they are spent, so that calls under way cannot add up to more."""
    most = REQUEST.most_tokens
    async with spender(server.url, budget=LlmBudget(1_000, 3 * most)) as llm:
        outcomes = await asyncio.gather(*(llm.complete(REQUEST) for _ in range(20)), return_exceptions=True)
        spent = (await llm.status()).spent_today
    refused = [outcome for outcome in outcomes if isinstance(outcome, LlmBudgetSpentError)]
    assert len(refused) + len(server.asked) == 20
    assert spent.tokens <= 3 * most


async def test_question_too_long_for_the_budget_is_not_sent(server: ScriptedLlm) -> None:
    """No tokenizer makes more tokens than bytes, so bytes are what is set aside."""
    async with spender(server.url, budget=LlmBudget(10, 4_000)) as llm:
        with pytest.raises(LlmBudgetSpentError):
            await llm.complete(LlmRequest("", "é" * 2_000, SCHEMA))
    assert server.asked == []


async def test_next_day_has_a_new_budget(server: ScriptedLlm) -> None:
    """Days are counted in UTC."""
    clock = SteppingClock()
    async with spender(server.url, budget=LlmBudget(1, 1_000_000), clock=clock) as llm:
        await llm.complete(REQUEST)
        with pytest.raises(LlmBudgetSpentError):
            await llm.complete(REQUEST)
        clock.advance(hours=24)
        await llm.complete(REQUEST)
        assert (await llm.status()).spent_today.calls == 1


async def test_zero_budget_sends_nothing(server: ScriptedLlm) -> None:
    """0 is off."""
    async with spender(server.url, budget=LlmBudget(0, 0)) as llm:
        with pytest.raises(LlmBudgetSpentError):
            await llm.complete(REQUEST)
    assert server.asked == []


async def test_what_nobody_received_costs_nothing() -> None:
    """A model that is not running must not use up the day."""
    ledger = InMemoryLlmLedger()
    with ScriptedLlm(lambda _: GOOD) as gone:
        url = gone.url
    async with spender(url, ledger=ledger) as llm:
        with pytest.raises(LlmUnreachableError):
            await llm.complete(REQUEST)
        assert (await llm.status()).counters["unavailable"] == 1
    assert await ledger.spent(TODAY) == LlmSpending()


async def test_failed_call_stays_counted_in_full(server: ScriptedLlm) -> None:
    """It may have been worked on, and nobody told what it cost."""
    server.script = lambda _: Reply(status=500)
    async with spender(server.url) as llm:
        with pytest.raises(LlmUnavailableError):
            await llm.complete(REQUEST)
        assert (await llm.status()).spent_today == LlmSpending(1, REQUEST.most_tokens)


async def test_malformed_answer_is_counted_and_paid(server: ScriptedLlm) -> None:
    """A model that never answers well must be seen, and must not be free."""
    server.script = lambda _: openai_reply("I cannot answer that.")
    async with spender(server.url) as llm:
        for _ in range(2):
            with pytest.raises(LlmAnswerMalformedError):
                await llm.complete(REQUEST)
        status = await llm.status()
        server.script = lambda _: GOOD
        await llm.complete(REQUEST)
        recovered = await llm.status()
    assert status.counters["malformed"] == 2
    assert status.spent_today == LlmSpending(2, 240)
    assert "dropped" in status.problem
    assert recovered.problem == ""


async def test_answer_without_a_count_costs_what_was_set_aside(server: ScriptedLlm) -> None:
    """A server that does not count must not be free."""
    server.script = lambda _: openai_reply('{"same": true}', usage={})
    async with spender(server.url) as llm:
        await llm.complete(REQUEST)
        assert (await llm.status()).spent_today.tokens == REQUEST.most_tokens


async def test_cancelled_call_stays_counted(server: ScriptedLlm) -> None:
    """Whoever stops waiting has not stopped the server."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def script(_: object) -> Reply:
        loop.call_soon_threadsafe(asked.set)
        return Reply(status=500)

    server.script = script
    ledger = InMemoryLlmLedger()
    async with spender(server.url, ledger=ledger) as llm:
        task = asyncio.create_task(llm.complete(REQUEST))
        await asked.wait()
        task.cancel()
        with pytest.raises((asyncio.CancelledError, LlmUnavailableError)):
            await task
    assert (await ledger.spent(TODAY)).calls == 1


async def test_no_secret_is_in_what_was_sent(server: ScriptedLlm) -> None:
    """Memories are redacted when stored, transcripts may not be; here is the last place where it can be seen to."""
    secrets = (
        "sk" + "-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3 + "aB3dE6gH9jKAA",
        "gh" + "p_" + "a1B2c3D4e5F6" * 3,
    )
    async with spender(server.url, redactor=SecretRedactor()) as llm:
        await llm.complete(LlmRequest(f"key {secrets[0]}", f"token={secrets[1]} | \ud800 b\r\n", SCHEMA))
        assert (await llm.status()).counters["redacted"] == 2
    sent = server.everything.decode()
    assert not any(secret in sent for secret in secrets)
    assert json.dumps(server.asked[0].body).count("[redacted:") == 2


async def test_schema_with_a_secret_is_refused(server: ScriptedLlm) -> None:
    """It cannot be redacted without asking something else."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": ["hunter2"]}}}
    async with spender(server.url) as llm:
        with pytest.raises(InvalidInputError) as failed:
            await llm.complete(LlmRequest("", "", schema))
    assert "hunter2" not in str(failed.value)
    assert server.asked == []


async def test_question_that_is_not_waited_for_is_counted(server: ScriptedLlm) -> None:
    """A model that is too slow for those who ask must not look well; what it may charge stays counted."""
    answering = threading.Event()
    server.script = lambda _: replace(GOOD, hold=answering)
    async with spender(server.url) as llm:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await llm.complete(REQUEST)
        status = await llm.status()
        answering.set()
    assert status.counters["unavailable"] == 1
    assert "longer than anybody waited" in status.problem
    assert status.spent_today == LlmSpending(1, REQUEST.most_tokens)
