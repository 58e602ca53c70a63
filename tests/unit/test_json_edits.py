"""A JSON text is changed where it must be and nowhere else."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_plugins.kit.config_edit.json_spans import JsonSyntaxError, comments_of
from client_plugins.kit.config_edit.json_text import JsonText
from sidecar.api.plain import JsonValue

OURS: JsonValue = {"command": "/opt/sidecar", "args": ["mcp"]}
PATH = ("mcpServers", "memory")

# name -> (text with `,@` or `@` where OURS is added at PATH, one step of indentation, None for a single line)
LAYOUTS: dict[str, tuple[str, str | None]] = {
    "two spaces": ('{\n  "mcpServers": {\n    "x": {},@\n  }\n}\n', "  "),
    "tabs, no end of line": ('{\n\t"mcpServers": {\n\t\t"x": 1,@\n\t}\n}', "\t"),
    "one line": ('{"mcpServers": {"x": 1,@}, "b": 2}', None),
    "CR LF": ('{\r\n  "mcpServers": {\r\n    "x": 1,@\r\n  }\r\n}\r\n', "  "),
    "comments": ('// top\n{\n  "mcpServers": { // {\n    "x": 1, // x, "y"@\n    /* end } */\n  }\n}', "  "),
    "comma at the end": ('{\n  "mcpServers": {\n    "x": 1, // one@,\n  },\n}\n', "  "),
    "a text that looks like comments and brackets": ('{"mcpServers": {"x": "// }, ] /* \\" \\\\",@}}', None),
    "only a comment inside": ('{\n  "mcpServers": {\n    // none yet@\n  }\n}\n', "  "),
    "the last of two members with one name": ('{"mcpServers": 1, "mcpServers": {"x": 1,@}}', None),
}


def _before_and_after(name: str) -> tuple[str, str]:
    """Return a layout without and with OURS."""
    text, step = LAYOUTS[name]
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps({"memory": OURS}, indent=step).split("\n")
    ours = " " + lines[0][1:-1] if step is None else "".join(f"{newline}{step}{line}" for line in lines[1:-1])
    without = re.sub(r",(?=( // x, \"y\")?@)", "", text) if "one@," not in text else text.replace("@,", "")
    return without.replace("@", ""), text.replace("@", ours)


@pytest.mark.parametrize("name", LAYOUTS)
def test_member_is_added_in_the_layout_of_the_file(name: str) -> None:
    """The user sees a few new lines in their own style; taking them out gives the very same text."""
    before, after = _before_and_after(name)
    changed = JsonText.parse(before, allows_comments=True).with_value(PATH, OURS)
    assert changed.text == after
    assert changed.without(PATH).text == before


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1,\n  "b" 2\n}', 3, 7),
        ('{"a": 1', 1, 8),
        ("{'a': 1}", 1, 2),
        ('{"a": NaN}', 1, 7),
        ('{"a": 1} x', 1, 10),
        ('{"a": "x\ny"}', 1, 9),
        ("[" * 100_000, 1, 1),
    ],
)
def test_malformed_text_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    """The user is told where to look, also when thousands of brackets were nested."""
    with pytest.raises(JsonSyntaxError) as caught:
        JsonText.parse(text, allows_comments=True)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("text", ['{"a": 1} // c', '{"a": 1,}', '/* c */ {"a": 1}'])
def test_strict_client_gets_no_comments(text: str) -> None:
    """Claude Code ignores a file with a comment, so that editing it would be no help."""
    with pytest.raises(JsonSyntaxError):
        JsonText.parse(text, allows_comments=False)
    assert JsonText.parse(text, allows_comments=True).get(()) == {"a": 1}


def test_null_is_a_value() -> None:
    """A member that is null is there, and is not ours to overwrite unseen."""
    document = JsonText.parse('{"a": null}', allows_comments=False)
    assert document.has(("a",))
    assert not document.has(("b",))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    document=st.dictionaries(st.text(max_size=5), VALUES, max_size=4),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    separators=st.sampled_from([None, (",", ":"), (" , ", " : ")]),
    key=st.text(max_size=5),
    value=VALUES,
)
def test_any_layout_keeps_its_other_values(
    document: dict[str, JsonValue],
    indent: int | str | None,
    newline: str,
    separators: tuple[str, str] | None,
    key: str,
    value: JsonValue,
) -> None:
    """Whatever the document, one member is added or replaced and taken out, and all others keep value and order."""
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False).replace("\n", newline)
    added = JsonText.parse(text, allows_comments=True).with_value((key,), value)
    parsed = json.loads(added.text)
    assert parsed == document | {key: value}
    assert list(parsed) == list(document | {key: value})
    left = json.loads(added.without((key,)).text)
    assert left == {name: each for name, each in document.items() if name != key}
    if key not in document and document:
        assert added.without((key,)).text == text


@given(
    names=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True),
    extras=st.lists(st.sampled_from([" ", "\n", " // c, }\n", "/* , ] */", "\n  \n"]), min_size=12, max_size=12),
    has_last_comma=st.booleans(),
    key=st.sampled_from("abcdefg"),
)
def test_comments_survive_wherever_they_stand(
    names: list[str], extras: list[str], has_last_comma: bool, key: str
) -> None:
    """Comments of the user are neither lost nor doubled, also those inside of what is changed around."""
    parts = [f'{extras[at]}"{name}"{extras[at + 5]}: 1' for at, name in enumerate(names)]
    text = "{" + f"{extras[10]},".join(parts) + ("," if has_last_comma else "") + extras[11] + "}"
    document = JsonText.parse(text, allows_comments=True)
    before = [text[start:end] for start, end in comments_of(text)]
    added = document.with_value((key,), 2)
    assert [added.text[start:end] for start, end in comments_of(added.text)] == before
    assert added.get(()) == dict.fromkeys(names, 1) | {key: 2}
    if key not in names:
        assert added.without((key,)).get(()) == document.get(())
