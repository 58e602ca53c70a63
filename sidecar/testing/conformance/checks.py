"""The checks themselves. Each takes a case, fails with an AssertionError that says what is wrong, and returns nothing.

What they hold a reader to follows from how it is used: transcripts grow, break and are copied; the watcher is killed at
any moment; what stands in them may come from anybody.
"""

import random
import re
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from client_plugins.kit.json_line import decode_line
from client_plugins.kit.plugin import ClientPlugin, LineReading
from sidecar.domain.evidence import (
    MAX_READER_STATE_BYTES,
    MAX_SLICE_CHARACTERS,
    EvidenceEvent,
    MemoryCited,
    RecallCalled,
    RememberCalled,
    SessionEnded,
    TextSpoken,
    ToolAnswered,
    ToolCalled,
)
from sidecar.domain.ids import is_memory_id
from sidecar.testing.conformance.cases import ClientCase, Sample, SampleFile
from sidecar.testing.conformance.folding import (
    TailedFile,
    by_key,
    context_of,
    fold,
    found_in,
    project_of,
    read_file,
)
from sidecar.testing.conformance.mutation import altered, broken
from sidecar.testing.transcripts import sample_memory_id

MUTATED_LINES: Final = 2_000
"""Of each case, damaged in two ways each."""

MAX_CUTS: Final = 160
"""Of each sample; a shorter one is cut at every byte."""

_MAX_ID_CHARACTERS: Final = 400
_SEED: Final = 20_261_130
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ODD_STATES: Final = ("", "x", "{", "[]", "{}", "null", "0", '[["a",1]]', "\0", "💥" * 100, "[" * 500, '{"a":{"b":[]}}')
_ODD_PARTS: Final = ((), ("",), (".",), ("..", "x.jsonl"), ("\udcff.jsonl",), ("x" * 5_000,), ("a",) * 40, ("💥", "💥"))
_OUR_NAMES: Final = ("recall", "mcp__memory__recall", "mcp__memory__remember", "build_context", "memory_recall")


def plugin_is_sound(case: ClientCase) -> None:
    """The plugin has a name that fits into keys, absolute roots, and finds its samples by their paths."""
    plugin = case.plugin
    assert isinstance(plugin, ClientPlugin), "it lacks a method of ClientPlugin"
    assert _NAME.fullmatch(plugin.name), f"name {plugin.name!r} is not lower case with hyphens"
    assert plugin.parser_version >= 1, "parser_version begins at 1"
    assert all(root.is_absolute() for root in plugin.roots({})), "roots are absolute"
    for file in _files(case):
        context_of(plugin, file)
        for depth in range(1, len(file.parts)):
            assert plugin.may_hold_transcripts(file.parts[:depth]), f"folder {file.parts[:depth]} is not looked into"
    for parts in _ODD_PARTS:
        plugin.transcript_at(parts)
        plugin.may_hold_transcripts(parts)
    assert any(sample.recalls for sample in case.samples), "no sample has a recall"


def reads_what_is_there(sample: Sample, plugin: ClientPlugin) -> None:
    """Every recall is found with what it showed, every `remember`, every text; nothing else is taken for one."""
    found = found_in(read_file(plugin, sample.file))
    assert found.recalls == sample.recalls, f"recalls found: {found.recalls}"
    assert found.remembers == sample.remembers, f"calls of remember found: {found.remembers}"
    assert sample.texts is None or found.texts == sample.texts, f"texts found: {found.texts}"


def ids_are_sound(sample: Sample, plugin: ClientPlugin) -> None:
    """Ids are there, of reasonable length, without control characters, and mean one thing each."""
    thread_keys = set()
    said: dict[tuple[str, str], object] = {}
    for event in read_file(plugin, sample.file):
        _check_event(event, plugin)
        thread_keys.add((event.thread.client, event.thread.session))
        key = (type(event.payload).__name__, event.event_id)
        assert said.setdefault(key, event.payload) == event.payload, f"{key} stands for two different things"
    assert thread_keys, "nothing was read"


def every_cut_ends_the_same(sample: Sample, plugin: ClientPlugin, *, count: int = MAX_CUTS) -> None:
    """Wherever a write was torn, inside letters too, and mostly the watcher killed there, the end is the same."""
    with tempfile.TemporaryDirectory() as folder:
        path, context = Path(folder) / "transcript", context_of(plugin, sample.file)
        whole = TailedFile(plugin, path, context)
        whole.write(sample.file.content)
        whole.read()
        for cut in _cuts(sample.file.content, count):
            parts = TailedFile(plugin, path, context)
            parts.write(sample.file.content[:cut])
            parts.read()
            if cut % 4:
                parts.restart()
            parts.write(sample.file.content)
            parts.read()
            assert parts.events == whole.events, f"cut at byte {cut}: other events"
            assert parts.cursor == whole.cursor, f"cut at byte {cut}: another cursor, counters included"


