"""Which tools are ours, and which memories a text showed."""

import json

import pytest

from client_plugins.kit.recognition import (
    describe_call,
    is_remembering_tool,
    recalling_tool,
    shown_memories,
)
from client_plugins.kit.texts import cut, render_input
from sidecar.domain.evidence import (
    MAX_SLICE_CHARACTERS,
    RecallCalled,
    RememberCalled,
    Shown,
    ShownState,
    ToolCalled,
)
from sidecar.testing.transcripts import sample_memory_id

ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("mcp__memory__recall", "recall"),
        ("mcp__plugin_zero-memory_zero-memory__recall", "recall"),
        ("mcp__plugin_memory-kit_memory__build_context", "build_context"),
        ("recall", "recall"),
        ("memory__recall", "recall"),
        ("mcp__a___recall", "recall"),
        ("mcp__memory__memory_recall", "recall"),
        ("mcp__memory__memory_context", "build_context"),
        ("mcp__memory__remember", None),
        ("mcp__memory__recall_all", None),
        ("mcp__recall__search", None),
        ("Read", None),
        ("", None),
    ],
)
def test_recalling_tools_are_known_by_their_last_segment(name: str, tool: str | None) -> None:
    """A server may be mounted under any name, by hand or by a plugin."""
    assert recalling_tool(name) == tool


def test_remember_is_known_under_every_mount() -> None:
    """`remember` is ours; a tool that only contains the word is not."""
    assert all(map(is_remembering_tool, ("mcp__m__remember", "remember", "mcp__plugin_a_b__memory_remember")))
    assert not any(map(is_remembering_tool, ("mcp__m__remember_that", "mcp__remember__x", "")))


def test_a_call_is_described_by_what_it_is() -> None:
    """Recalls and `remember` travel without their input, other tools with it."""
    assert describe_call("c", "mcp__m__recall", {"query": "q"}) == RecallCalled("c", "recall")
    assert describe_call("c", "mcp__m__remember", {"content": "x"}) == RememberCalled("c")
    assert describe_call("c", "Bash", {"command": "ls"}) == ToolCalled("c", "Bash", "command: ls")


@pytest.mark.parametrize(
    ("texts", "ids"),
    [
        ([f"{ONE} and {TWO} and {ONE}"], (ONE, TWO)),
        ([f"- a [{ONE}]", f"- b [{TWO}]"], (ONE, TWO)),
        ([json.dumps({"result": [{"id": TWO}, {"id": ONE}]})], (TWO, ONE)),
        ([json.dumps({"text": f"first\n{ONE}\t{TWO}"})], (ONE, TWO)),
        ([json.dumps(json.dumps({"text": f"first\n{ONE}\r\n{TWO}"}))], (ONE, TWO)),
        (["é" + ONE, f"{TWO}é"], (ONE, TWO)),
        ([f"x{ONE}", f"{ONE}X", ONE.lower(), ONE[:-1], f"memo_{ONE[4:]}", "mem_" + "I" * 26], ()),
        (["nothing known"], ()),
        ([], ()),
    ],
)
def test_shown_memories_are_ids_of_our_exact_shape(texts: list[str], ids: tuple[str, ...]) -> None:
    """Also inside JSON inside a string, where an escape sticks to the id; never part of a longer word."""
    state = ShownState.IDS if ids else ShownState.NOTHING
    assert shown_memories(texts) == Shown(state, memory_ids=ids)


def test_shown_memories_are_bounded() -> None:
    """A hostile result must not fill memory or a message."""
    text = " ".join(sample_memory_id(number) for number in range(3_000))
    assert len(shown_memories([text]).memory_ids) == 1_000


def test_tool_input_is_short_and_readable() -> None:
    """A judge reads what was done, not the whole of a written file."""
    text = render_input({"file_path": "a.py", "content": "x" * 100_000, "edits": [{"old": 1}], "deep": _nested(3_000)})
    assert text.startswith("file_path: a.py\ncontent: xxx")
    assert 'edits: [{"old":1}]' in text
    assert text.endswith("deep: (list)")
    assert len(text) < 2_200


@pytest.mark.parametrize(
    "arguments", [None, 7, "text", ["a"], {}, {"k\0": "\ud800"}, {str(n): "y" * 9_000 for n in range(99)}]
)
def test_tool_input_of_any_kind_is_rendered(arguments: object) -> None:
    """What a model passes is not to be trusted, and must fit UTF-8 and the limit."""
    text = render_input(arguments)
    assert len(text) <= MAX_SLICE_CHARACTERS
    assert "\0" not in text
    text.encode()


def test_cut_texts_say_so() -> None:
    """A text at the limit stays whole, a longer one shows where it ends."""
    assert cut("a" * 10, 10) == "a" * 10
    assert cut("a" * 11, 10) == "a" * 9 + "…"
    assert cut("\ud83d\ude00 \ud83d x\0y\r\n") == "😀 � x y"


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value
