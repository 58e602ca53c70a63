"""How much of each client's sessions could be read, by version and channel. Pure; never texts, only names and numbers.

What was seen of *calls* comes from the ledger, in which every call counts once however many files repeat it. What was
seen of *records* comes from the counters that travel with each file's cursor. A client that changes its format shows
here as a warning, not as sessions without recalls.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from sidecar.domain.evidence import ShownState, TranscriptCursor, UnknownReason

SKIPPED: Final = "skipped."
UNRECOGNISED: Final = "unrecognised."
VERSION: Final = "version."
UNREADABLE_RESULTS: Final = f"results_unknown.{UnknownReason.UNREADABLE}"
SPEAKING_COUNTERS: Final = ("texts", "recalls_called", "remembers_called", "tools_called", "results")
"""Counters of a file that say that something in it was understood."""

TRANSCRIPT: Final = "transcript"
HOOK: Final = "hook"
HOOK_SUFFIX: Final = "-hooks"
"""What a client's name ends with where its hooks report; they are another source than its transcripts."""

# Shorter files may hold nothing but the client's own housekeeping.
_MUTE_LINES: Final = 20
# These lines were damaged or out of bounds; the others a reader left out because they say nothing.
_FAULTS: Final = frozenset({"not_json", "not_an_object", "too_deep", "too_complex", "too_long", "too_much_on_line"})
_READER_FAILED: Final = "reader_failed"
_NAMED_KINDS: Final = 5


@dataclass(frozen=True, slots=True)
class CallTally:
    """Recalls of one client and version that ended alike; `shown` memories in all, summed over the calls."""

    client: str
    client_version: str
    state: ShownState
    reason: UnknownReason | None
    count: int
    shown: int


@dataclass(frozen=True, slots=True)
class ClientCoverage:
    """What could be read of one client's sessions, of one version, over one channel.

    Attributes:
        channel: `transcript` or `hook`.
        client_version: That which a file named last; empty if none is named.
        files: Transcripts read, and the lines in them.
        calls: Calls of any tool seen in these files; copies of a session count again.
        results: Results of any tool read in them.
        recalls: Different recalls. Of them `with_memories` showed some, `shown` in all; `nothing_shown` came back
            empty; `cannot_record` are of a channel without results; the others are `unknown`, by reason.
        skipped: Lines from which nothing, or not everything, was taken, by reason.
        unrecognised: Records of kinds that the reader does not know, by kind.
        mute_files: Files of some length in which nothing at all was understood.
        unreadable_results: Results of any tool whose form is not understood.
    """

    client: str
    channel: str
    client_version: str
    files: int = 0
    lines: int = 0
    calls: int = 0
    results: int = 0
    recalls: int = 0
    with_memories: int = 0
    shown: int = 0
    nothing_shown: int = 0
    cannot_record: int = 0
    unknown: tuple[tuple[str, int], ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    unrecognised: tuple[tuple[str, int], ...] = ()
    mute_files: int = 0
    unreadable_results: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What hints that the client writes in a form that its reader does not know, in sentences."""
        return tuple(_warnings(self))


def summarise_coverage(calls: Iterable[CallTally], cursors: Iterable[TranscriptCursor]) -> list[ClientCoverage]:
    """Return what the ledger's calls and the files' counters say together, by client, channel and version."""
    calls_by_part: dict[_Part, list[CallTally]] = {}
    for tally in calls:
        part = (*client_and_channel(tally.client), tally.client_version)
        calls_by_part.setdefault(part, []).append(tally)
    files_by_part: dict[_Part, list[TranscriptCursor]] = {}
    for cursor in cursors:
        version = latest_version(dict(cursor.skipped))
        files_by_part.setdefault((*client_and_channel(cursor.client), version), []).append(cursor)
    parts = sorted(calls_by_part.keys() | files_by_part.keys())
    return [_coverage(part, calls_by_part.get(part, []), files_by_part.get(part, [])) for part in parts]


def client_and_channel(name: str) -> tuple[str, str]:
    """Return the client that reports under a name, and over which channel."""
    client = name.removesuffix(HOOK_SUFFIX)
    return client, TRANSCRIPT if client == name else HOOK


def latest_version(counts: Mapping[str, int]) -> str:
    """Return the client's version that a file's counters saw last; empty if none."""
    seen = [(line, name) for name, line in counts.items() if name.startswith(VERSION)]
    return max(seen)[1].removeprefix(VERSION) if seen else ""


_Part = tuple[str, str, str]


def _coverage(part: _Part, calls: Iterable[CallTally], cursors: Iterable[TranscriptCursor]) -> ClientCoverage:
    by_state: Counter[ShownState] = Counter()
    unknown: Counter[str] = Counter()
    shown = 0
    for tally in calls:
        by_state[tally.state] += tally.count
        shown += tally.shown
        if tally.state is ShownState.UNKNOWN:
            unknown[str(tally.reason or "")] += tally.count
    counts: Counter[str] = Counter()
    files = lines = mute = 0
    for cursor in cursors:
        own = dict(cursor.skipped)
        counts.update({name: count for name, count in own.items() if not name.startswith(VERSION)})
        files += 1
        lines += cursor.lines_read
        mute += cursor.lines_read >= _MUTE_LINES and not any(map(own.get, SPEAKING_COUNTERS))
    client, channel, version = part
    return ClientCoverage(
        client=client,
        channel=channel,
        client_version=version,
        files=files,
        lines=lines,
        calls=sum(counts[name] for name in ("recalls_called", "remembers_called", "tools_called")),
        results=counts["results"],
        recalls=by_state.total(),
        with_memories=by_state[ShownState.IDS],
        shown=shown,
        nothing_shown=by_state[ShownState.NOTHING],
        cannot_record=by_state[ShownState.CANNOT_RECORD],
        unknown=tuple(sorted(unknown.items())),
        skipped=_below(counts, SKIPPED),
        unrecognised=_below(counts, UNRECOGNISED),
        mute_files=mute,
        unreadable_results=counts[UNREADABLE_RESULTS],
    )


def _below(counts: Mapping[str, int], prefix: str) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name.removeprefix(prefix), n) for name, n in counts.items() if name.startswith(prefix)))


def _warnings(coverage: ClientCoverage) -> Iterable[str]:
    if coverage.unrecognised:
        ranked = sorted(coverage.unrecognised, key=lambda pair: (-pair[1], pair[0]))
        named = ", ".join(kind for kind, _ in ranked[:_NAMED_KINDS])
        more = f" and {len(ranked) - _NAMED_KINDS} more" if len(ranked) > _NAMED_KINDS else ""
        total = sum(count for _, count in ranked)
        yield f"{total} records of kinds that the reader does not know ({named}{more})"
    if coverage.mute_files:
        yield f"{coverage.mute_files} files in which nothing was understood"
    if coverage.unreadable_results:
        yield f"{coverage.unreadable_results} results of a form that is not understood"
    failed = dict(coverage.skipped).get(_READER_FAILED, 0)
    if failed:
        yield f"{failed} lines on which the reader failed"
    damaged = sum(count for reason, count in coverage.skipped if reason in _FAULTS)
    if damaged:
        yield f"{damaged} lines that are damaged or too large"
