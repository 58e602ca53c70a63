"""Migrations: old or new, never between; newer ones and damaged files are left as they are."""

import hashlib
import multiprocessing
import os
import signal
import stat
from datetime import timedelta
from pathlib import Path

import apsw
import pytest

from sidecar.adapters.sqlite.connection import fetch_all, fetch_value, open_reader, open_writer
from sidecar.adapters.sqlite.migration import Migration, find_version, migrate, shipped_migrations
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.adapters.sqlite.values import to_us
from sidecar.domain.context import ContextKind
from sidecar.domain.evidence import UsageSource
from sidecar.domain.exchange import DeliveryRecord, DisputeRecord, MemoryRecord, UseRecord
from sidecar.domain.judge_jobs import DueRule
from sidecar.domain.judgement import Verdict
from sidecar.domain.metrics import window_of
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.errors import SchemaTooNewError, StorageCorruptError, StorageError
from tests.store_builders import ALL, NOW, OWNER, THREAD, SetClock, new_memory

LATER = Migration(
    99,
    "0099_test",
    """
    -- Two changes that only make sense together.
    CREATE TABLE later (text TEXT) STRICT;
    INSERT INTO later SELECT content FROM memories;
    ALTER TABLE memories RENAME COLUMN content TO body;
    """,
)


def with_later() -> list[Migration]:
    shipped = shipped_migrations()
    return [*shipped, Migration(len(shipped) + 1, LATER.name, LATER.script)]


async def make_store(folder: Path, *contents: str) -> Path:
    path = folder / "m.db"
    store = SqliteStore.open(path, clock=SetClock())
    for content in contents:
        await store.add(new_memory(content))
    await store.close()
    return path


def schema_of(path: Path) -> list[tuple[object, ...]]:
    reader = open_reader(path)
    try:
        version = fetch_value(reader, "PRAGMA user_version")
        return [(version,), *fetch_all(reader, "SELECT type, name, sql FROM sqlite_schema ORDER BY name")]
    finally:
        reader.close()


def digests(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.iterdir()
        if not file.name.endswith("-shm")
    }


def test_statements_are_run_one_by_one() -> None:
    """Comments, strings with semicolons and triggers stay whole; half a statement is refused."""
    table = "-- a; b\nCREATE TABLE t (x TEXT DEFAULT ';');\n"
    script = f"{table}CREATE TRIGGER r AFTER INSERT ON t BEGIN\n SELECT 1;\nEND;\n-- end"
    assert len(Migration(1, "m", script).statements()) == 2
    with pytest.raises(ValueError, match="middle of a statement"):
        Migration(1, "m", "SELECT 1;\nSELECT").statements()


def test_fresh_database_gets_every_migration_recorded(tmp_path: Path) -> None:
    """Who looks at a database sees how it came to be."""
    path = tmp_path / "m.db"
    SqliteStoreFiles.make(path)
    reader = open_reader(path)
    rows = fetch_all(reader, "SELECT version, name, applied_at FROM schema_migrations ORDER BY version")
    reader.close()
    assert [row[:2] for row in rows] == [(migration.version, migration.name) for migration in shipped_migrations()]
    assert all(row[2] > 0 for row in rows)


class SqliteStoreFiles:
    @staticmethod
    def make(path: Path) -> None:
        connection = open_writer(path)
        migrate(connection, path, migrations=shipped_migrations(), now_us=1)
        connection.close()


async def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """Also the journal and the backup, whatever the umask."""
    path = await make_store(tmp_path, "a")
    connection = open_writer(path)
    migrate(connection, path, migrations=with_later(), now_us=2)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    connection.close()
    assert set(modes) >= {"m.db", "m.db-wal", "m.db-shm", f"m.db.before-{len(with_later())}"}
    assert set(modes.values()) == {0o600}


async def test_existing_database_is_copied_before_it_is_changed(tmp_path: Path) -> None:
    """Going back to the older version is possible, with everything that was stored."""
    path = await make_store(tmp_path, "a", "b")
    before = schema_of(path)
    connection = open_writer(path)
    applied = migrate(connection, path, migrations=with_later(), now_us=2)
    assert [migration.name for migration in applied] == [LATER.name]
    assert fetch_all(connection, "SELECT text FROM later ORDER BY 1") == [("a",), ("b",)]
    assert migrate(connection, path, migrations=with_later(), now_us=3) == ()
    connection.close()
    backup = tmp_path / f"m.db.before-{len(with_later())}"
    assert schema_of(backup) == before
    copy = tmp_path / "copy.db"
    copy.write_bytes(backup.read_bytes())
    store = SqliteStore.open(copy, clock=SetClock())
    assert (await store.count(ALL)).total == 2
    assert await store.check_integrity() == ()
    await store.close()


async def test_failing_migration_leaves_the_old_schema(tmp_path: Path) -> None:
    """An update that can't be done must not make the data unusable for the version before."""
    path = await make_store(tmp_path, "a")
    before = schema_of(path)
    broken = Migration(len(with_later()), "broken", LATER.script + "INSERT INTO nowhere VALUES (1);")
    connection = open_writer(path)
    with pytest.raises(StorageError):
        migrate(connection, path, migrations=[*shipped_migrations(), broken], now_us=2)
    connection.close()
    assert schema_of(path) == before
    store = SqliteStore.open(path, clock=SetClock())
    assert (await store.count(ALL)).total == 1
    await store.close()


