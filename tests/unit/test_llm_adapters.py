"""What is particular to each interface of a language model, and to the settings that name one."""

import json
from typing import Any

import pytest

from sidecar.adapters.llm.choose import load_language_model
from sidecar.adapters.llm.endpoint import LlmSettings, is_loopback, parse_address
from sidecar.domain.llm import LlmProvider, LlmRequest
from sidecar.errors import InvalidInputError, LlmAnswerMalformedError, LlmUnavailableError
from sidecar.ports import LanguageModel
from tests.scripted_llm import Asked, Reply, ScriptedLlm, anthropic_reply, openai_reply, text_block, tool_block

SCHEMA = {"type": "object", "properties": {"same": {"type": "boolean"}}, "required": ["same"]}
REQUEST = LlmRequest("Compare.", "a | b", SCHEMA, name="verdict")
TEXT = '{"same": true}'


def made(provider: LlmProvider, url: str) -> LanguageModel:
    """An adapter without a key."""
    model = load_language_model(LlmSettings(provider, url, "tiny"), {})
    assert model is not None
    return model


def refuse_unless(accepted: Any) -> Any:
    """A server that answers 400 to any body that `accepted` is not content with."""

    def script(asked: Asked) -> Reply:
        body = {"error": {"type": "invalid_request_error", "message": "Unsupported parameter"}}
        return openai_reply(TEXT) if accepted(asked.body) else Reply(json.dumps(body).encode(), status=400)

    return script


@pytest.mark.parametrize(
    ("accepted", "attempts"),
    [
        (lambda body: "max_tokens" in body and "response_format" in body, 1),
        (lambda body: "max_completion_tokens" in body and "temperature" not in body, 2),
        (lambda body: "response_format" not in body, 3),
    ],
    ids=["usual", "reasoning-model", "no-schemas"],
)
async def test_dialect_of_the_server_is_found_once(accepted: Any, attempts: int) -> None:
    """Servers differ in what they refuse; what was understood is used from then on."""
    with ScriptedLlm(refuse_unless(accepted)) as server:
        model = made(LlmProvider.OPENAI_COMPATIBLE, server.url)
        for _ in range(2):
            assert (await model.complete(REQUEST)).fields["same"] is True
        assert len(server.asked) == attempts + 1
        await model.close()


async def test_server_that_refuses_every_dialect_is_unavailable() -> None:
    """The first refusal is told, since it answers to the richest request."""
    with ScriptedLlm(refuse_unless(lambda _: False)) as server:
        model = made(LlmProvider.OPENAI_COMPATIBLE, server.url)
        with pytest.raises(LlmUnavailableError, match="HTTP 400 invalid_request_error"):
            await model.complete(REQUEST)
        await model.close()


async def test_anthropic_answer_comes_as_the_input_of_the_tool() -> None:
    """The model must call the one tool there is, and its text beside that is passed over."""
    blocks: list[object] = [text_block("Let me see."), tool_block({"same": False, "extra": 1})]
    with ScriptedLlm(lambda _: anthropic_reply(blocks)) as server:
        model = made(LlmProvider.ANTHROPIC, server.url)
        assert dict((await model.complete(REQUEST)).fields) == {"same": False}
        assert server.asked[0].body["tool_choice"] == {"type": "tool", "name": "verdict"}
        assert server.asked[0].headers["anthropic-version"]
        await model.close()


@pytest.mark.parametrize(
    "blocks",
    [
        [tool_block({"same": "yes"})],
        [tool_block([True])],
        [tool_block({"same": True}), tool_block({"same": False})],
        [],
    ],
)
async def test_anthropic_input_that_does_not_fit_is_dropped(blocks: list[object]) -> None:
    """A forced tool is a request, not a guarantee."""
    with ScriptedLlm(lambda _: anthropic_reply(blocks)) as server:
        model = made(LlmProvider.ANTHROPIC, server.url)
        with pytest.raises(LlmAnswerMalformedError):
            await model.complete(REQUEST)
        await model.close()


