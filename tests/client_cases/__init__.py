"""What each client's reader is checked with: sample transcripts, and what is to be found in them."""

from sidecar.testing.conformance import ClientCase
from tests.client_cases import claude_code, codex, cursor

CASES: tuple[ClientCase, ...] = (claude_code.CASE, codex.CASE, cursor.CASE, cursor.PLAIN_TEXT_CASE)