def _migrate_and_die(path: Path, statement_count: int) -> None:
    """Migrate, and die by signal when so many statements have been started."""
    connection = open_writer(path)
    left = statement_count

    def trace(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    connection.exec_trace = trace
    migrate(connection, path, migrations=with_later(), now_us=2)
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork; the transaction is the same everywhere")
def test_killed_after_any_statement_leaves_old_or_new(tmp_path: Path) -> None:
    """Never one between, which neither this version nor the one before could use; a second start gets through."""
    allowed: list[list[tuple[object, ...]]] = []
    for count in range(len(with_later()) + 1):
        path = tmp_path / f"whole-{count}.db"
        connection = open_writer(path)
        migrate(connection, path, migrations=with_later()[:count], now_us=1)
        connection.close()
        allowed.append(schema_of(path))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    kills = 0
    for statement_count in range(200):
        path = tmp_path / f"killed-{statement_count}.db"
        child = context.Process(target=_migrate_and_die, args=(path, statement_count))
        child.start()
        child.join(60)
        if path.exists():
            assert schema_of(path) in (allowed[0], allowed[-1])
        if child.exitcode == 0:
            break
        kills += 1
        connection = open_writer(path)
        migrate(connection, path, migrations=with_later(), now_us=3)
        connection.close()
        assert schema_of(path) == allowed[-1]
    assert kills > 40


async def test_copy_of_the_old_database_outlives_a_second_attempt(tmp_path: Path) -> None:
    """An attempt that ended after some of several migrations must not have the next one copy what they made of it."""
    path = tmp_path / "m.db"
    make_old(path, version=7)
    before = schema_of(path)
    failing = [*shipped_migrations(), Migration(len(with_later()), "broken", "INSERT INTO nowhere VALUES (1);")]
    connection = open_writer(path)
    for _ in range(2):
        with pytest.raises(StorageError):
            migrate(connection, path, migrations=failing, now_us=2)
        assert schema_of(path) == before
    migrate(connection, path, migrations=with_later(), now_us=2)
    connection.close()
    assert schema_of(tmp_path / f"m.db.before-{len(with_later())}") == before


OLD_ID = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"
AT = to_us(NOW)
SESSION = f"'{OWNER}', '{THREAD.client}', '{THREAD.session}'"
OLD_ROWS = f"""
INSERT INTO memories (id, owner, namespace, type, state, previous_state, importance, confidence, created_at,
    accessed_at, first_accessed_at, access_count, provenance, client, session, superseded_by, content_hash, metadata,
    content) VALUES ('{OLD_ID}', '{OWNER}', 'global', 'fact', 'active', 'active', 0.5, 0.3, {AT},
    {AT}, {AT}, 1, 'agent', '', '', '', 'hash', '{{}}', 'the port is 8123');
INSERT INTO recalls (recall_id, owner, client, session, project, at, memory_count, is_degraded)
    VALUES ('rec_1', {SESSION}, 'app', {AT}, 1, 0);
INSERT INTO evidence_sessions (owner, client, session, agent_id, project, client_version, first_seen_at, last_seen_at,
    has_shown) VALUES ({SESSION}, '', 'app', '1', {AT}, {AT}, 1);
INSERT INTO shown VALUES (1, '{OWNER}', 1, '{OLD_ID}', 'call-1', {AT}, 0);
INSERT INTO slices VALUES (1, '{OWNER}', 1, 'agent_text', 'so I use 8123', 13, {AT + 1}, 0, '');
INSERT INTO judge_jobs (owner, client, session, memory_id, thread, first_slice_seq, created_at)
    VALUES ({SESSION}, '{OLD_ID}', 1, 1, {AT});
INSERT INTO disputes VALUES (1, 'uid', '{OWNER}', 1, 'wrong', '', 'codex', 'other', {AT}, 'keep', '', {AT + 5});
INSERT INTO usage_events (owner, client, session, memory_id, credited_id, source, valence, weight, at, recall_id,
    is_weak, occasion) VALUES
    ({SESSION}, '{OLD_ID}', '{OLD_ID}', '', 'surfaced', 0, {AT}, 'rec_1', 0, 'recall'),
    ({SESSION}, '{OLD_ID}', '{OLD_ID}', 'in_band', 'useful', 0.9, {AT}, '', 0, 'session'),
    ({SESSION}, '{OLD_ID}', '{OLD_ID}', 'judge', 'relevant', 0.9, {AT}, '', 0, 'session');
"""
OLD_VERDICT = f"""
INSERT INTO verdicts (owner, client, session, memory_id, judge, used, relevant, misled, shown_at, judged_at)
    VALUES ({SESSION}, '{OLD_ID}', 'local-1', 0.5, 0.9, 0, {AT}, {AT + 9_000_000})
"""
"""A bit of everything, as schema 7 and 11 had it."""


def make_old(path: Path, *, version: int) -> None:
    """Make a database of an earlier version with something in it."""
    connection = open_writer(path)
    migrate(connection, path, migrations=shipped_migrations()[:version], now_us=1)
    connection.execute(OLD_ROWS)
    if version >= 11:
        connection.execute(OLD_VERDICT)
    connection.close()


@pytest.mark.parametrize("version", range(7, len(shipped_migrations()) + 1))
async def test_what_an_older_version_wrote_works_on(tmp_path: Path, version: int) -> None:
    """Evidence, figures, the judge's queue, disputes: read, added to and exported, not merely kept."""
    path = tmp_path / "m.db"
    make_old(path, version=version)
    memory_id = OLD_ID
    clock = SetClock()
    clock.advance(timedelta(days=1))
    now = clock.now()
    store = SqliteStore.open(path, clock=clock)
    events = {event.source: event for event in await store.usage_events(OWNER, memory_id)}
    judged_at = NOW + timedelta(seconds=9) if 11 <= version < 14 else None
    assert (events[UsageSource.JUDGE].known_at, events[UsageSource.IN_BAND].known_at) == (judged_at, None)
    counts = await store.metric_counts(OWNER, window_of(3, now=now))
    assert (counts.surfaced, counts.used, counts.useful_recalls) == (1, 1, 1)
    assert not await store.was_briefed(OWNER, THREAD.client, THREAD.session, ContextKind.SESSION)
    (job,) = await store.claim_judge_jobs(DueRule(timedelta(minutes=5), timedelta(minutes=5)), now=now, limit=9)
    case = await store.judge_case(job)
    assert case is not None
    assert [piece.text for piece in case.after] == ["so I use 8123"]
    await store.save_verdicts([(job, Verdict(memory_id, 0.9, 0.9, 0.0))], judge="local-2", now=now)
    places = await store.evidence_places(after_key=0, limit=9)
    await store.recompute_multipliers(places, at=now)
    assert await store.multipliers([memory_id]) == {memory_id: multiplier(Evidence(useful=0.9))}
    assert await store.drop_judged_texts(quiet_since=now, now=now) == 1
    pages = store.export_records(OWNER, is_including_forgotten=True)
    records = [record async for page in pages for record in page.records]
    assert {type(record) for record in records} >= {MemoryRecord, DisputeRecord, DeliveryRecord, UseRecord}
    await store.close()
    reader = open_reader(path)
    assert fetch_all(reader, "PRAGMA foreign_key_check") == []
    assert fetch_value(reader, "PRAGMA integrity_check") == "ok"
    reader.close()


async def test_newer_schema_is_refused_and_no_byte_changes(tmp_path: Path) -> None:
    """An older program must not write into what it does not understand."""
    path = await make_store(tmp_path, "a")
    connection = open_writer(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = digests(tmp_path)
    with pytest.raises(SchemaTooNewError) as caught:
        SqliteStore.open(path, clock=SetClock())
    assert caught.value.metadata["found"] == "999"
    assert {name: digest for name, digest in digests(tmp_path).items() if digest != before.get(name)} in (
        {},
        {"m.db-wal": hashlib.sha256(b"").hexdigest()},
    )


@pytest.mark.parametrize("damage", ["header", "garbage", "schema"])
async def test_damaged_file_is_told_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    """Nothing is repaired, replaced or overwritten behind the user's back."""
    path = await make_store(tmp_path, *(f"memory {number}" for number in range(20)))
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:100] = b"\x07" * 100
    elif damage == "garbage":
        content[:] = os.urandom(len(content))
    else:
        content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    with pytest.raises(StorageCorruptError):
        SqliteStore.open(path, clock=SetClock())
    assert path.read_bytes() == bytes(content)


async def test_damaged_page_is_found_by_the_check_and_by_reading(tmp_path: Path) -> None:
    """Damage in the middle does not stop the start, but is told wherever it is met."""
    path = await make_store(tmp_path, *(f"memory {number} " + "x" * 2_000 for number in range(40)))
    reader = open_reader(path)
    page = fetch_value(
        reader, "SELECT pageno FROM dbstat WHERE name = 'memories' AND pagetype = 'leaf' LIMIT 1 OFFSET 3"
    )
    reader.close()
    with path.open("rb+") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    store = SqliteStore.open(path, clock=SetClock())
    assert await store.check_integrity() != ()
    with pytest.raises(StorageCorruptError):
        await store.fetch(range(1, 41), ALL)
    assert (await store.get(OWNER, (await store.fetch([1], ALL))[0].id)).content.startswith("memory 0")
    await store.close()


def test_empty_and_missing_files_are_new_databases(tmp_path: Path) -> None:
    """A crash right after the file was made leaves nothing to repair."""
    empty = tmp_path / "empty.db"
    empty.touch()
    assert find_version(empty, supported=1) == 0
    assert find_version(tmp_path / "missing.db", supported=1) == 0


def test_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The message names the path; no bare OSError leaves the adapter."""
    with pytest.raises(StorageError, match="missing-folder"):
        SqliteStore.open(tmp_path / "missing-folder" / "m.db", clock=SetClock())