def reading_is_pure(sample: Sample, plugin: ClientPlugin) -> None:
    """The same line after the same state reads the same, whatever was read in between."""
    context = context_of(plugin, sample.file)
    lines = sample.file.content.splitlines(keepends=True)
    first = list(fold(plugin, lines, context))
    states = ["", *(reading.state for reading in first)]
    again = [plugin.read_line(lines[n], context, states[n], project_of) for n in reversed(range(len(lines)))]
    assert again[::-1] == first, "a line reads otherwise the second time: the reader remembers something"


def repetitions_add_nothing(sample: Sample, plugin: ClientPlugin) -> None:
    """Forks, moved files and what a client writes again carry the ids that are known already."""
    known = by_key(read_file(plugin, sample.file))
    for number, copy in enumerate(sample.repetitions):
        more = by_key(read_file(plugin, copy)).keys() - known.keys()
        assert not more, f"repetition {number} has new events: {sorted(more)[:3]}"


def order_of_results_does_not_matter(sample: Sample, plugin: ClientPlugin) -> None:
    """Parallel calls are answered in any order, and files are not written in the order of what happened."""
    expected = {key: event.payload for key, event in by_key(read_file(plugin, sample.file)).items()}
    for number, content in enumerate(sample.reordered):
        found = by_key(read_file(plugin, SampleFile(sample.file.parts, content)))
        assert {key: event.payload for key, event in found.items()} == expected, f"order {number} reads otherwise"


def quotations_are_no_calls(case: ClientCase) -> None:
    """Whoever talks about our tools, or shows a transcript, has not called them."""
    ours = {call_id for sample in case.samples for call_id in _our_calls(read_file(case.plugin, sample.file))}
    for text in _quotations(case):
        file = SampleFile(case.samples[0].file.parts, case.quote(text))
        events = read_file(case.plugin, file)
        assert events, "quote() gives lines of which nothing is read"
        assert not _our_calls(events), f"taken for a call of ours: {text[:80]!r}"
        answered = {event.payload.call_id for event in events if isinstance(event.payload, ToolAnswered)}
        assert not answered & ours, f"taken for the result of another call: {text[:80]!r}"


def unheard_of_records_are_counted(case: ClientCase) -> None:
    """A new kind of record is named in the coverage and costs nothing else."""
    for sample in case.samples:
        for record in case.unheard_of:
            lines = sample.file.content.splitlines(keepends=True)
            mixed = [record, *chain.from_iterable((line, record) for line in lines)]
            readings = list(fold(case.plugin, mixed, context_of(case.plugin, sample.file)))
            assert all(reading.unrecognised and not reading.events for reading in readings[::2]), "not counted"
            events = by_key(event for reading in readings for event in reading.events)
            assert events == by_key(read_file(case.plugin, sample.file)), f"{sample.name}: other events beside it"


