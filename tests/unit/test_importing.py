"""Importing what users already have: right to the line by hand-written examples, and harmless whatever is in a file."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.cli.importing.agents_md import read_agents_md
from sidecar.cli.importing.claude_memory import read_claude_memory
from sidecar.cli.importing.cursor_rules import read_cursor_rule
from sidecar.cli.importing.files import (
    MAX_NOTES_BYTES,
    Source,
    claude_memory_folder,
    claude_memory_sources,
    named_source,
    project_sources,
)
from sidecar.cli.importing.json_lines import MAX_LINE_BYTES, read_json_lines
from sidecar.cli.importing.plan import Stored, carry_out, plan_import
from sidecar.domain.importing import (
    ImportedMemory,
    ImportedPart,
    ImportPlan,
    SkippedPart,
    SkipReason,
    SourceFormat,
    make_plan,
)
from sidecar.domain.memory import MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MemoryType
from sidecar.domain.text import normalise
from sidecar.errors import ContentTooLargeError, SidecarNotRunningError

GOLDEN = Path(__file__).parents[1] / "golden" / "importing"
EXPECTED: dict[str, dict[str, list[list[Any]]]] = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
FORMATS = {
    "CLAUDE.md": SourceFormat.CLAUDE_MEMORY,
    "MEMORY.md": SourceFormat.CLAUDE_MEMORY,
    "feedback_short.md": SourceFormat.CLAUDE_MEMORY,
    "api.mdc": SourceFormat.CURSOR_RULES,
    "always.mdc": SourceFormat.CURSOR_RULES,
    "AGENTS.md": SourceFormat.AGENTS_MD,
    "memories.jsonl": SourceFormat.JSON_LINES,
}
PIECES = [
    "# A",
    "## Gotchas",
    "- x",
    "  - y",
    "1. z",
    "text",
    "",
    "```",
    "~~~",
    "<!--",
    "-->",
    "---",
    "    code",
    "\t- t",
    "@a.md",
    "- [ ] open",
    "- [x] done",
    "* [T](t.md) — hook",
    "name: n",
    "description: d",
    "globs: *.ts",
    "-",
    "#",
]
MARKDOWN = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=30).map("\n".join)
Reader = Callable[[str, str], list[ImportedPart]]
NOTE_READERS: tuple[Reader, ...] = (read_claude_memory, read_agents_md, read_cursor_rule)


def plan_of(path: Path, source_format: SourceFormat) -> ImportPlan:
    """The dry run of one file."""
    return plan_import([named_source(path, source_format)])


def write(folder: Path, name: str, content: bytes | str = "- note\n") -> Path:
    """Make a file with the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", EXPECTED)
def test_golden_file_is_read_as_written_by_hand(name: str, tmp_path: Path) -> None:
    """What a person would take from the file, with the line where it stands."""
    path = write(tmp_path, name, (GOLDEN / f"{name}.txt").read_bytes())
    plan = plan_of(path, FORMATS[name])
    found = [[m.place.line, str(m.memory_type), m.importance, m.content] for m in plan.memories]
    assert found == EXPECTED[name]["memories"]
    assert [[part.place.line, str(part.reason)] for part in plan.skipped] == EXPECTED[name]["skipped"]
    assert plan.files == (path.as_posix(),)


def test_metadata_says_where_a_memory_came_from(tmp_path: Path) -> None:
    """Whoever doubts a memory can look it up; what the file claims about that is replaced."""
    line = '{"content": "x", "metadata": {"ticket": 7, "imported_from": "elsewhere"}}\n'
    path = write(tmp_path, "m.jsonl", line)
    (memory,) = plan_of(path, SourceFormat.JSON_LINES).memories
    origin = {"format": "json-lines", "path": path.as_posix(), "line": 1}
    assert memory.metadata == {"ticket": 7, "imported_from": origin}


def test_rule_of_cursor_keeps_its_reach(tmp_path: Path) -> None:
    """Commas within braces belong to a glob, in either style of list."""
    plans = {
        name: plan_of(write(tmp_path, name, (GOLDEN / f"{name}.txt").read_bytes()), SourceFormat.CURSOR_RULES)
        for name in ("api.mdc", "always.mdc")
    }
    assert plans["api.mdc"].memories[0].extra == {"always_apply": False, "globs": ["src/api/**/*.{ts,tsx}", "*.http"]}
    assert plans["always.mdc"].memories[0].extra == {"always_apply": True, "globs": ["a/*.py", "b/*.py"]}


@given(MARKDOWN, st.sampled_from(NOTE_READERS), st.sampled_from(["CLAUDE.md", "memory/MEMORY.md", "x.mdc"]))
def test_any_note_is_read_to_the_end(text: str, read: Reader, path: str) -> None:
    """Never fails; what comes out may be stored as it is, has a line of the file, and is the same each time."""
    parts = read(text, path)
    assert parts == read(text, path)
    line_count = text.count("\n") + text.count("\r") + 1
    for part in parts:
        assert 0 <= part.place.line <= line_count + 1
        if isinstance(part, ImportedMemory):
            assert part.content == normalise(part.content)
            assert 0 < len(part.content.encode()) <= MAX_CONTENT_BYTES
            assert part.memory_type is not MemoryType.GOLDEN_RULE


