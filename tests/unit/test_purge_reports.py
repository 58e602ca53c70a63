"""A purged memory leaves no byte in what was reported, disputed or noted about it, or quotes it."""

from datetime import timedelta
from pathlib import Path

from sidecar.domain.confidence import ValidationKind
from sidecar.domain.disputes import Challenge, Resolution, Verdict
from sidecar.domain.edges import NewEdge
from sidecar.domain.file_activity import FileAction, FileEvent
from sidecar.domain.memory import Relation
from sidecar.domain.validation import Report
from tests.store_builders import NOW, OWNER, SetClock, new_memory, open_store

CONTENT = 'the "Xylophonequartz"\nopens Grünkohlsuppe'
MARKS = [b"ylophonequar", "rünkohlsup".encode(), b"ylophonhint", b"gnutwort", b"Zirkelbeweis"]


def found_in(folder: Path) -> dict[str, list[bytes]]:
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return {name: hits for name, content in contents.items() if (hits := [mark for mark in MARKS if mark in content])}


async def test_purged_memory_leaves_no_byte_in_reports(tmp_path: Path) -> None:
    """Searched for in every file of the folder, while the store is open and after it is closed."""
    store = open_store("sqlite", tmp_path, SetClock())
    other = (await store.add(new_memory("other"))).memory_id
    doomed = (await store.add(new_memory(CONTENT))).memory_id
    await store.put_edge(OWNER, NewEdge(doomed, other, Relation.RELATES_TO))
    padding = "p" * 6_000
    for number in range(200):
        at = NOW + timedelta(seconds=number)
        own = Report(doomed, ValidationKind.FAILED, at, context="Xylophonhint", error="Magnutwort")
        await store.record_validation(OWNER, own)
        quoting = Report(other, ValidationKind.APPLIED, at, context=f"told: {CONTENT}")
        await store.record_validation(OWNER, quoting)
        dispute, _ = await store.open_dispute(OWNER, Challenge(doomed, f"Zirkelbeweis {number}", padding, at))
        if number % 2:
            await store.resolve_dispute(OWNER, dispute.id, Verdict(Resolution.KEEP), at=at)
        await store.open_dispute(OWNER, Challenge(other, f"{number} as {CONTENT}", f"{padding}{CONTENT}", at))
        event = FileEvent(f"{number}.py", FileAction.EDIT, at)
        await store.add_file_activity(OWNER, event, client="", metadata={"why": [f"because {CONTENT}"]})
    assert found_in(tmp_path)
    await store.forget(OWNER, [doomed], is_forced=True, is_purge=True)
    assert found_in(tmp_path) == {}
    assert await store.check_integrity() == ()
    await store.close()
    assert found_in(tmp_path) == {}
