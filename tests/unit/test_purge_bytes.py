"""A purged memory leaves no byte: not in the database, its journal or its indexes."""

import asyncio
from pathlib import Path

from sidecar.adapters.sqlite.connection import fetch_value, open_reader
from sidecar.adapters.sqlite.store import SqliteStore
from sidecar.domain.evidence import RecallCalled, Shown, ShownState, SliceKind, TextSpoken, ToolAnswered
from tests.store_builders import ALL, NOW, OWNER, SetClock, batch, event, new_memory, open_store

SECRET = "Xylophonequartz Grünkohlsuppe zebrawood-" + "m" * 5_000
MARKS = [
    b"ylophonequar",
    b"hnkohlsup",
    "rünkohlsup".encode(),
    b"ebrawoo",
    b"m" * 40,
    b"keepsake-of-meta",
    b"ZZ-request",
]


def found_in(folder: Path) -> dict[str, list[bytes]]:
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    lowered = {name: content.lower() for name, content in contents.items()}
    return {name: hits for name, text in lowered.items() if (hits := [mark for mark in MARKS if mark.lower() in text])}


async def test_purged_memory_leaves_no_byte_in_any_file(tmp_path: Path) -> None:
    """Searched for in every file of the folder, while the store is open and after it is closed."""
    store = open_store("sqlite", tmp_path, SetClock())
    for number in range(300):
        await store.add(new_memory(f"filler text number {number} about zebras and xylographs"))
    doomed = new_memory(SECRET, metadata={"note": "keepsake-of-meta"}, request_key="ZZ-request", request_digest="d")
    memory_id = (await store.add(doomed)).memory_id
    for number in range(300, 500):
        await store.add(new_memory(f"filler text number {number} about zebus and xylene"))
    said = event(TextSpoken(SliceKind.AGENT_TEXT, f"I was told: {SECRET}"), after_s=9)
    shown = event(ToolAnswered("c", Shown(ShownState.IDS, (memory_id,)), ""), after_s=1)
    await store.apply_batch(OWNER, batch(event(RecallCalled("c", "recall")), shown, said), at=NOW)
    assert found_in(tmp_path)
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=True)
    assert found_in(tmp_path) == {}
    assert await store.check_integrity() == ()
    await store.close()
    assert found_in(tmp_path) == {}


async def test_every_purged_memory_of_many_leaves_no_term(tmp_path: Path) -> None:
    """Also where its terms begin a page of the word index, whose separators hold terms too."""
    store = open_store("sqlite", tmp_path, SetClock())
    ids = []
    for number in range(400):
        terms = " ".join(f"secretword{number * 12 + place:05d}" for place in range(12))
        ids.append((await store.add(new_memory(f"{terms} common"))).memory_id)
    await store.forget(OWNER, ids[::2], is_forced=False, is_purge=True)
    gone = [f"secretword{number * 12 + place:05d}".encode() for number in range(0, 400, 2) for place in range(12)]
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert [term for term in gone if term in content] == []
    assert await store.check_integrity() == ()
    await store.close()


async def test_journal_is_emptied_as_soon_as_a_reader_lets_it(tmp_path: Path) -> None:
    """A read that goes on delays the removal from the journal; it is made up for without being asked."""
    store = SqliteStore.open(tmp_path / "m.db", clock=SetClock())
    memory_id = (await store.add(new_memory(SECRET))).memory_id
    reader = open_reader(tmp_path / "m.db")
    reader.execute("BEGIN")
    assert fetch_value(reader, "SELECT count(*) FROM memories") == 1
    await store.forget(OWNER, [memory_id], is_forced=False, is_purge=True)
    assert (await store.count(ALL)).total == 0
    assert found_in(tmp_path)
    reader.close()
    async with asyncio.timeout(30):
        while found_in(tmp_path):
            await asyncio.sleep(0.05)
    await store.close()
