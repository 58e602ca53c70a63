"""What is taken of a batch before the ledger gets it."""

from dataclasses import replace

import pytest

from sidecar.adapters.in_memory.memory_store import InMemoryStore
from sidecar.domain.evidence import MAX_READER_STATE_BYTES
from sidecar.errors import InvalidInputError
from sidecar.use_cases.collect_evidence import CollectEvidence
from tests.store_builders import OWNER, batch, cursor_at
from tests.unit.fake_parts import PlainRedactor, SteppingClock


async def test_a_reader_state_has_a_limit() -> None:
    """It is written with every batch, and whoever sends more has a fault; nothing is taken then."""
    clock = SteppingClock()
    collect = CollectEvidence(evidence=InMemoryStore(clock=clock), redactor=PlainRedactor(), clock=clock)
    largest = "é" * (MAX_READER_STATE_BYTES // 2)
    one = replace(batch(), cursor=cursor_at(100, reader_state=largest))
    await collect.run(OWNER, one)
    assert await collect.cursors(OWNER, "") == [one.cursor]
    with pytest.raises(InvalidInputError, match="reader_state"):
        await collect.run(OWNER, replace(one, cursor=cursor_at(200, reader_state=largest + "x")))
    assert await collect.cursors(OWNER, "") == [one.cursor]
