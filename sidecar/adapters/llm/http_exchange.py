"""One JSON request and its JSON answer over HTTP, with limits of time and size. Knows no provider.

Follows no redirect, since texts must reach the named host only, and tries again only what was never sent.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx2

from sidecar.adapters.llm.endpoint import LlmAddress
from sidecar.errors import LlmAnswerMalformedError, LlmUnavailableError, LlmUnreachableError

MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
_CONNECT_ATTEMPTS: Final = 3
_FIRST_PAUSE_S: Final = 0.1
_OK: Final = 200
# A provider's word for what is wrong, such as `model_not_found`. Its sentences may quote what we sent.
_ERROR_WORD: Final = re.compile(r"[a-z_]{3,60}")


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What came back.

    Attributes:
        document: The JSON object of the body; empty if the status is not 200 and the body is something else.
    """

    status: int
    document: Mapping[str, object]

    @property
    def problem(self) -> str:
        """The status with the provider's own word for it, if it gave one. Quotes nothing of what was sent."""
        error = self.document.get("error")
        words = [error.get(name) for name in ("code", "type")] if isinstance(error, Mapping) else []
        word = next((text for text in words if isinstance(text, str) and _ERROR_WORD.fullmatch(text)), "")
        return f"HTTP {self.status} {word}".rstrip()


class HttpExchange:
    """Sends requests to one address. Reuses connections; create it within the event loop that uses it."""

    def __init__(self, address: LlmAddress, *, headers: Mapping[str, str], timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._client = httpx2.AsyncClient(
            headers={**headers, "Accept": "application/json", "Accept-Encoding": "identity"},
            # The total time is ours to keep: a server that sends a byte a second would satisfy the library's.
            timeout=httpx2.Timeout(timeout_s),
            follow_redirects=False,
            # A proxy would carry texts meant for this machine to another.
            trust_env=not address.endpoint.is_local,
        )

    async def post(self, path: str, body: Mapping[str, object]) -> HttpReply:
        """Send one request.

        Raises:
            LlmUnreachableError: No connection came about, tried three times.
            LlmUnavailableError: The connection broke, or the time was over.
            LlmAnswerMalformedError: The answer is too long or no JSON object.
        """
        content = json.dumps(body, ensure_ascii=True).encode()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(f"{self._address.url}{path}", content)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise LlmUnavailableError(self._host, f"not within {self._timeout_s:g} s") from error
        except httpx2.HTTPError as error:
            # Not its text, which may hold the URL's secrets or parts of a broken answer.
            raise LlmUnavailableError(self._host, type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @property
    def _host(self) -> str:
        return self._address.endpoint.host

    async def _post(self, url: str, content: bytes) -> HttpReply:
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _CONNECT_ATTEMPTS + 1):
            try:
                return await self._send(url, content)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if attempt == _CONNECT_ATTEMPTS:
                    raise LlmUnreachableError(self._host, "no connection") from error
            await asyncio.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("the loop returns or raises")

    async def _send(self, url: str, content: bytes) -> HttpReply:
        request = self._client.build_request("POST", url, content=content, headers={"Content-Type": "application/json"})
        response = await self._client.send(request, stream=True)
        try:
            raw = bytearray()
            async for part in response.aiter_bytes():
                raw += part
                if len(raw) > MAX_ANSWER_BYTES:
                    raise LlmAnswerMalformedError(self._host, f"it has over {MAX_ANSWER_BYTES} bytes")
        finally:
            await response.aclose()
        return HttpReply(response.status_code, self._document(response.status_code, bytes(raw)))

    def _document(self, status: int, raw: bytes) -> Mapping[str, object]:
        try:
            document = json.loads(raw)
        except (ValueError, RecursionError) as error:
            if status == _OK:
                raise LlmAnswerMalformedError(self._host, "the response is no JSON") from error
            return {}
        if isinstance(document, dict):
            return document
        if status == _OK:
            raise LlmAnswerMalformedError(self._host, "the response is no JSON object")
        return {}


def count_of(usage: object, name: str) -> int:
    """Return a provider's count of tokens; 0 for anything that is none."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
