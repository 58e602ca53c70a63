"""What commands print: safe for a terminal, 80 columns without one, one JSON document for scripts."""

import io
import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from sidecar.api.plain import plain
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.insights import chart
from sidecar.cli.output import Output
from sidecar.cli.streams import accept_every_text
from sidecar.domain.display import one_line, visible
from sidecar.errors import InvalidInputError, all_errors

MEMORY_ID = "mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb\x00\x08c\x9b2J", "a\\x0db\\x00\\x08c\\x9b2J"),
        ("user\u202etxt.exe", "user\\u{202e}txt.exe"),
        ("hidden\U000e0041tag", "hidden\\u{e0041}tag"),
        ("line\u2028break", "line\\u{2028}break"),
        ("tab\tand\nline feed, äöü 日本 👩‍💻", "tab\tand\nline feed, äöü 日本 👩‍💻"),
    ],
)
def test_harmful_characters_are_written_out(text: str, shown: str) -> None:
    """Stored text can neither steer a terminal nor read otherwise than it is; ordinary text is untouched."""
    assert visible(text) == shown


def test_every_control_character_is_written_out() -> None:
    """No control character but tab and line feed gets through, C1 included."""
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"]
    assert not [character for character in controls if character in visible(f"x{character}y")]


def test_one_line_is_one_line_and_short() -> None:
    """A preview never breaks a table."""
    assert one_line("a\n\n  b\tc", limit=20) == "a b c"
    assert one_line("x" * 50, limit=10) == "x" * 9 + "…"


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Output]:
    """Give what makes an output that takes a captured stdout for a terminal so many columns wide."""

    def make(columns: int) -> Output:
        for name, value in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": str(columns), "LINES": "25"}.items():
            monkeypatch.setenv(name, value)
        return Output(is_json=False)

    return make


def plain_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what was written on stdout, without the colours of our own."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_lines_stay_within_the_terminal(
    on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str]
) -> None:
    """Sentences and tables are broken where a person reads them; stored text has no say in it."""
    output = on_terminal(80)
    output.line("word " * 60, style="bold", indent=3)
    output.table(("id", "memory"), [(MEMORY_ID, "[red]not markup[/red] \x1b[2J " * 20)])
    lines = plain_lines(capsys)
    assert max(map(len, lines)) <= 80
    assert "[red]not markup[/red]" in " ".join(lines)
    assert "\x1b" not in "".join(lines)


def test_what_is_to_be_copied_is_not_broken(
    on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str]
) -> None:
    """A line feed within a token or a command would be copied with it."""
    token = "x" * 200
    on_terminal(80).line(f"There are many more of them still, and here is how to see them: add `--page {token}`.")
    assert f"`--page {token}`." in plain_lines(capsys)


def test_narrow_terminal_gets_the_fields_below_each_other(
    on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str]
) -> None:
    """Columns of a few characters cannot be read; a pair of name and value is not torn apart."""
    row = (MEMORY_ID, "decision", "Redis was chosen.")
    on_terminal(40).table(("id", "type", "memory"), [row])
    assert plain_lines(capsys) == [MEMORY_ID, "  type: decision", "  memory: Redis was chosen."]
    on_terminal(40).table(("part", "state"), [("queue", "0 waiting, 0 given up, and all is well")])
    assert plain_lines(capsys) == ["queue: 0 waiting, 0 given up, and all", "  is well"]


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_entries_have_room_for_their_text(
    on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    """A text beside its columns where there is room, else below them; nothing is lost at any width."""
    text = "The staging database is restored every night, so that nothing is kept there 🚢 港口服务的部署在星期二进行。"
    on_terminal(columns).entries(("id", "type", "memory"), [(MEMORY_ID, "gotcha", text), ("b", "fact", "short")])
    lines = plain_lines(capsys)
    assert max(map(cell_len, lines)) <= max(columns, len(MEMORY_ID))
    assert "".join("".join(lines).split()).count("".join(text.split())) == 1
    assert (lines[0].split() == ["id", "type", "memory"]) is (columns == 200)
    assert (f"{MEMORY_ID}  gotcha" in lines) is (columns in {40, 80})


def test_wide_characters_are_broken_where_the_line_ends(
    on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str]
) -> None:
    """Chinese has no spaces to break at, and each of its characters takes two columns."""
    on_terminal(40).line("港口" * 50, indent=3)
    lines = plain_lines(capsys)
    assert "".join(line.strip() for line in lines) == "港口" * 50
    assert max(map(cell_len, lines)) <= 40


def test_preview_is_cut_for_a_person_alone(on_terminal: Callable[[int], Output]) -> None:
    """Whoever reads a pipe has no other way to the rest."""
    assert Output(is_json=False).preview("x" * 70_000, limit=10) == "x" * 70_000
    assert on_terminal(80).preview("x" * 70_000, limit=10) == "x" * 9 + "…"


