"""What every adapter of a language model must do, over real sockets: answer in the form asked for, or raise."""

import json
import random
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sidecar.adapters.llm.choose import load_language_model
from sidecar.adapters.llm.endpoint import LlmSettings
from sidecar.domain.llm import LlmProvider, LlmRequest
from sidecar.errors import (
    LlmAnswerMalformedError,
    LlmUnavailableError,
    LlmUnreachableError,
)
from sidecar.ports import LanguageModel
from tests.scripted_llm import Reply, ScriptedLlm, anthropic_reply, openai_reply, text_block

SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["used", "relevant", "misled"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "spans": {"type": "array", "maxItems": 3, "items": {"type": "integer"}},
    },
    "required": ["verdict", "confidence"],
}
REQUEST = LlmRequest(system="You judge.", user="Was it used?", schema=SCHEMA, max_tokens=64, name="verdict")
GOOD = {"verdict": "used", "confidence": 0.75, "spans": [1, 2]}
KEY = "key-for-tests-0123456789"


@dataclass(frozen=True)
class Kind:
    """One adapter, and how its server says a text."""

    provider: LlmProvider
    path: str
    says: Callable[[str], Reply]
    is_cut_off: Callable[[str], Reply]


KINDS = (
    Kind(
        LlmProvider.OPENAI_COMPATIBLE,
        "/chat/completions",
        openai_reply,
        lambda text: openai_reply(text, finish_reason="length"),
    ),
    Kind(
        LlmProvider.ANTHROPIC,
        "/v1/messages",
        lambda text: anthropic_reply([text_block(text)], stop_reason="end_turn"),
        lambda text: anthropic_reply([text_block(text)], stop_reason="max_tokens"),
    ),
)


@pytest.fixture(params=KINDS, ids=lambda kind: str(kind.provider))
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each adapter."""
    found: Kind = request.param
    return found


@pytest.fixture
def server() -> Iterator[ScriptedLlm]:
    """An endpoint; the test sets what it says."""
    with ScriptedLlm(lambda _: Reply(status=500)) as running:
        yield running


@pytest.fixture
async def model(kind: Kind, server: ScriptedLlm) -> AsyncIterator[LanguageModel]:
    """The adapter, asking that endpoint."""
    made = make_model(kind, server.url)
    yield made
    await made.close()


def make_model(kind: Kind, url: str, *, timeout_s: float = 20.0) -> LanguageModel:
    """An adapter with a key."""
    settings = LlmSettings(kind.provider, url, "tiny", "TEST_LLM_KEY", timeout_s)
    made = load_language_model(settings, {"TEST_LLM_KEY": KEY})
    assert made is not None
    return made


async def test_good_answer_is_returned_with_its_cost(kind: Kind, server: ScriptedLlm, model: LanguageModel) -> None:
    """Fields as the schema names them, the provider's own count, and the model that answered."""
    server.script = lambda _: kind.says(json.dumps(GOOD))
    answer = await model.complete(REQUEST)
    assert dict(answer.fields) == GOOD
    assert (answer.tokens_in, answer.tokens_out, answer.model) == (100, 20, "tiny-2026")
    assert server.asked[0].path == kind.path


async def test_request_asks_for_the_form_and_limits_the_answer(server: ScriptedLlm, model: LanguageModel) -> None:
    """A server that enforces schemas gets one without what providers refuse; every model reads the full one."""
    await fails(model, LlmUnavailableError)
    body = server.asked[0].body
    assert body["model"] == "tiny"
    assert body["max_tokens"] == 64
    sent = json.dumps(body.get("response_format") or body.get("tools"))
    assert '"additionalProperties": false' in sent
    assert "minimum" not in sent
    assert "minimum" in json.dumps(body["messages"] + [body.get("system", "")])


async def test_status_shows_where_texts_go(kind: Kind, server: ScriptedLlm, model: LanguageModel) -> None:
    """Who uses a model must be able to see the host."""
    assert model.endpoint.host == server.host
    assert model.endpoint.is_local
    assert model.endpoint.provider is kind.provider


@pytest.mark.parametrize(
    "text",
    [
        "```json\n{}\n```",
        "Sure! Here is my verdict:\n\n{}\n\nLet me know if you need {{more}}.",
        '<think>maybe {{"verdict": "misled", "confidence": 1}} or not</think>\n{}',
        "{}\n\nAgain, for clarity: {}",
        "\ufeff  {}\n",
        'An example of what it is not: {{"a": 1}}. The answer: {}',
    ],
    ids=["fenced", "chatty", "thoughts", "repeated", "byte-order-mark", "other-object"],
)
async def test_answer_is_found_whatever_is_around_it(
    kind: Kind, server: ScriptedLlm, model: LanguageModel, text: str
) -> None:
    """Small models chat; that is no reason to drop what they say."""
    server.script = lambda _: kind.says(text.format(*([json.dumps(GOOD)] * 2)))
    assert dict((await model.complete(REQUEST)).fields) == GOOD