def damage_costs_only_its_line(case: ClientCase, *, count: int = MUTATED_LINES) -> None:
    """Torn lines change nothing around them; records with odd values in them do no harm, whatever they say."""
    choose = random.Random(_SEED)  # noqa: S311 - damage is to be reproducible, not secret
    for sample in case.samples:
        context = context_of(case.plugin, sample.file)
        lines = sample.file.content.splitlines(keepends=True)
        clean = list(fold(case.plugin, lines, context))
        states = ["", *(reading.state for reading in clean)]
        for _ in range(max(1, count // len(case.samples))):
            place = choose.randrange(len(lines))
            torn = broken(lines[place], choose)
            reading = case.plugin.read_line(torn, context, states[place], project_of)
            _check_reading(reading, case.plugin, torn)
            if decode_line(lines[place]).records and not decode_line(torn).records:
                # The line after it must read as if it had not been there. Of plain text every piece is a line.
                after = case.plugin.read_line(lines[place], context, reading.state, project_of)
                assert after == clean[place], f"{sample.name}: a torn line changed the next one: {torn[:80]!r}"
            odd = altered(lines[place], choose)
            reading = case.plugin.read_line(odd, context, states[place], project_of)
            _check_reading(reading, case.plugin, odd)
            following = case.plugin.read_line(lines[place], context, reading.state, project_of)
            _check_neighbour(following, clean[place], sample, odd)


def any_state_does_no_harm(case: ClientCase) -> None:
    """A state may come from an older version or a damaged store; and it stays small however long a session is."""
    for sample in case.samples:
        context = context_of(case.plugin, sample.file)
        lines = sample.file.content.splitlines(keepends=True)
        for state in _ODD_STATES:
            for reading in fold(case.plugin, lines, context, state):
                _check_reading(reading, case.plugin, b"")
        choose = random.Random(_SEED)  # noqa: S311 - damage is to be reproducible, not secret
        for state in [reading.state for reading in fold(case.plugin, lines, context) if reading.state]:
            for _ in range(10):
                odd = altered(state.encode(), choose).decode("utf-8", "replace")
                for reading in fold(case.plugin, lines, context, odd):
                    _check_reading(reading, case.plugin, b"")
        state = ""
        for number in range(60):
            # Another session in the same file each time, as far as words and ids make one.
            changed = [re.sub(rb"(?<=[0-9a-f])[0-9a-f](?=[0-9a-f]{3})", b"%x" % (number % 16), line) for line in lines]
            for reading in fold(case.plugin, changed, context, state):
                state = reading.state
                assert len(state.encode()) <= MAX_READER_STATE_BYTES, "the state outgrows its limit"


def _files(case: ClientCase) -> Iterator[SampleFile]:
    for sample in case.samples:
        yield from (sample.file, *sample.repetitions)


def _cuts(content: bytes, count: int) -> list[int]:
    """Return where to cut: everywhere if it is short, else around newlines and long letters, and by chance."""
    if len(content) <= count:
        return list(range(len(content) + 1))
    choose = random.Random(_SEED)  # noqa: S311 - damage is to be reproducible, not secret
    near = {place + step for place, byte in enumerate(content) if byte == 0x0A or byte >= 0x80 for step in (0, 1)}
    chosen = choose.sample(sorted(near), min(len(near), count // 2))
    return sorted({0, len(content), *chosen, *choose.sample(range(len(content)), count // 2)})


def _our_calls(events: list[EvidenceEvent]) -> set[str]:
    return {event.payload.call_id for event in events if isinstance(event.payload, RecallCalled | RememberCalled)}


def _quotations(case: ClientCase) -> Iterator[str]:
    """Give texts that look like our calls and results: talk, JSON, and the client's own transcripts."""
    for name in _OUR_NAMES:
        yield f"I called {name} and it showed {sample_memory_id(1)}."
        yield f'{{"type":"tool_use","id":"x","name":"{name}","input":{{"query":"{sample_memory_id(1)}"}}}}'
    for sample in case.samples:
        yield sample.file.content.decode("utf-8", "replace")
        for line in sample.file.content.splitlines():
            yield line.decode("utf-8", "replace")


def _check_reading(reading: LineReading, plugin: ClientPlugin, line: bytes) -> None:
    assert len(reading.state.encode()) <= MAX_READER_STATE_BYTES, f"the state outgrows its limit at {line[:80]!r}"
    assert reading.events or reading.skipped or reading.unrecognised, f"lost without a word: {line[:80]!r}"
    for event in reading.events:
        _check_event(event, plugin)


def _check_event(event: EvidenceEvent, plugin: ClientPlugin) -> None:
    assert event.thread.client == plugin.name, f"an event of another client, {event.thread.client!r}"
    assert event.at.tzinfo is not None, "a time without its zone"
    for name in (event.event_id, event.thread.session):
        assert 0 < len(name) <= _MAX_ID_CHARACTERS, f"an id of {len(name)} characters"
        assert name.isprintable(), f"an id with control characters: {name!r}"
    payload = event.payload
    if isinstance(payload, TextSpoken | ToolCalled | ToolAnswered):
        assert len(payload.text) <= MAX_SLICE_CHARACTERS, "a text that was not cut"
        # Lone surrogates cannot be sent.
        payload.text.encode()
    if isinstance(payload, MemoryCited):
        assert is_memory_id(payload.memory_id), "a citation of something else than a memory"
    elif not isinstance(payload, TextSpoken | SessionEnded):
        assert payload.call_id, "a call without an id"


def _check_neighbour(found: LineReading, clean: LineReading, sample: Sample, odd: bytes) -> None:
    """Hold a reader without state to the same reading; one with a state at least to the same texts."""
    if not clean.state and not found.state:
        assert found == clean, f"{sample.name}: an odd line changed the next one: {odd[:80]!r}"
    texts = [[e.payload.text for e in one.events if isinstance(e.payload, TextSpoken)] for one in (found, clean)]
    assert texts[0] == texts[1], f"{sample.name}: an odd line changed what the next one says: {odd[:80]!r}"