def test_no_cell_is_cut(on_terminal: Callable[[int], Output], capsys: pytest.CaptureFixture[str]) -> None:
    """An id without its end is of no use, and who reads half a figure is misled."""
    row = (MEMORY_ID, "b" * 30, "c" * 30, "d" * 30)
    for columns in (60, 130):
        on_terminal(columns).table(("id", "b", "c", "d"), [row])
        printed = " ".join(plain_lines(capsys))
        assert all(cell in printed for cell in row)


def test_piped_rows_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """What is piped can be cut and counted: no colours, no padding, no breaks."""
    output = Output(is_json=False)
    output.line("word " * 60, style="bold", indent=3)
    output.table(("id", "type", "memory"), [(MEMORY_ID, "fact", "many\twords\n" * 60), ("b", "fact", "short")])
    printed = capsys.readouterr().out
    assert [len(line.split("\t")) for line in printed.splitlines()] == [1, 3, 3]
    assert printed.endswith("b\tfact\tshort\n")
    assert "\x1b" not in printed


def test_error_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    """The field of a request means nothing to whoever typed an option; a script gets the field."""
    error = InvalidInputError("page_token", "x", "the token of the page before")
    Output(is_json=False).error(error)
    assert capsys.readouterr().err.startswith("Error: `--page` is 'x'")
    Output(is_json=True).error(error)
    assert json.loads(capsys.readouterr().err)["error"]["message"].startswith("page_token is")


def test_json_is_ascii_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A script gets the exact text back whatever is in it, and a terminal nothing to act on."""
    text = "\x1b[31m ä 日 \u202e \U000e0041 \x9b"
    Output(is_json=True).document({"content": text})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert "\x1b" not in printed
    assert json.loads(printed) == {"content": text}


def test_error_as_json_has_reason_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A script branches on the reason, not on the words."""
    Output(is_json=True).error(InvalidInputError("importance", 2, "a number from 0 to 1"))
    captured = capsys.readouterr()
    assert captured.out == ""
    error = json.loads(captured.err)["error"]
    assert (error["reason"], error["exit_code"], error["metadata"]) == ("INVALID_INPUT", 2, {"field": "importance"})


def test_every_error_is_told_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    """No error of the sidecar is beyond words."""
    for cls in all_errors():
        error = cls.from_wire("what is wrong\x1b[2J; what to do", {"home": "/somewhere"})
        Output(is_json=True).error(error)
        assert json.loads(capsys.readouterr().err)["error"]["reason"] == cls.reason
        Output(is_json=False).error(error)
        assert capsys.readouterr().err.startswith("Error: what is wrong\\x1b[2J; what to do")


def test_messages_become_plain_values() -> None:
    """Scripts see short enum names, whole numbers, ISO times and explicit nulls, always under the same keys."""
    memory = pb.Memory(id=MEMORY_ID, type=pb.MEMORY_TYPE_GOLDEN_RULE, access_count=2**40)
    memory.create_time.FromDatetime(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    memory.metadata.update({"ticket": 7, "ratio": 0.5, "tags": ["a", None, {"deep": True}]})
    answer = service.RecallResponse(memories=[service.RecalledMemory(memory=memory, score=0.5)])
    document = plain(answer)
    assert set(document) == {field.name for field in service.RecallResponse.DESCRIPTOR.fields}
    found = json.loads(json.dumps(document))["memories"][0]
    assert found["similarity"] is None
    assert found["score_parts"] is None
    assert found["memory"]["type"] == "golden_rule"
    assert found["memory"]["state"] == ""
    assert found["memory"]["access_count"] == 2**40
    assert found["memory"]["create_time"] == "2026-01-02T03:04:05Z"
    assert found["memory"]["metadata"] == {"ticket": 7, "ratio": 0.5, "tags": ["a", None, {"deep": True}]}


def test_maps_and_unknown_enum_values_become_plain() -> None:
    """A newer sidecar's enum value is shown as its number instead of failing."""
    counts = service.CountMemoriesResponse(total=3, by_type={"fact": 1, "decision": 2})
    assert plain(counts)["by_type"] == {"decision": 2, "fact": 1}
    memory = pb.Memory()
    memory.ParseFromString(b"\x18\x63")
    assert plain(memory)["type"] == "99"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_every_text_can_be_written(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """A terminal or a file that knows few letters gets others in plain ones, and never a failure."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    accept_every_text()
    output = Output(is_json=False)
    output.line("relevance × age … → “good” 🚢 港")
    output.table(("a", "b"), [("é", "…")])
    stream.flush()
    written = stream.buffer.getvalue().decode(encoding)
    assert "\\u{1f6a2} \\u{6e2f}" in written
    assert ("relevance x age ... -> " if encoding == "ascii" else "relevance × age ") in written
    assert not output.can_show_bars
    assert chart([0, 1, 8], has_blocks=output.can_show_bars).isascii()
