"""Brings text into the one form that is hashed, stored, searched and embedded. Cuts nothing and redacts nothing."""

import re
import unicodedata
from typing import Final

_LINE_END: Final = re.compile("\r\n?")


def normalise(text: str) -> str:
    """Return the text in its stored form; doing it twice changes nothing more.

    - Halves of a surrogate pair are joined; a half alone becomes U+FFFD, since UTF-8 cannot hold it.
    - NUL becomes a space: C libraries (SQLite, detectors) end a text there, and the rest must stay findable.
    - CR LF and CR become LF, so that one text from two systems is one memory.
    - Composed form (NFC), so that two spellings of an accent are one word.
    - White space around it goes.

    Other control characters stay: they are data here, and whoever prints them escapes them.
    """
    whole = _join_surrogates(text).replace("\0", " ")
    return unicodedata.normalize("NFC", _LINE_END.sub("\n", whole)).strip()


def _join_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
