"""Makes the language model that the settings name; none by default. Connects to nothing."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from sidecar.adapters.llm.anthropic_messages import AnthropicMessagesModel
from sidecar.adapters.llm.endpoint import LlmSettings, parse_address, read_key
from sidecar.adapters.llm.openai_compatible import OpenAiCompatibleModel
from sidecar.domain.llm import LlmProvider
from sidecar.errors import InvalidInputError
from sidecar.ports import LanguageModel

ReadPrivateFile: TypeAlias = Callable[[Path], bytes | None]
"""Returns what a file holds that is its user's alone, None if it is not there; refuses any other."""


def load_with_key(
    settings: LlmSettings, environment: MutableMapping[str, str], *, read_private: ReadPrivateFile
) -> LanguageModel | None:
    """Return the model with the key that file or variable hold, None if it is off.

    Args:
        settings: What the settings say; the key itself is not among it.
        environment: Where the variable is, which is taken out, so that no process of ours inherits the key.
        read_private: Reads the file.

    Raises:
        InvalidInputError: Names the setting that is wrong, without a key.
        UntrustedPathError: Somebody else may read or change the file.
    """
    key = _key_in_file(settings.api_key_file, read_private)
    variable = settings.api_key_variable
    taken_out = {variable: environment.pop(variable, "")} if variable else {}
    return load_language_model(replace(settings, api_key=key), taken_out)


def load_language_model(settings: LlmSettings, environment: Mapping[str, str]) -> LanguageModel | None:
    """Return the model, None if it is off.

    Args:
        settings: What the settings say; the key is not among it.
        environment: Where the key is.

    Raises:
        InvalidInputError: Names the setting that is wrong, without a key.
    """
    if settings.provider is LlmProvider.OFF:
        return None
    address = parse_address(settings)
    api_key = read_key(settings, address, environment)
    if settings.provider is LlmProvider.ANTHROPIC:
        return AnthropicMessagesModel(address, api_key=api_key, timeout_s=settings.timeout_s)
    return OpenAiCompatibleModel(address, api_key=api_key, timeout_s=settings.timeout_s)


def _key_in_file(name: str, read_private: ReadPrivateFile) -> str:
    """Return what the file holds, empty if none is named.

    Raises:
        InvalidInputError: It is not there, or holds no text.
        UntrustedPathError: Somebody else may read or change it.
    """
    if not name:
        return ""
    path = Path(name).expanduser()
    if not path.is_absolute():
        raise InvalidInputError("llm_api_key_file", name, "an absolute path, or one that begins with `~`")
    try:
        content = read_private(path)
    except OSError as error:
        raise InvalidInputError("llm_api_key_file", name, "a file that you may read") from error
    if not content or not content.strip():
        raise InvalidInputError("llm_api_key_file", name, "a file that is there and holds the key")
    # Whether it is a key is checked where it is used; the message must not show it.
    return content.decode("utf-8", "replace")