async def test_fields_that_were_not_asked_for_are_dropped(
    kind: Kind, server: ScriptedLlm, model: LanguageModel
) -> None:
    """Nothing that no schema checked gets further."""
    server.script = lambda _: kind.says(json.dumps({**GOOD, "__class__": "x", "memory_id": "mem_1"}))
    assert dict((await model.complete(REQUEST)).fields) == GOOD


async def test_answer_that_was_cut_off_is_dropped(kind: Kind, server: ScriptedLlm, model: LanguageModel) -> None:
    """What reads well may be half of what was meant."""
    server.script = lambda _: kind.is_cut_off(json.dumps(GOOD))
    error = await fails(model, LlmAnswerMalformedError)
    assert isinstance(error, LlmAnswerMalformedError)
    assert error.tokens == 120


async def test_500_malformed_answers_are_500_typed_errors(
    kind: Kind, server: ScriptedLlm, model: LanguageModel
) -> None:
    """No text of a model may crash the sidecar, pass the check, or be quoted in a message."""
    chance = random.Random(20261130)
    for number in range(500):
        spoilt = SPOILERS[number % len(SPOILERS)](chance)
        server.script = lambda _, text=spoilt: kind.says(text)  # type: ignore[misc]
        error = await fails(model, LlmAnswerMalformedError)
        assert "secret-in-answer" not in str(error), spoilt[:200]


async def test_responses_that_are_no_answer_are_typed_errors(server: ScriptedLlm, model: LanguageModel) -> None:
    """Proxies and other programs answer on ports as well."""
    for body in NO_ANSWERS:
        server.script = lambda _, body=body: Reply(body)  # type: ignore[misc]
        await fails(model, LlmAnswerMalformedError)


async def test_response_without_end_is_cut_off(server: ScriptedLlm, model: LanguageModel) -> None:
    """A server must not fill our memory."""
    server.script = lambda _: Reply(b" " * (5 * 1024 * 1024))
    await fails(model, LlmAnswerMalformedError)


@pytest.mark.parametrize("status", [301, 401, 404, 429, 500, 503])
async def test_refusal_is_unavailable_and_not_tried_again(
    server: ScriptedLlm, model: LanguageModel, status: int
) -> None:
    """Asking again at once costs money and helps no overloaded server; the body may quote what was sent."""
    body = {"error": {"code": "rate_limit_exceeded", "type": "x", "message": "you said: secret-in-answer"}}
    server.script = lambda _: Reply(json.dumps(body).encode(), status=status)
    error = await fails(model, LlmUnavailableError)
    assert f"HTTP {status} rate_limit_exceeded" in str(error)
    assert "secret-in-answer" not in str(error)
    assert len(server.asked) == 1


async def test_silent_server_is_given_up(kind: Kind, server: ScriptedLlm) -> None:
    """Whoever waits for a model has a deadline, and knows that the call may have cost something."""
    hold = threading.Event()
    server.script = lambda _: Reply(hold=hold)
    model = make_model(kind, server.url, timeout_s=0.3)
    error = await fails(model, LlmUnavailableError)
    assert not isinstance(error, LlmUnreachableError)
    hold.set()
    await model.close()


async def test_server_that_drips_is_given_up(kind: Kind, server: ScriptedLlm) -> None:
    """The deadline is for the whole answer, not for each byte."""
    hold = threading.Event()
    server.script = lambda _: Reply(hold=hold, is_dripping=True)
    model = make_model(kind, server.url, timeout_s=0.4)
    await fails(model, LlmUnavailableError)
    hold.set()
    await model.close()


async def test_server_that_hangs_up_is_asked_once(server: ScriptedLlm, model: LanguageModel) -> None:
    """After a byte was sent, nobody knows what it cost; so it is not sent again."""
    server.script = lambda _: Reply(is_hanging_up=True)
    error = await fails(model, LlmUnavailableError)
    assert not isinstance(error, LlmUnreachableError)
    assert len(server.asked) == 1


