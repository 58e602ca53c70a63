"""A language model behind Anthropic's Messages API, `POST /v1/messages`.

The answer's form is asked for as the input of a tool that the model must call: every version of the API knows that.
"""

from collections.abc import Mapping
from typing import Final

from sidecar.adapters.llm.endpoint import LlmAddress
from sidecar.adapters.llm.http_exchange import HttpExchange, HttpReply, count_of
from sidecar.adapters.llm.instructions import with_form
from sidecar.domain.llm import LlmAnswer, LlmEndpoint, LlmRequest
from sidecar.domain.llm_answer import UnreadableAnswerError, fit_answer, read_answer
from sidecar.domain.llm_schema import enforceable
from sidecar.errors import LlmAnswerMalformedError, LlmUnavailableError

_API_VERSION: Final = "2023-06-01"
_OK: Final = 200
_NOT_UNDERSTOOD: Final = 400
_CUT_OFF: Final = frozenset({"max_tokens", "refusal", "model_context_window_exceeded"})
_TOKENS_IN: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicMessagesModel:
    """See `LanguageModel`."""

    def __init__(self, address: LlmAddress, *, api_key: str, timeout_s: float) -> None:
        self._endpoint = address.endpoint
        headers = {"anthropic-version": _API_VERSION, **({"x-api-key": api_key} if api_key else {})}
        self._exchange = HttpExchange(address, headers=headers, timeout_s=timeout_s)
        self._may_force = True

    @property
    def endpoint(self) -> LlmEndpoint:
        """See `LanguageModel.endpoint`."""
        return self._endpoint

    async def complete(self, request: LlmRequest) -> LlmAnswer:
        """See `LanguageModel.complete`."""
        reply = await self._ask(request)
        if reply.status != _OK:
            raise LlmUnavailableError(self._endpoint.host, reply.problem)
        usage = reply.document.get("usage")
        tokens_in = sum(count_of(usage, name) for name in _TOKENS_IN)
        tokens_out = count_of(usage, "output_tokens")
        try:
            fields = _fields_of(reply.document, request)
        except UnreadableAnswerError as error:
            raise LlmAnswerMalformedError(self._endpoint.host, str(error), tokens=tokens_in + tokens_out) from error
        model = reply.document.get("model")
        return LlmAnswer(fields, tokens_in, tokens_out, model if isinstance(model, str) else self._endpoint.model)

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        await self._exchange.close()

    async def _ask(self, request: LlmRequest) -> HttpReply:
        """Ask with the tool; a model that refuses to be forced is asked in words, from then on."""
        if self._may_force:
            reply = await self._exchange.post("/v1/messages", self._body(request, is_forced=True))
            if reply.status != _NOT_UNDERSTOOD:
                return reply
            in_words = await self._exchange.post("/v1/messages", self._body(request, is_forced=False))
            self._may_force = in_words.status != _OK
            return reply if self._may_force else in_words
        return await self._exchange.post("/v1/messages", self._body(request, is_forced=False))

    def _body(self, request: LlmRequest, *, is_forced: bool) -> Mapping[str, object]:
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "max_tokens": request.max_tokens,
            "system": with_form(request),
            "messages": [{"role": "user", "content": request.user}],
        }
        if is_forced:
            description = "Takes the answer."
            tool = {"name": request.name, "description": description, "input_schema": enforceable(request.schema)}
            body["tools"] = [tool]
            body["tool_choice"] = {"type": "tool", "name": request.name}
        return body


def _fields_of(document: Mapping[str, object], request: LlmRequest) -> Mapping[str, object]:
    """Return the answer from the tool's input, or else from the text.

    Raises:
        UnreadableAnswerError: There is none, more than one, or it was cut off.
    """
    if document.get("stop_reason") in _CUT_OFF:
        raise UnreadableAnswerError("it was cut off or refused")
    content = document.get("content")
    blocks = [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    inputs = [block.get("input") for block in blocks if block.get("type") == "tool_use"]
    if len(inputs) == 1:
        return fit_answer(inputs[0], request.schema)
    if inputs:
        raise UnreadableAnswerError("it holds several answers")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return read_answer("\n".join(text for text in texts if isinstance(text, str)), request.schema)
