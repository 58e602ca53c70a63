"""Looking for sessions to judge holds up nobody who writes."""

import asyncio
import threading
from datetime import timedelta
from pathlib import Path

from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.domain.judge_jobs import DueRule
from tests.store_builders import NOW, SetClock

HANGS_AFTER_S = 60


async def test_looking_for_due_jobs_needs_no_writer(tmp_path: Path) -> None:
    """Among very many busy sessions it takes long, and is done every few seconds."""
    store = SqliteStore.open(tmp_path / "memories.db", clock=SetClock())
    has_begun, may_end = threading.Event(), threading.Event()

    def write_long(_: Transaction) -> None:
        has_begun.set()
        may_end.wait(HANGS_AFTER_S)

    writing = asyncio.create_task(store._writer.run(write_long))
    try:
        assert await asyncio.to_thread(has_begun.wait, HANGS_AFTER_S)
        rule = DueRule(idle=timedelta(minutes=5), lease=timedelta(minutes=10))
        async with asyncio.timeout(HANGS_AFTER_S / 2):
            assert await store.claim_judge_jobs(rule, now=NOW, limit=9) == []
        assert not writing.done()
    finally:
        may_end.set()
        await writing
        await store.close()
