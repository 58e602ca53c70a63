"""The pure rules of evidence: digests, cursors, what events are worth, and which claims settle."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sidecar.adapters.in_memory.ledger_rows import InMemoryLedgerRows
from sidecar.adapters.in_memory.tables import Tables, ThreadEntry
from sidecar.adapters.sqlite.connection import fetch_all, open_writer
from sidecar.adapters.sqlite.evidence import SqliteLedgerRows
from sidecar.adapters.sqlite.migration import migrate, shipped_migrations
from sidecar.adapters.sqlite.remembering import AddMemory
from sidecar.adapters.sqlite.term_statistics import TermStatistics
from sidecar.adapters.sqlite.transaction import Transaction
from sidecar.domain.confirmation import Claim, RememberCall, Standing, make_claims, settle
from sidecar.domain.evidence import (
    RecallCalled,
    Shown,
    ShownState,
    SliceKind,
    TextSpoken,
    ToolAnswered,
)
from sidecar.domain.ledger import CONTEXT_BYTES, CONTEXT_SLICES, Slice, event_digest, is_older_cursor, take_events
from sidecar.domain.memory import Link, Relation
from sidecar.domain.store_values import NewMemory
from tests.store_builders import NOW, OWNER, THREAD, cursor_at, event, new_memory, next_memory_id


def test_digest_is_of_the_event_not_of_the_session_it_is_read_in() -> None:
    """A copy of a transcript has another session id; a call and its answer may share one event id."""
    call = event(RecallCalled("1", "recall"), event_id="1")
    answer = event(ToolAnswered("1", Shown(ShownState.NOTHING), ""), event_id="1")
    copied = replace(call, thread=replace(THREAD, session="copy"), at=NOW + timedelta(days=1))
    digest = event_digest(OWNER, call)
    assert len(digest) == 16
    assert event_digest(OWNER, copied) == digest
    others = [
        event_digest("bob", call),
        event_digest(OWNER, answer),
        event_digest(OWNER, replace(call, event_id="2")),
        event_digest(OWNER, replace(call, thread=replace(THREAD, client="codex"))),
    ]
    assert len({digest, *others}) == 5


def test_cursor_is_older_only_in_the_same_reading_of_the_same_file() -> None:
    """A rewritten file, or a reader that learned something, starts over and is believed."""
    stored = cursor_at(100)
    assert is_older_cursor(cursor_at(99), stored)
    assert not is_older_cursor(cursor_at(100), stored)
    assert not is_older_cursor(cursor_at(1, generation=1), stored)
    assert not is_older_cursor(cursor_at(1, parser_version=2), stored)
    assert not is_older_cursor(cursor_at(1, file_id="7:7"), stored)


def test_claims_are_made_of_crediting_links_only() -> None:
    """That two memories relate does not say that one was used; the same link twice is one claim."""
    target = next_memory_id()
    links = [Link(relation, target) for relation in Relation] * 2
    remembered = new_memory("said again", client="c", session="s").memory
    claims = make_claims(links, remembered=remembered, source_id="there", project="p")
    assert [(claim.relation, claim.credited_id) for claim in claims] == [
        (Relation.SUPERSEDES, "there"),
        (Relation.DERIVED_FROM, target),
    ]
    assert {(claim.remember_id, claim.client, claim.session, claim.at) for claim in claims} == {
        (remembered.id, "c", "s", NOW)
    }


def test_call_includes_what_happened_while_it_was_under_way() -> None:
    """The client's clock and ours need not agree to the second."""
    call = RememberCall("m", "c", "s", called_at=NOW, answered_at=NOW + timedelta(seconds=30))
    included = {second: call.includes(NOW + timedelta(seconds=second)) for second in (-6, -5, 0, 30, 35, 36)}
    assert included == {-6: False, -5: True, 0: True, 30: True, 35: True, 36: False}


def test_claim_without_grounds_is_kept_open() -> None:
    """Evidence may still come; a claim that is confirmed never counts again."""
    tables = Tables()
    rows = InMemoryLedgerRows(tables, OWNER)
    claim = Claim("new", "new", "old", Relation.DERIVED_FROM, "c", "s", "p", NOW)
    assert not settle(rows, claim, at=NOW)
    assert rows.claims_on("c", "s", "old") == [claim]
    assert not settle(rows, replace(claim, standing=Standing.CONFIRMED), at=NOW)
    assert tables.usage == []


