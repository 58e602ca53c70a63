"""A language model behind `POST /chat/completions`: OpenAI, Ollama, vLLM, llama.cpp and whatever speaks as they do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.adapters.llm.endpoint import LlmAddress
from sidecar.adapters.llm.http_exchange import HttpExchange, HttpReply, count_of
from sidecar.adapters.llm.instructions import with_form
from sidecar.domain.llm import LlmAnswer, LlmEndpoint, LlmRequest
from sidecar.domain.llm_answer import UnreadableAnswerError, read_answer
from sidecar.domain.llm_schema import enforceable, requires_all
from sidecar.errors import LlmAnswerMalformedError, LlmUnavailableError

_OK: Final = 200
_NOT_UNDERSTOOD: Final = frozenset({400, 422})


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a server understands: newer models refuse `max_tokens` and a temperature, older servers a schema."""

    limit_field: str
    has_temperature: bool
    has_schema: bool


_DIALECTS: Final = (
    _Dialect("max_tokens", has_temperature=True, has_schema=True),
    _Dialect("max_completion_tokens", has_temperature=False, has_schema=True),
    _Dialect("max_tokens", has_temperature=True, has_schema=False),
)


class OpenAiCompatibleModel:
    """See `LanguageModel`. Finds out with its first questions which dialect the server understands."""

    def __init__(self, address: LlmAddress, *, api_key: str, timeout_s: float) -> None:
        self._endpoint = address.endpoint
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._exchange = HttpExchange(address, headers=headers, timeout_s=timeout_s)
        self._dialects: tuple[_Dialect, ...] = _DIALECTS

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
        tokens_in, tokens_out = count_of(usage, "prompt_tokens"), count_of(usage, "completion_tokens")
        try:
            fields = read_answer(_text_of(reply.document), request.schema)
        except UnreadableAnswerError as error:
            raise LlmAnswerMalformedError(self._endpoint.host, str(error), tokens=tokens_in + tokens_out) from error
        model = reply.document.get("model")
        return LlmAnswer(fields, tokens_in, tokens_out, model if isinstance(model, str) else self._endpoint.model)

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        await self._exchange.close()

    async def _ask(self, request: LlmRequest) -> HttpReply:
        """Ask in the first dialect that is understood, and keep to it from then on."""
        refusal: HttpReply | None = None
        for dialect in self._dialects:
            reply = await self._exchange.post("/chat/completions", self._body(request, dialect))
            if reply.status == _OK:
                self._dialects = (dialect,)
            if reply.status not in _NOT_UNDERSTOOD:
                return reply
            refusal = refusal or reply
        assert refusal is not None, "there is a dialect"
        return refusal

    def _body(self, request: LlmRequest, dialect: _Dialect) -> Mapping[str, object]:
        body: dict[str, object] = {
            "model": self._endpoint.model,
            "messages": [
                {"role": "system", "content": with_form(request)},
                {"role": "user", "content": request.user},
            ],
            "stream": False,
            dialect.limit_field: request.max_tokens,
        }
        if dialect.has_temperature:
            body["temperature"] = 0
        if dialect.has_schema:
            form = {
                "name": request.name,
                "strict": requires_all(request.schema),
                "schema": enforceable(request.schema),
            }
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body


def _text_of(document: Mapping[str, object]) -> str:
    """Return what the model wrote in its first choice.

    Raises:
        UnreadableAnswerError: It wrote nothing, or not to its end.
    """
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise UnreadableAnswerError("the response holds no message")
    if choice.get("finish_reason") in {"length", "content_filter"}:
        raise UnreadableAnswerError("it was cut off")
    text = message.get("content")
    if not isinstance(text, str):
        raise UnreadableAnswerError("the message holds no text")
    return text
