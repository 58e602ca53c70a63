"""What Neovim's plugin says and checks, in the oldest Lua that Neovim runs on. The rest is in the lab."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from lupa.lua51 import LuaRuntime, LuaSyntaxError

PLUGIN: Final = Path(__file__).parents[2] / "client_plugins/neovim"
FILES: Final = sorted(PLUGIN.rglob("*.lua"))
ID: Final = "mem_01HZX3V5K8Q2W4E6R7T9Y0A1B2"


@pytest.fixture(scope="module")
def lua() -> LuaRuntime:
    """Return a Lua of its own."""
    return LuaRuntime(unpack_returned_tuples=True)


@pytest.fixture(scope="module")
def text(lua: LuaRuntime) -> Any:
    """Return the module that needs no editor."""
    return lua.execute((PLUGIN / "lua/memory_sidecar/text.lua").read_text(encoding="utf-8"))


@pytest.fixture
def memory(lua: LuaRuntime) -> Callable[..., Any]:
    """Return a maker of memories as the language server sends them."""

    def make(used: int = 0, misled: int = 0, shown: int = 0, **given: object) -> Any:
        usefulness = {"used": used, "misled": misled, "shown": shown, "multiplier": 1.0}
        plain: dict[str, Any] = {
            "id": ID,
            "content": "Deploys go out on Tuesday.",
            "type": "convention",
            "namespace": "project:shop",
            "importance": 0.5,
            "age": "3 d",
        }
        return lua.table_from(plain | given | {"usefulness": lua.table_from(usefulness)})

    return make


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PLUGIN)))
def test_every_file_is_lua(lua: LuaRuntime, path: Path) -> None:
    """A slip in a file that is loaded late would be noticed by its first user."""
    assert lua.compile(path.read_text(encoding="utf-8")) is not None


def test_a_slip_would_be_noticed(lua: LuaRuntime) -> None:
    """The check above can fail at all."""
    with pytest.raises(LuaSyntaxError):
        lua.compile("local x = = 1")


def test_label_is_the_first_line_that_says_something(text: Any, memory: Callable[..., Any]) -> None:
    """Lists show one line, and never half a character."""
    assert text.label(memory(content="\n  \n  Use uv.  \r\nmore")) == "Use uv."
    assert text.label(memory(content=" \n")) == "(blank)"
    assert text.label(memory(content="é" * 300)) == "é" * 100 + "…"


def test_being_shown_is_not_told_as_being_useful(text: Any, memory: Callable[..., Any]) -> None:
    """Not shown, shown and used are three different things."""
    assert text.description(memory()) == "3 d · not shown yet"
    assert text.description(memory(shown=4)) == "3 d · shown 4×, use not seen"
    told = text.description(memory(used=2, misled=1, shown=4, golden=True, disputed=True))
    assert told == "3 d · used 2×, misled 1× · golden · disputed"


def test_a_document_has_one_line_for_each_line(text: Any, memory: Callable[..., Any]) -> None:
    """Neovim refuses a line with a newline in it, and a NUL would be shown as one."""
    lines = list(text.document(memory(content="a\r\nb\x00c\n\nd")).values())
    assert lines[0] == f"{ID}  convention  project:shop"
    assert lines[3:] == ["a", "bc", "", "d"]


def test_unknown_figures_are_not_zero(lua: LuaRuntime, text: Any) -> None:
    """JSON's null is a value of its own in Neovim, neither nil nor a number."""
    null = lua.eval("newproxy()")
    figures = [
        {"label": "Hit rate", "value": 0.41234, "numerator": 7, "denominator": 17, "proxy": "judged by texts"},
        {"label": "Precision", "value": null, "numerator": 0, "denominator": 0, "proxy": null},
    ]
    told = list(text.insights(lua.table_from([lua.table_from(figure) for figure in figures]), 30).values())
    assert told[2:5] == ["Hit rate: 0.412", "    7 of 17", "    stands for: judged by texts"]
    assert told[6:] == ["Precision: not known yet", "    0 of 0"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (None, ""),
        ({"state": "running", "memories": 12}, "mem 12"),
        ({"state": "running"}, "mem"),
        ({"state": "starting"}, "mem …"),
        ({"state": "away", "message": "100%"}, "mem away"),
    ],
)
def test_status_line(lua: LuaRuntime, text: Any, status: dict[str, object] | None, shown: str) -> None:
    """It is short, and holds no `%`, which would be a command there."""
    assert text.statusline(status if status is None else lua.table_from(status)) == shown


@pytest.mark.parametrize(
    ("sentence", "lines", "content"),
    [
        ("  about it ", ["  x = 1", "y"], "about it\n\n  x = 1\ny"),
        ("", ["x"], "x"),
        (" alone ", [], "alone"),
        (" alone ", ["", "  "], "alone"),
        ("  ", [" "], None),
    ],
)
def test_what_is_remembered(lua: LuaRuntime, text: Any, sentence: str, lines: list[str], content: str | None) -> None:
    """Lines are kept as they are, and nothing blank is stored."""
    assert text.content(sentence, lua.table_from(lines)) == content


@pytest.mark.parametrize(
    ("line", "found"),
    [(ID, ID), (f"see {ID}, please", ID), (f"{ID}9", None), (f"x{ID}", None), (ID[:-1], None), ("", None)],
)
def test_ids_are_found_whole(text: Any, line: str, found: str | None) -> None:
    """A part of a longer word is no id: forgetting by it would forget another."""
    assert text.find_id(line) == found


def test_settings_are_checked(lua: LuaRuntime, text: Any) -> None:
    """A misspelled setting is told instead of being without effect."""
    assert "no setting" in text.settings(lua.table_from({"codelens": True}))[1]
    assert "takes a boolean, not a string" in text.settings(lua.table_from({"hover": "yes"}))[1]
    assert "list of words" in text.settings(lua.table_from({"cmd": lua.table_from([])}))[1]
    settings = text.settings(lua.table_from({"namespace": "project:shop", "code_lens": False}))
    options = dict(text.initialization_options(settings))
    assert options == {"namespace": "project:shop", "hover": True, "codeLens": False, "fileActivity": True}


def test_a_failure_is_told_with_its_remedy(lua: LuaRuntime, text: Any) -> None:
    """Whoever reads it wants to know what to do."""
    data = lua.table_from({"reason": "sidecar_away", "remedy": "Run `sidecar start`."})
    assert text.failure(lua.table_from({"message": "it is away", "data": data})) == "it is away. Run `sidecar start`."
    assert text.failure(lua.table_from({"message": "no", "data": lua.eval("newproxy()")})) == "no"


def test_secrets_that_were_taken_out_are_told(lua: LuaRuntime, text: Any) -> None:
    """Whoever gave one to be remembered must know that it is not in there, and by which name it was known."""
    stored = {"id": ID, "created": True, "namespace": "global", "redacted": lua.table_from(["github-token"])}
    assert text.stored_sentence(lua.table_from(stored)) == f"remembered in global: {ID}; taken out: github-token"
    known = {"id": ID, "created": False, "namespace": "global", "redacted": lua.eval("newproxy()")}
    assert text.stored_sentence(lua.table_from(known)) == f"already known in global: {ID}"
