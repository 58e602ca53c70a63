"""Brings a caller's texts into their stored form: normalised, and without secrets. What was taken out is told."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.domain.redaction import Redaction
from sidecar.domain.text import normalise
from sidecar.ports import Redactor

LONG_TEXT_CHARACTERS: Final = 4_000
"""Cleaning more than this takes over a millisecond and belongs on a worker thread."""

_OVERHANG_CHARACTERS: Final = 2_000


@dataclass(frozen=True, slots=True)
class CleanText:
    """Content and metadata as they may be stored; `findings` counts the secrets of both."""

    content: str
    metadata: Mapping[str, object]
    findings: tuple[Redaction, ...]


def clean(redactor: Redactor, content: str, metadata: Mapping[str, object]) -> CleanText:
    """Return both in their stored form. Keys of metadata that become equal are numbered, so that no value is lost."""
    cleaner = _Cleaner(redactor)
    text = cleaner.text(content)
    fields = cleaner.mapping(metadata)
    return CleanText(text, fields, cleaner.findings())


async def clean_and_cut(redactor: Redactor, text: str, *, limit: int) -> str:
    """Return a remark in its stored form, of at most `limit` characters."""
    # A secret that is cut in two would not be found, so more than is kept is looked at.
    start = text[: limit + _OVERHANG_CHARACTERS]
    if len(start) > LONG_TEXT_CHARACTERS:
        redacted = await asyncio.to_thread(lambda: redactor.redact(normalise(start)))
    else:
        redacted = redactor.redact(normalise(start))
    return redacted.text[:limit].rstrip()


class _Cleaner:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._counts: Counter[str] = Counter()

    def text(self, text: str) -> str:
        redacted = self._redactor.redact(normalise(text))
        for finding in redacted.findings:
            self._counts[finding.rule] += finding.count
        return redacted.text

    def mapping(self, values: Mapping[str, object]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in values.items():
            name = self.text(str(key))
            number = 2
            while name in found:
                name, number = f"{self.text(str(key))} ({number})", number + 1
            found[name] = self._value(value)
        return found

    def findings(self) -> tuple[Redaction, ...]:
        return tuple(Redaction(rule, count) for rule, count in sorted(self._counts.items()))

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, list | tuple):
            return [self._value(part) for part in value]
        return value