async def test_nobody_there_is_unreachable(kind: Kind) -> None:
    """Nothing was sent, so nothing was spent."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        model = make_model(kind, f"http://127.0.0.1:{port}")
        await fails(model, LlmUnreachableError)
    await model.close()


async def test_redirect_is_not_followed(server: ScriptedLlm, model: LanguageModel) -> None:
    """Texts go to the host that the user named and that status shows, nowhere else."""
    with ScriptedLlm(lambda _: Reply()) as elsewhere:
        server.script = lambda _: Reply(status=307, headers={"Location": elsewhere.url})
        await fails(model, LlmUnavailableError)
        assert elsewhere.asked == []


async def test_local_model_is_asked_without_a_proxy(
    kind: Kind, server: ScriptedLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would carry what is meant for this machine to another."""
    server.script = lambda _: kind.says(json.dumps(GOOD))
    with ScriptedLlm(lambda _: Reply(status=403)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        model = make_model(kind, server.url)
        await model.complete(REQUEST)
        await model.close()
        assert proxy.asked == []
        assert proxy.tunnels == []


async def test_key_goes_into_its_header_and_nowhere_else(
    kind: Kind, server: ScriptedLlm, model: LanguageModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A key in a log or a message is a key that is lost."""
    caplog.set_level("DEBUG")
    error = await fails(model, LlmUnavailableError)
    asked = server.asked[0]
    holders = {name.lower() for name, value in asked.headers.items() if KEY in value}
    assert holders == {"authorization" if kind.provider is LlmProvider.OPENAI_COMPATIBLE else "x-api-key"}
    assert KEY not in asked.raw.decode()
    assert KEY not in str(error) + caplog.text + repr(vars(model))


async def fails(model: LanguageModel, kind: type[Exception]) -> Exception:
    """Ask and return how it failed."""
    with pytest.raises(kind) as failed:
        await model.complete(REQUEST)
    return failed.value


def spoilt_fields(chance: random.Random) -> str:
    """A field of a wrong kind, outside its limits, or missing."""
    wrong: dict[str, list[Any]] = {
        "verdict": ["secret-in-answer", "USED", "", None, 1, ["used"], {"used": True}, "used ", "\ud800"],
        "confidence": [7, -0.01, "0.5", None, True, [], 10**400, {"value": 0.5}],
        "spans": ["1", [1.5], ["1"], [1, 2, 3, 4], {"0": 1}, 3, [None], [[1]]],
    }
    name = chance.choice(sorted(wrong))
    answer = {**GOOD, name: chance.choice(wrong[name])}
    if chance.random() < 0.2:
        del answer[chance.choice(["verdict", "confidence"])]
    return json.dumps(answer)


def cut(chance: random.Random) -> str:
    """A part of a good answer, which is none."""
    text = json.dumps(GOOD)
    return text[: chance.randrange(len(text))]


def no_json(chance: random.Random) -> str:
    """What looks like JSON, Python or anything else."""
    return chance.choice(
        [
            "",
            " \n",
            "\0",
            "null",
            "[]",
            '"used"',
            "used, secret-in-answer",
            str(GOOD),
            '{"verdict": "used", "confidence": NaN}',
            '{"verdict": "used", "confidence": Infinity}',
            '{"verdict": "used", "confidence": 1e999}',
            '{"verdict": "used", "confidence": .5}',
            "{verdict: used, confidence: 0.5}",
            '{"verdict": "used" "confidence": 0.5}',
            "__import__('os').system('touch secret-in-answer')",
            '{"verdict": __import__("os").name, "confidence": 1}',
            "<html><body>secret-in-answer</body></html>",
            "{" * chance.randrange(1, 5000),
            "[" * chance.randrange(1, 20000),
            '{"a":' * chance.randrange(1, 5000) + "1",
            '{"verdict": "used", "confidence": ' + "9" * 5000 + "}",
        ]
    )


def contradicting(chance: random.Random) -> str:
    """Two answers, or one that says two things."""
    other = json.dumps({**GOOD, "verdict": "misled"})
    return chance.choice(
        [
            f"{json.dumps(GOOD)}\n{other}",
            f"It could be {other}, but I say: {json.dumps(GOOD)}",
            '{"verdict": "used", "verdict": "misled", "confidence": 0.5}',
        ]
    )


def noise(chance: random.Random) -> str:
    """Characters at random, braces and quotes among them."""
    return "".join(chance.choice('{}[]",:\\ \n\0aé\u202e💥09') for _ in range(chance.randrange(1, 400)))


SPOILERS = (spoilt_fields, cut, no_json, contradicting, noise)
NO_ANSWERS: tuple[bytes, ...] = (
    b"",
    b"\xff\xfe\x00",
    b"<html>hello</html>",
    b"[]",
    b"null",
    b"{}",
    b'{"choices": []}',
    b'{"choices": {}}',
    b'{"choices": [null]}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": {"content": null}}]}',
    b'{"choices": [{"message": {"content": [{"type": "text"}]}}]}',
    b'{"content": null}',
    b'{"content": [null, 1, {"type": "text"}]}',
    b'{"content": [{"type": "tool_use", "input": []}]}',
    b'{"content": [{"type": "tool_use", "input": {}}, {"type": "tool_use", "input": {}}]}',
    b"[" * 100_000,
)