def test_work_for_a_text_does_not_grow_with_the_texts_there_are(tmp_path: Path) -> None:
    """A long session must not slow down all writing: a late text takes the engine as many steps as an early one."""
    connection = open_writer(tmp_path / "m.db")
    migrate(connection, tmp_path / "m.db", migrations=shipped_migrations(), now_us=1)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 10
        return False

    rows = SqliteLedgerRows(connection, OWNER, read_at=NOW)
    memory_id = next_memory_id()
    AddMemory(NewMemory(replace(new_memory("a").memory, id=memory_id), ("a",)), TermStatistics(), NOW)(
        Transaction(connection)
    )
    shown = [event(RecallCalled("1", "recall")), event(ToolAnswered("1", Shown(ShownState.IDS, (memory_id,)), ""))]
    take_events(rows, shown, at=NOW)
    connection.set_progress_handler(count, 10)
    costs = []
    for _ in range(8):
        steps = 0
        take_events(rows, [event(TextSpoken(SliceKind.AGENT_TEXT, "short")) for _ in range(100)], at=NOW)
        costs.append(steps)
    connection.close()
    assert costs[0] > 1_000
    assert max(costs) < 1.2 * costs[0]


def test_thread_that_was_shown_nothing_keeps_only_the_last_texts() -> None:
    """Both limits hold: how many, and how large."""
    tables = Tables()
    rows = InMemoryLedgerRows(tables, OWNER)
    texts = [event(TextSpoken(SliceKind.USER_TEXT, f"short {number}")) for number in range(CONTEXT_SLICES + 5)]
    take_events(rows, texts, at=NOW)
    slices = tables.threads[1].slices
    assert [piece.text for _, piece in slices] == [f"short {number}" for number in range(5, CONTEXT_SLICES + 5)]
    take_events(rows, [event(TextSpoken(SliceKind.USER_TEXT, "é" * 3_000)) for _ in range(3)], at=NOW)
    assert sum(piece.size_bytes for _, piece in slices) <= CONTEXT_BYTES
    assert len(slices) == 1


@pytest.mark.parametrize("is_sqlite", [False, True])
def test_oldest_texts_of_an_owner_go_when_there_are_too_many(tmp_path: Path, is_sqlite: bool) -> None:
    """Whatever they are for: the disk is not ours alone. What went is counted, and other owners are left alone."""
    tables = Tables()
    connection = open_writer(tmp_path / "m.db")
    migrate(connection, tmp_path / "m.db", migrations=shipped_migrations(), now_us=1)
    for owner in ("bob", OWNER):
        rows = SqliteLedgerRows(connection, owner, read_at=NOW) if is_sqlite else InMemoryLedgerRows(tables, owner)
        threads = [rows.thread(replace(THREAD, session=session), at=NOW) for session in ("1", "2")]
        for number in range(40):
            rows.add_slice(threads[number % 2], Slice(SliceKind.AGENT_TEXT, f"{owner} {number}", 10, NOW))
        if owner == OWNER:
            rows.keep_newest_slices(size_bytes=400)
            rows.keep_newest_slices(size_bytes=320)
    if is_sqlite:
        texts = [str(row[0]) for row in connection.execute("SELECT text FROM slices ORDER BY seq")]
        dropped = [row[0] for row in connection.execute("SELECT dropped_slices FROM evidence_sessions ORDER BY id")]
        assert fetch_all(connection, "SELECT owner, size_bytes FROM slice_totals") == [(OWNER, 300), ("bob", 400)]
    else:
        numbered = sorted(numbered for entry in tables.threads.values() for numbered in _numbered(entry))
        texts = [text for _, text in numbered]
        dropped = [entry.dropped_slices for entry in tables.threads.values()]
    kept = {owner: [text for text in texts if text.startswith(owner)] for owner in ("bob", OWNER)}
    assert len(kept["bob"]) == 40
    assert kept[OWNER] == [f"{OWNER} {number}" for number in range(10, 40)]
    assert dropped == [0, 0, 5, 5]
    connection.close()


def _numbered(entry: ThreadEntry) -> list[tuple[int, str]]:
    return [(seq, piece.text) for seq, piece in entry.slices]
