"""The cursor of a listing as opaque text: where a page ended, and which accesses the listing knows of."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Final

from sidecar.domain.store_values import OrderBy
from sidecar.errors import InvalidInputError

_VERSION: Final = 1
_LIMIT: Final = 1 << 63
_EXPECTED: Final = "the next_cursor of the page before, with the same order"


@dataclass(frozen=True, slots=True)
class PageCursor:
    """The last row of a page.

    Attributes:
        value: What the row is ordered by: microseconds since 1970 UTC, or a fraction.
        memory_id: Its id, which orders equal values.
        last_event: Number of the last usage event when the listing began. Accesses after it don't move a row in this
            listing, or it would show twice or not at all.
    """

    order_by: OrderBy
    is_descending: bool
    value: float
    memory_id: str
    last_event: int


def encode_cursor(cursor: PageCursor) -> str:
    """Return the cursor as text."""
    fields = [_VERSION, cursor.order_by, cursor.is_descending, cursor.value, cursor.memory_id, cursor.last_event]
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode()


def decode_cursor(text: str, *, order_by: OrderBy, is_descending: bool) -> PageCursor:
    """Return the cursor that a text stands for.

    Raises:
        InvalidInputError: If it is none of ours, or of another order.
    """
    try:
        fields = json.loads(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
        version, order, descending, value, memory_id, last_event = fields
    except (binascii.Error, UnicodeError, ValueError, TypeError, RecursionError):
        raise InvalidInputError("cursor", text, _EXPECTED) from None
    is_ours = (
        version == _VERSION
        and order == order_by
        and descending is is_descending
        and isinstance(value, int | float)
        and abs(value) < _LIMIT
        and isinstance(memory_id, str)
        and isinstance(last_event, int)
        and 0 <= last_event < _LIMIT
    )
    if not is_ours:
        raise InvalidInputError("cursor", text, _EXPECTED)
    return PageCursor(order_by, is_descending, value, memory_id, last_event)
