"""Checks where a language model is asked and with which key, before anything is sent there."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from sidecar.domain.llm import LlmEndpoint, LlmProvider
from sidecar.errors import InvalidInputError

DEFAULT_TIMEOUT_S: Final = 30.0
_LOCAL_NAME: Final = "localhost"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """What the settings say about the language model.

    Attributes:
        base_url: Such as `http://127.0.0.1:11434/v1`; for Anthropic without `/v1`.
        api_key_file: Path of the file that holds the key; empty for none.
        api_key_variable: Name of the environment variable that holds the key instead; empty for none.
        api_key: The key itself, where something else than a variable holds it; empty otherwise. Never shown.
        timeout_s: For one question, from first byte to last.
    """

    provider: LlmProvider = LlmProvider.OFF
    base_url: str = ""
    model: str = ""
    api_key_variable: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    api_key: str = field(default="", repr=False)
    api_key_file: str = ""


@dataclass(frozen=True, slots=True)
class LlmAddress:
    """A checked address. Shows no key, whoever prints it.

    Attributes:
        url: Without a slash at its end.
    """

    url: str
    endpoint: LlmEndpoint


def parse_address(settings: LlmSettings) -> LlmAddress:
    """Return the address that the settings name.

    Raises:
        InvalidInputError: If URL or model is missing or not of that kind.
    """
    if not settings.model.strip():
        raise InvalidInputError("llm_model", settings.model, "the model's name as the provider knows it")
    try:
        parts = urlsplit(settings.base_url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise _bad_url("<unreadable>") from error
    if "@" in parts.netloc or parts.query:
        # Not its value: it may hold a password, and messages are shown.
        raise _bad_url("<one with a user name or a query>")
    if parts.scheme not in {"http", "https"} or not host or parts.fragment:
        raise _bad_url(settings.base_url)
    shown_host = f"[{host}]" if ":" in host else host
    endpoint = LlmEndpoint(
        provider=settings.provider,
        model=settings.model,
        host=shown_host if port is None else f"{shown_host}:{port}",
        is_local=is_loopback(host),
    )
    return LlmAddress(urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", "")), endpoint)


def read_key(settings: LlmSettings, address: LlmAddress, environment: Mapping[str, str]) -> str:
    """Return the key, empty if there is none.

    Raises:
        InvalidInputError: If two places name one, the variable is not set, its value is no key, or it would cross a
            network unencrypted.
    """
    name = settings.api_key_variable
    if settings.api_key and name:
        raise InvalidInputError("llm_api_key_variable", "<one beside a key file>", "the key in one place only")
    if settings.api_key:
        return _checked_key(settings.api_key, address, source="the file of llm_api_key_file")
    if not name:
        return ""
    if not _VARIABLE.fullmatch(name):
        # Somebody may have put the key itself there, so it is not shown.
        raise InvalidInputError("llm_api_key_variable", "<not shown>", "the name of an environment variable")
    return _checked_key(environment.get(name, ""), address, source=f"environment variable {name}")


def _checked_key(given: str, address: LlmAddress, *, source: str) -> str:
    key = given.strip()
    if not _KEY.fullmatch(key):
        raise InvalidInputError(source, "<unset or no key>", "the key for the language model")
    if not address.endpoint.is_local and not address.url.startswith("https:"):
        raise InvalidInputError("llm_base_url", address.url, "https, since a key would be sent to another machine")
    return key


def is_loopback(host: str) -> bool:
    """Tell whether a host, without port and brackets, is this machine by name or address."""
    if host.lower() == _LOCAL_NAME:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bad_url(shown: str) -> InvalidInputError:
    return InvalidInputError(
        "llm_base_url", shown, "a URL such as http://127.0.0.1:11434/v1, without user name, query or fragment"
    )
