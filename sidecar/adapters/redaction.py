"""Takes secrets out of texts before anything else sees them: our own rules first, then the betterleaks library.

Not a guarantee: a secret that looks like a word is a word. What is found is replaced, never logged.
"""

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import betterleaks

from sidecar.adapters.redaction_rules import PLACEHOLDER_START, RULES, holds_any_hint, looks_random
from sidecar.domain.redaction import RedactedText, Redaction
from sidecar.errors import RedactionUnavailableError

# The library's time grows with the square of what it finds in one text, so it gets pieces; they overlap by more than
# the length of any token, and private keys, which may be longer, have a rule of ours.
_PIECE_CHARS: Final = 4096
_OVERLAP_CHARS: Final = 512

_NOT_FOR_C: Final = re.compile("[\0\ud800-\udfff]")
_NOT_IN_RULE_NAME: Final = re.compile("[^a-z0-9]+")
_PLACEHOLDER: Final = re.compile(r"\[redacted:[a-z0-9-]{1,80}\]")
# A remark that tells the library to look away; here it would be an attacker's.
_ALLOW_REMARK: Final = re.compile("(?i)leaks:(?=allow)")
_LOW: Final = "low"
_CONFIG_PATH: Final = Path(__file__).with_name("betterleaks.toml")


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    end: int
    rule: str


class SecretRedactor:
    """Replaces secrets by `[redacted:<rule>]`; see `Redactor`. Safe to call from several threads."""

    def __init__(self) -> None:
        """Load the library and let it build its patterns, which takes a tenth of a second.

        Raises:
            RedactionUnavailableError: If the library cannot be used; going on without it would store secrets.
        """
        self.redact("api_key = 'warm up' password: warmup")

    def redact(self, text: str) -> RedactedText:
        """See `Redactor.redact`.

        Raises:
            RedactionUnavailableError: If the library failed; the text must not be stored.
        """
        counts: Counter[str] = Counter()
        lowered = text.lower()
        for rule in RULES if holds_any_hint(lowered) else ():
            spans = [_Span(start, end, rule.name) for start, end in rule.spans(text, lowered)]
            if spans:
                text = _replace(text, spans, counts)
                lowered = text.lower()
        text = _replace(text, _library_spans(text), counts)
        return RedactedText(text, tuple(Redaction(rule, count) for rule, count in sorted(counts.items())))


def _replace(text: str, spans: Iterable[_Span], counts: Counter[str]) -> str:
    parts: list[str] = []
    position = 0
    for span in sorted(spans):
        if span.start < position:
            continue
        parts += (text[position : span.start], f"{PLACEHOLDER_START}{span.rule}]")
        counts[span.rule] += 1
        position = span.end
    return "".join((*parts, text[position:])) if parts else text


def _library_spans(text: str) -> Iterator[_Span]:
    readable = _ALLOW_REMARK.sub("leaks ", _NOT_FOR_C.sub(" ", text))
    taken = [match.start() for match in _PLACEHOLDER.finditer(text)]
    taken_ends = [match.end() for match in _PLACEHOLDER.finditer(text)]
    for start in range(0, max(len(readable) - _OVERLAP_CHARS, 1), _PIECE_CHARS - _OVERLAP_CHARS):
        piece = readable[start : start + _PIECE_CHARS]
        for finding in _scan(piece):
            if not _is_believable(finding):
                continue
            first, end = _locate(piece, finding)
            span = _Span(start + first, start + end, _rule_name(finding.rule_id))
            # The first placeholder that ends after the span's start is the only one that can touch it.
            after = bisect.bisect_right(taken_ends, span.start)
            if after == len(taken) or taken[after] >= span.end:
                yield span


def _scan(piece: str) -> list[betterleaks.Finding]:
    try:
        return betterleaks.scan_string(piece, str(_CONFIG_PATH))
    except betterleaks.BetterleaksError as error:
        # Not its message: it may quote the text.
        raise RedactionUnavailableError(type(error).__name__) from None


def _is_believable(finding: betterleaks.Finding) -> bool:
    """Tell whether a finding is more than a word after the word `key`: its vague rules are for humans to review."""
    return finding.confidence != _LOW or looks_random(finding.match.value)


def _locate(piece: str, finding: betterleaks.Finding) -> tuple[int, int]:
    """Return where in the piece the secret lies; the library counts lines from 1 and bytes in a line from 1."""
    lines = piece.split("\n")
    line_number = min(max(finding.location.start_line, 1), len(lines)) - 1
    line_start = sum(len(line) + 1 for line in lines[:line_number])
    before = lines[line_number].encode()[: max(finding.location.start_column - 1, 0)]
    start = line_start + len(before.decode(errors="ignore"))
    value = finding.match.value
    for search_from in (start, line_start, 0):
        found = piece.find(value, search_from)
        if value and found >= 0:
            return found, found + len(value)
    # It found something that is not in the text as such; then the lines it names go.
    end_line = min(max(finding.location.end_line, line_number + 1), len(lines))
    return line_start, sum(len(line) + 1 for line in lines[:end_line]) - 1


def _rule_name(rule_id: str) -> str:
    return _NOT_IN_RULE_NAME.sub("-", rule_id.lower()).strip("-") or "secret"