@given(
    st.lists(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=12), max_size=20, unique=True)
)
def test_every_list_item_becomes_one_memory(items: list[str]) -> None:
    """Nothing is lost and nothing is joined."""
    parts = read_claude_memory("\n".join(f"- {item}" for item in items), "MEMORY.md")
    assert [part.content for part in parts if isinstance(part, ImportedMemory)] == list(map(normalise, items))
    assert [part.place.line for part in parts] == list(range(1, len(items) + 1))


@given(st.lists(st.binary(max_size=60) | st.text().map(str.encode), max_size=8))
def test_any_lines_are_read_or_told(lines: list[bytes]) -> None:
    """Each line that is not blank is accounted for."""
    parts = list(read_json_lines(lines, "m.jsonl"))
    assert {part.place.line for part in parts} <= set(range(1, len(lines) + 1))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=9), part, max_size=3),
)


@given(
    st.dictionaries(
        st.sampled_from(["content", "type", "namespace", "importance", "metadata", "other"]),
        JSON_VALUES | st.sampled_from(["fact", "global", "project:a", "text", 0.5]),
    )
)
def test_any_record_is_stored_within_the_rules_or_told(record: dict[str, object]) -> None:
    """An import lets nothing through that remember would refuse, whatever a record holds."""
    for part in read_json_lines([json.dumps(record).encode()], "m.jsonl"):
        if isinstance(part, ImportedMemory):
            assert 0 <= part.importance <= 1
            assert isinstance(part.content, str)
            assert part.content
            assert len(json.dumps(part.metadata, ensure_ascii=False).encode(errors="replace")) <= MAX_METADATA_BYTES


def test_records_that_are_too_large_are_told_and_cost_nothing_else() -> None:
    """The lines after a huge one are read."""
    records = [
        b'{"content": "' + b"x" * MAX_LINE_BYTES + b'"}',
        json.dumps({"content": "x" * (MAX_CONTENT_BYTES + 1)}).encode(),
        json.dumps({"content": "x", "metadata": {"a": "x" * MAX_METADATA_BYTES}}).encode(),
        b'{"content": "x", "metadata": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"content": "x", "metadata": {"a": ' + b"[" * 9_000 + b"]" * 9_000 + b"}}",
        b'{"content": "kept"}',
    ]
    parts = list(read_json_lines(records, "m.jsonl"))
    assert [part.reason for part in parts[:3] if isinstance(part, SkippedPart)] == [SkipReason.TOO_LARGE] * 3
    assert isinstance(parts[-1], ImportedMemory)


def test_long_line_of_a_file_is_not_read_into_memory(tmp_path: Path) -> None:
    """The numbers of the lines after it stay right."""
    content = b'{"content": "a"}\n' + b" " * (3 * MAX_LINE_BYTES) + b'\n{"content": "b"}\n'
    plan = plan_of(write(tmp_path, "m.jsonl", content), SourceFormat.JSON_LINES)
    assert [(m.place.line, m.content) for m in plan.memories] == [(1, "a"), (3, "b")]
    assert [(part.place.line, part.reason) for part in plan.skipped] == [(2, SkipReason.TOO_LARGE)]


@pytest.mark.parametrize(
    ("raw", "content"),
    [
        ("- Größe\r\n- b\r\n".encode(), "Größe"),
        (b"\xef\xbb\xbf" + "- Größe\n".encode(), "Größe"),
        ("- Größe\n".encode("utf-16"), "Größe"),
        ("- Größe – “x”\n".encode("cp1252"), "Größe – “x”"),
        ("- Gro\u0308ße\n".encode(), "Größe"),
    ],
)
def test_notes_of_every_editor_are_read(raw: bytes, content: str, tmp_path: Path) -> None:
    """An encoding is no reason to lose a note."""
    assert plan_of(write(tmp_path, "MEMORY.md", raw), SourceFormat.CLAUDE_MEMORY).memories[0].content == content


@pytest.mark.parametrize("source_format", [SourceFormat.CLAUDE_MEMORY, SourceFormat.JSON_LINES])
def test_what_is_no_regular_file_is_left(source_format: SourceFormat, tmp_path: Path) -> None:
    """A link may lead to a secret, and a pipe never ends."""
    write(tmp_path, "secret", '- secret\n{"content": "secret"}')
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "folder").mkdir()
    names = ["link", "folder", "absent"]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        names.append("pipe")
    plan = plan_import([named_source(tmp_path / name, source_format) for name in names])
    assert plan.memories == ()
    reasons = [part.reason for part in plan.skipped]
    assert reasons[0] is SkipReason.SYMLINK
    assert set(reasons[1:]) <= {SkipReason.NOT_A_FILE, SkipReason.UNREADABLE}
    assert len(reasons) == len(names)


