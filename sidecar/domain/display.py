"""Makes stored text safe to show: nothing in it can move a cursor, hide, or turn round what stands beside it.

For terminals and for agents. What is stored stays as it is.
"""

import unicodedata
from typing import Final

_KEPT: Final = frozenset("\n\t")
# Bidirectional controls, which make a text read otherwise than it is (Trojan Source), and what is not seen at all and
# carries hidden words: tag characters and the variation selectors beyond the sixteen that emoji use.
_DECEPTIVE: Final = frozenset(
    (
        *(0x061C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xE0000, 0xE0080),
        *range(0xE0100, 0xE01F0),
    )
)
_HARMFUL_CATEGORIES: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


def visible(text: str) -> str:
    """Return the text with harmful characters written out, such as `\\x1b`; line feeds and tabs stay."""
    return "".join(_written_out(character) if _is_harmful(character) else character for character in text)


def one_line(text: str, *, limit: int) -> str:
    """Return the text in one line of at most `limit` characters, white space run together, `…` where it was cut."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _is_harmful(character: str) -> bool:
    if character in _KEPT:
        return False
    return unicodedata.category(character) in _HARMFUL_CATEGORIES or ord(character) in _DECEPTIVE


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"
