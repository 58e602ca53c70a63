"""Takes what is about the language model out of all settings, which this layer does not know. Reads no key."""

from typing import Protocol

from sidecar.adapters.llm.endpoint import LlmSettings
from sidecar.domain.llm import LlmProvider


class NamesModel(Protocol):
    """Settings under their own names; `sidecar.config.Settings` is one."""

    @property
    def llm(self) -> str:
        """A value of `LlmProvider`."""
        ...

    @property
    def llm_base_url(self) -> str:
        """See `LlmSettings.base_url`."""
        ...

    @property
    def llm_model(self) -> str:
        """See `LlmSettings.model`."""
        ...

    @property
    def llm_api_key_file(self) -> str:
        """See `LlmSettings.api_key_file`."""
        ...

    @property
    def llm_api_key_variable(self) -> str:
        """See `LlmSettings.api_key_variable`."""
        ...

    @property
    def llm_timeout_s(self) -> float:
        """See `LlmSettings.timeout_s`."""
        ...


def llm_settings(settings: NamesModel) -> LlmSettings:
    """Return what the settings say about the language model."""
    return LlmSettings(
        provider=LlmProvider(settings.llm),
        base_url=settings.llm_base_url,
        model=settings.llm_model,
        api_key_file=settings.llm_api_key_file,
        api_key_variable=settings.llm_api_key_variable,
        timeout_s=settings.llm_timeout_s,
    )
