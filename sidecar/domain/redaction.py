"""What was taken out of a text, and the text without it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Redaction:
    """A kind of secret that was found, and how often."""

    rule: str
    count: int


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text whose secrets are replaced by `[redacted:<rule>]`."""

    text: str
    findings: tuple[Redaction, ...] = ()
