"""A TOML text is changed where it must be and nowhere else."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_plugins.kit.config_edit.toml_text import TomlSyntaxError, toml_value, with_table, without_table
from sidecar.api.plain import JsonValue

PATH = ("mcp_servers", "memory")
OURS: dict[str, JsonValue] = {"command": "/opt/sidecar", "args": ["mcp"], "env": {"A": "1"}}
OWNED = ("command", "args", "env")
COMMENT = "Ours.\nTaken out again."
BLOCK = '# Ours.\n# Taken out again.\n[mcp_servers.memory]\ncommand = "/opt/sidecar"\nargs = ["mcp"]\nenv = {A = "1"}\n'

TEXTS = {
    "empty": "",
    "values only": 'model = "x" # mine\n',
    "no end of line": 'model = "x"',
    "tables apart": '[mcp_servers.a]\ncommand = "a"\n\n[projects."/x"]\nlevel = 1\n\n[mcp_servers.b]\nb = 1\n',
    "dotted": 'mcp_servers.a.command = "a"\n',
    "empty table": "[mcp_servers]\n",
    "list of tables": "[[profiles]]\na = 1\n",
    "text that looks like ours": 'a = """\n[mcp_servers.memory]\ncommand = 1\n"""\n',
}


@pytest.mark.parametrize("name", TEXTS)
def test_table_is_added_at_the_end(name: str) -> None:
    """What was there stays, byte for byte, ahead of ours; taking ours out gives it back."""
    before = TEXTS[name]
    after = with_table(before, PATH, OURS, owned=OWNED, comment=COMMENT)
    assert after.startswith(before)
    assert after.endswith(BLOCK)
    assert toml_value(after, PATH) == OURS
    assert without_table(after, PATH, comment=COMMENT) in (before, before + "\n")


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", 'mcp_servers = {a = {command = "a"}} # mine\n'])
def test_inline_table_is_extended_in_place(text: str) -> None:
    """TOML allows no second table beside an inline one, so that ours goes into it."""
    after = with_table(text, PATH, OURS, owned=OWNED)
    assert tomllib.loads(after)["mcp_servers"]["memory"] == OURS
    assert ("# mine" in after) == ("# mine" in text)
    assert tomllib.loads(without_table(after, PATH)) == tomllib.loads(text)


def test_what_the_user_added_to_our_table_stays() -> None:
    """Codex itself writes approvals below our table; writing ours anew must not ask for them again."""
    text = with_table("", PATH, OURS, owned=OWNED, comment=COMMENT)
    text += 'required = true # wait\n\n[mcp_servers.memory.tools.recall]\napproval_mode = "approve"\n'
    again = with_table(text, PATH, {"command": "/new/sidecar", "args": ["mcp"]}, owned=OWNED)
    assert toml_value(again, PATH) == {
        "command": "/new/sidecar",
        "args": ["mcp"],
        "required": True,
        "tools": {"recall": {"approval_mode": "approve"}},
    }
    assert "# wait" in again
    assert COMMENT.splitlines()[0] in again


def test_taking_out_keeps_what_follows() -> None:
    """A comment above the next table belongs to that table, though it stands below ours; subtables of ours go too."""
    text = with_table('model = "x"\n', PATH, OURS, owned=OWNED, comment=COMMENT)
    text += '\n# about x\n[x]\na = 1\n\n[mcp_servers.memory.tools.recall]\napproval_mode = "approve"\n# last\n'
    assert without_table(text, PATH, comment=COMMENT) == 'model = "x"\n\n# about x\n[x]\na = 1\n\n# last\n'


def test_carriage_returns_are_kept() -> None:
    """A file written on Windows stays one; ours ends its lines in the same way."""
    before = 'model = "x"\r\n[a]\r\nb = 1\r\n'
    after = with_table(before, PATH, OURS, owned=OWNED, comment=COMMENT)
    assert "\n" not in after.replace("\r\n", "")
    assert without_table(after, PATH, comment=COMMENT) == before


def test_malformed_text_is_refused_with_its_place() -> None:
    """The user is told where to look."""
    with pytest.raises(TomlSyntaxError) as caught:
        with_table('a = 1\nb = "x\n', PATH, OURS, owned=OWNED)
    assert (caught.value.line, caught.value.column) == (2, 7)


NAMES = st.sampled_from(["a", "b", "model", "mcp_servers", "x y", "memory", "ä.b"])
TABLES = st.lists(
    st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.dictionaries(st.sampled_from("kvw"), st.integers())),
    max_size=5,
)


@given(tables=TABLES, has_comments=st.booleans())
def test_any_file_keeps_its_values(tables: list[tuple[list[str], dict[str, int]]], has_comments: bool) -> None:
    """Tables in any order, with any names: all keep their values and comments, and taking ours out restores them."""
    text = ""
    for number, (path, values) in enumerate(tables):
        name = ".".join(f'"{part}"' for part in path)
        block = (
            f"# about {number}\n" * has_comments + f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())
        )
        try:
            tomllib.loads(text + block)
        except tomllib.TOMLDecodeError:
            continue
        text += block
    if isinstance(toml_value(text, ("mcp_servers",)), dict | None) and toml_value(text, PATH) is None:
        after = with_table(text, PATH, OURS, owned=OWNED, comment=COMMENT)
        assert toml_value(after, PATH) == OURS
        assert after.startswith(text)
        assert without_table(after, PATH, comment=COMMENT) == text