def test_huge_and_binary_notes_are_left(tmp_path: Path) -> None:
    """They are no notes."""
    huge = write(tmp_path, "huge.md", b"- x\n" * (MAX_NOTES_BYTES // 4 + 1))
    binary = write(tmp_path, "binary.md", b"- x\0\n")
    plan = plan_import([named_source(path, SourceFormat.CLAUDE_MEMORY) for path in (huge, binary)])
    assert [part.reason for part in plan.skipped] == [SkipReason.TOO_LARGE, SkipReason.BINARY]


def test_project_is_searched_in_fixed_places_only(tmp_path: Path) -> None:
    """Links are told and not followed, files elsewhere are not looked at, and the order is always the same."""
    outside = write(tmp_path, "outside/rules/x.mdc")
    root = tmp_path / "project"
    for name in ("CLAUDE.md", ".claude/CLAUDE.md", ".cursor/rules/b.mdc", ".cursor/rules/sub/a.mdc", "docs/AGENTS.md"):
        write(root, name)
    write(root, ".cursor/rules/readme.txt")
    (root / "AGENTS.md").symlink_to(outside)
    (root / ".cursor/rules/linked").symlink_to(outside.parent)
    found = project_sources(root)
    names = [source.label for source in found if isinstance(source, Source)]
    assert names == ["CLAUDE.md", ".claude/CLAUDE.md", ".cursor/rules/b.mdc", ".cursor/rules/sub/a.mdc"]
    links = [part.place.path for part in found if isinstance(part, SkippedPart)]
    assert links == ["AGENTS.md", ".cursor/rules/linked"]


def test_linked_rules_folder_is_not_entered(tmp_path: Path) -> None:
    """A repository must not make an import read files outside of it."""
    write(tmp_path, "outside/x.mdc")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.cursor").symlink_to(tmp_path / "outside")
    (tmp_path / "outside/rules").mkdir()
    write(tmp_path, "outside/rules/y.mdc")
    found = project_sources(tmp_path / "project")
    assert [part.reason for part in found if isinstance(part, SkippedPart)] == [SkipReason.SYMLINK]
    assert len(found) == 1


def test_memory_folder_of_claude_is_found_by_the_project(tmp_path: Path) -> None:
    """Its name is the project's path with a dash for each character that is no letter or digit."""
    folder = claude_memory_folder(tmp_path, Path("/home/dev/shop_v2.api"))
    assert folder == tmp_path / "projects/-home-dev-shop-v2-api/memory"
    for name in ("MEMORY.md", "topic.md", "picture.png"):
        write(folder, name)
    plan = plan_import(claude_memory_sources(folder))
    assert [Path(name).name for name in plan.files] == ["MEMORY.md", "topic.md"]
    assert plan.counts_by_reason == {"duplicate": 1}


def test_names_in_a_note_are_never_opened(tmp_path: Path) -> None:
    """Claude Code would follow these; an import reads what the user named."""
    write(tmp_path, "other.md", "- from elsewhere\n")
    path = write(tmp_path, "CLAUDE.md", "@other.md\n- [Other](other.md) — hook\n- see @other.md\n")
    plan = plan_of(path, SourceFormat.CLAUDE_MEMORY)
    assert [memory.content for memory in plan.memories] == ["see @other.md"]
    assert plan.counts_by_reason == {"include": 1, "index_entry": 1}


def test_plan_is_the_same_each_time(tmp_path: Path) -> None:
    """A dry run says what the import will do."""
    for name in EXPECTED:
        write(tmp_path, name, (GOLDEN / f"{name}.txt").read_bytes())
    sources = [named_source(tmp_path / name, FORMATS[name]) for name in EXPECTED]
    plan = plan_import(sources)
    assert plan == plan_import(sources)
    assert sum(plan.counts_by_type.values()) == len(plan.memories)


def test_plan_takes_no_more_than_it_may(tmp_path: Path) -> None:
    """What is left because there is too much is told."""
    path = write(tmp_path, "MEMORY.md", "".join(f"- note {number}\n" for number in range(5)))
    plan = plan_import([named_source(path, SourceFormat.CLAUDE_MEMORY)], most_memories=3)
    assert len(plan.memories) == 3
    assert plan.counts_by_reason == {"too_many": 2}


def test_import_goes_on_after_what_was_refused(tmp_path: Path) -> None:
    """One bad memory must not cost the others; a sidecar that is gone ends it."""
    path = write(tmp_path, "MEMORY.md", "- first\n- refused\n- known\n")
    plan = plan_of(path, SourceFormat.CLAUDE_MEMORY)

    def remember(memory: ImportedMemory) -> Stored:
        if memory.content == "refused":
            raise ContentTooLargeError("content", 7, 6)
        return Stored("mem_1", is_duplicate=memory.content == "known")

    report = carry_out(plan, remember)
    assert (report.stored, report.duplicates) == (1, 1)
    assert [(refused.place.line, refused.reason) for refused in report.refused] == [(2, "CONTENT_TOO_LARGE")]

    def gone(_: ImportedMemory) -> Stored:
        raise SidecarNotRunningError("home")

    with pytest.raises(SidecarNotRunningError):
        carry_out(plan, gone)


def test_empty_plan_is_a_plan() -> None:
    """Nothing to import is no error."""
    plan = make_plan((), (), most_memories=1)
    assert plan.counts_by_type == plan.counts_by_reason == {}
