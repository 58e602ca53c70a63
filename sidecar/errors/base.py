"""The root of all errors, and how it travels. Knows no gRPC."""

from collections.abc import Mapping
from typing import ClassVar, Self

DOMAIN = "sidecar.api.v1"
"""The `ErrorInfo.domain` of every error; a reason is unique within it."""


class SidecarError(Exception):
    """A failure with a stable reason, a message for a person, and content-free details for a program.

    Attributes:
        reason: UPPER_SNAKE name, unique and stable; callers branch on it.
        metadata: Details such as the field's name; never text of memories.
    """

    reason: ClassVar[str] = "SIDECAR_ERROR"
    metadata: Mapping[str, str]

    def __init__(self, message: str, **metadata: str) -> None:
        super().__init__(message)
        self.metadata = metadata

    @property
    def message(self) -> str:
        """What is wrong, with the value, then what to do."""
        return str(self.args[0])

    @classmethod
    def from_wire(cls, message: str, metadata: Mapping[str, str]) -> Self:
        """Rebuild the error that the sidecar raised from what travelled."""
        error = cls.__new__(cls)
        SidecarError.__init__(error, message, **metadata)
        return error


def shown(value: object) -> str:
    """Return the value as a message may show it: short, on one line."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
