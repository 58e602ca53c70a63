"""What the store says of its own health, in words."""

from pathlib import Path

import pytest

from sidecar.adapters.sqlite import upkeep
from sidecar.adapters.sqlite.connection import fetch_one, open_writer
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.sqlite.writer import WriterHealth
from tests.store_builders import ALL, SetClock, new_memory

SOUND = WriterHealth("", 0.0, 0, {})


def test_large_journal_and_failing_writes_are_problems(tmp_path: Path) -> None:
    """Each says what it is and since when, so that nobody has to guess."""
    path = tmp_path / "m.db"
    path.touch()
    assert upkeep.health_of(path, SOUND, None).problems == ()
    with path.with_name("m.db-wal").open("wb") as journal:
        journal.truncate(upkeep.LARGE_JOURNAL_BYTES + 1)
    failing = WriterHealth("no space left", 1_772_366_400.0, 3, {"commits": 1})
    health = upkeep.health_of(path, failing, None, problem="cannot be read")
    assert health.problems[0] == "cannot be read"
    assert health.problems[1] == "writes fail since 2026-03-01T12:00:00+00:00: no space left"
    assert "journal has" in health.problems[2]
    assert health.counters == {"commits": 1, "writes_queued": 3}


async def test_health_answers_when_the_database_cannot_be_read(tmp_path: Path) -> None:
    """Status is asked most when things are bad."""
    path = tmp_path / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    await store.add(new_memory("a"))
    await store.close()
    store = SqliteStore.open(path, clock=SetClock())
    path.write_bytes(b"\xff" * path.stat().st_size)
    health = await store.health()
    assert any("damaged" in problem for problem in health.problems)
    faults = await store.check_integrity()
    assert faults
    await store.close()


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM memory_words", "without terms for word search"),
        ("DELETE FROM embed_jobs", "neither embedded nor waiting"),
        ("UPDATE memories SET state = 'superseded'", "successor is not there"),
        ("UPDATE memory_words SET terms = x'0000000000000000'", "word index"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM memories", "points to a row that is not there"),
    ],
)
async def test_integrity_check_finds_what_the_engine_cannot_know(tmp_path: Path, damage: str, fault: str) -> None:
    """Our own invariants are checked too, not only the pages."""
    path = tmp_path / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    await store.add(new_memory("some words to find"))
    await store.close()
    connection = open_writer(path)
    connection.execute(damage)
    connection.close()
    store = SqliteStore.open(path, clock=SetClock())
    assert any(fault in found for found in await store.check_integrity())
    await store.close()


async def test_connections_keep_to_the_safe_settings(tmp_path: Path) -> None:
    """Durability and privacy rest on these; a slip must not go unseen."""
    path = tmp_path / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    await store.count(ALL)
    await store.close()
    connection = open_writer(path)
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "secure_delete": 1,
        "mmap_size": 0,
    }
    assert {name: (fetch_one(connection, f"PRAGMA {name}") or (0,))[0] for name in wanted} == wanted
    connection.close()
