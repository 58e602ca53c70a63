"""Makes the language model that the settings name; none by default."""

from collections.abc import Mapping

from sidecar.adapters.llm.anthropic_messages import AnthropicMessagesModel
from sidecar.adapters.llm.endpoint import LlmSettings, parse_address, read_key
from sidecar.adapters.llm.openai_compatible import OpenAiCompatibleModel
from sidecar.domain.llm import LlmProvider
from sidecar.ports import LanguageModel


def load_language_model(settings: LlmSettings, environment: Mapping[str, str]) -> LanguageModel | None:
    """Return the model, None if it is off. Connects to nothing.

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