async def test_anthropic_model_that_cannot_be_forced_is_asked_in_words() -> None:
    """Models that think first refuse a forced tool."""

    def script(asked: Asked) -> Reply:
        return Reply(status=400) if "tools" in asked.body else anthropic_reply([text_block(TEXT)])

    with ScriptedLlm(script) as server:
        model = made(LlmProvider.ANTHROPIC, server.url)
        for _ in range(2):
            assert (await model.complete(REQUEST)).fields["same"] is True
        assert len(server.asked) == 3
        await model.close()


async def test_missing_and_odd_counts_are_zero() -> None:
    """A count that is none must not make a budget."""
    odd: tuple[object, ...] = ({}, [], "x", {"prompt_tokens": -5, "completion_tokens": True})
    for usage in odd:
        with ScriptedLlm(lambda _, usage=usage: openai_reply(TEXT, usage=usage)) as server:  # type: ignore[misc]
            model = made(LlmProvider.OPENAI_COMPATIBLE, server.url)
            assert (await model.complete(REQUEST)).tokens == 0
            await model.close()


def test_it_is_off_by_default() -> None:
    """Nothing leaves the machine unless somebody asked for it."""
    assert load_language_model(LlmSettings(), {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host/v1",
        "https://",
        "https://user:pass-word@host/v1",
        "https://host/v1?key=pass-word",
        "https://host/v1#x",
        "http://host:port/",
        "http://[::1/v1",
    ],
)
def test_bad_url_is_refused_and_shows_no_password(url: str) -> None:
    """A password in a URL would be shown wherever the host is."""
    with pytest.raises(InvalidInputError, match="llm_base_url") as failed:
        parse_address(LlmSettings(LlmProvider.OPENAI_COMPATIBLE, url, "tiny"))
    assert "pass-word" not in str(failed.value)


@pytest.mark.parametrize(
    ("url", "host", "is_local"),
    [
        ("http://127.0.0.1:11434/v1/", "127.0.0.1:11434", True),
        ("http://localhost/v1", "localhost", True),
        ("http://[::1]:80", "[::1]:80", True),
        ("https://api.example.com/v1", "api.example.com", False),
        ("http://localhost.example.com", "localhost.example.com", False),
        ("http://192.168.0.7:8000", "192.168.0.7:8000", False),
    ],
)
def test_address_says_whose_machine_it_is(url: str, host: str, is_local: bool) -> None:
    """Status shows the host; proxies and unencrypted keys depend on whether it is this machine."""
    address = parse_address(LlmSettings(LlmProvider.OPENAI_COMPATIBLE, url, "tiny"))
    assert (address.endpoint.host, address.endpoint.is_local) == (host, is_local)
    assert not address.url.endswith("/")


def test_loopback_is_told_by_address() -> None:
    """The whole block is this machine, and names that only begin like it are not."""
    assert all(map(is_loopback, ("127.9.9.9", "::1", "LOCALHOST")))
    assert not any(map(is_loopback, ("127.0.0.1.example.com", "0.0.0.0", "example.com", "")))


@pytest.mark.parametrize(
    ("url", "variable", "environment", "named"),
    [
        ("https://h/v1", "MY_KEY", {}, "MY_KEY"),
        ("https://h/v1", "MY_KEY", {"MY_KEY": "two words"}, "MY_KEY"),
        ("https://h/v1", "MY_KEY", {"MY_KEY": "line\nbreak"}, "MY_KEY"),
        ("https://h/v1", "sk-the-key-itself", {}, "llm_api_key_variable"),
        ("http://h/v1", "MY_KEY", {"MY_KEY": "good-key"}, "llm_base_url"),
    ],
)
def test_key_that_cannot_be_used_is_refused(url: str, variable: str, environment: dict[str, str], named: str) -> None:
    """A wrong key is told at once, and no key is shown or sent in clear over a network."""
    settings = LlmSettings(LlmProvider.OPENAI_COMPATIBLE, url, "tiny", variable)
    with pytest.raises(InvalidInputError) as failed:
        load_language_model(settings, environment)
    assert named in str(failed.value)
    assert not any(value in str(failed.value) for value in (*environment.values(), "sk-the-key-itself"))


def test_model_name_is_needed() -> None:
    """There is no model that every server has."""
    with pytest.raises(InvalidInputError, match="llm_model"):
        parse_address(LlmSettings(LlmProvider.ANTHROPIC, "https://h", " "))
