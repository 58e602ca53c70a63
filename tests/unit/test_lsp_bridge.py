"""Parts of the language server alone: which file a memory names, positions, ignored files, text that stays text."""

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind, Range
from pygls.workspace import PositionCodec

from client_plugins.lsp_bridge import markdown
from client_plugins.lsp_bridge.contract import Figure, Insights, Parameters, Recalled, RememberParameters, Usefulness
from client_plugins.lsp_bridge.documents import MAX_FILE_BYTES, symbol_at, text_in
from client_plugins.lsp_bridge.failures import as_response, problem_and_remedy
from client_plugins.lsp_bridge.file_mentions import is_named, mentions_of
from client_plugins.lsp_bridge.ignored_files import IgnoredFiles
from client_plugins.lsp_bridge.places import Places, file_path
from client_plugins.lsp_bridge.presenting import age, counted, use_in_words
from client_plugins.lsp_bridge.structuring import ParametersError, structured, unstructured
from client_plugins.lsp_bridge.symbols_in_text import is_about, is_telling, words_of
from client_plugins.lsp_bridge.views import FOLDER, Views
from sidecar.errors import InvalidInputError, InvalidNamespaceError, MemoryNotFoundError, all_errors

UTF16 = PositionCodec(PositionEncodingKind.Utf16)


@pytest.mark.parametrize(
    ("content", "metadata", "expected"),
    [
        ("See src/auth/login.py, line 3.", {}, ("src/auth/login.py",)),
        ("`./manage.py seed` and `docs\\setup.md`.", {}, ("manage.py", "docs/setup.md")),
        ("https://example.org/src/x.py says v1.0/2.0, e.g. and/or.", {}, ()),
        ("Nothing.", {"files": ["a/b.go", 3], "source": {"path": "c.rs"}}, ("a/b.go", "c.rs")),
        ("Nothing.", {"other": "a/b.go", "path": {"deep": "x.py"}}, ()),
        ("x.py x.py", {"file": "./x.py"}, ("x.py",)),
    ],
)
def test_files_are_found_in_text_and_metadata(
    content: str, metadata: dict[str, object], expected: tuple[str, ...]
) -> None:
    """A path is told from an address, a version and an abbreviation."""
    assert mentions_of(content, metadata) == expected


@given(st.text(max_size=300))
def test_any_text_can_be_looked_through(content: str) -> None:
    """Memories hold whatever somebody wrote; a file found in one is part of it."""
    for mention in mentions_of(content, {"path": content}):
        assert mention


def test_looking_for_files_takes_linear_time() -> None:
    """A memory of 64 KiB made to be slow must not hold up an editor."""
    began = time.process_time()
    for bait in ("a" * 65_000, "a/" * 32_000, "a." * 32_000, "../" * 20_000, "`" * 65_000):
        mentions_of(bait, {})
        is_about(bait, "some_name")
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("mention", "named"),
    [
        ("src/auth/login.py", True),
        ("auth/login.py", True),
        ("login.py", True),
        ("LOGIN.py", True),
        ("/checkouts/shop/src/auth/login.py", True),
        ("/other/checkout/src/auth/login.py", True),
        ("/login.py", True),
        ("src/login.py", False),
        ("in.py", False),
        ("/other/login.py", False),
        ("login.pyc", False),
    ],
)
def test_a_mention_is_compared_from_the_end(mention: str, named: bool) -> None:
    """People write as much of a path as tells the file."""
    where = {"relative": "src/auth/login.py", "absolute": "/checkouts/shop/src/auth/login.py"}
    assert is_named(mention, **where) is named


def test_names_that_are_everywhere_tell_no_file() -> None:
    """`index.ts` alone would put every memory of one above all the others; at the root it can mean that one only."""
    assert not is_named("index.ts", relative="src/a/index.ts", absolute="/p/src/a/index.ts")
    assert is_named("a/index.ts", relative="src/a/index.ts", absolute="/p/src/a/index.ts")
    assert is_named("README.md", relative="README.md", absolute="/p/README.md")


def test_identifiers_and_everyday_words() -> None:
    """A word of everyday language is about the code only where it stands as code."""
    assert words_of("HTTPServerError2") == ("http", "server", "error")
    assert words_of("connect_timeout") == words_of("connectTimeout") == ("connect", "timeout")
    assert (is_telling("connect_timeout"), is_telling("flags"), is_telling("x_y" * 100)) == (True, False, False)
    assert is_about("Keep connect_timeout low.", "connect_timeout")
    assert not is_about("Keep connect_timeouts low.", "connect_timeout")
    assert not is_about("Feature flags are good.", "flags")
    assert is_about("Set `app.flags` first.", "flags")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give a file with an emoji, line ends of all kinds, and no line end at its end."""
    path = tmp_path / "x.py"
    path.write_bytes("a😋b_c = ünïcode\r\nsecond\rthird 👩‍👩‍👧 x\nlast_one".encode())
    return path


def test_selections_are_cut_where_the_editor_means(source: Path) -> None:
    """Over several lines, in units of UTF-16, and beyond the ends."""

    def text(*span: int) -> str:
        return text_in(str(source), Range(Position(span[0], span[1]), Position(span[2], span[3])), UTF16)

    assert text(0, 1, 0, 3) == "😋"
    assert text(0, 3, 2, 5) == "b_c = ünïcode\nsecond\nthird"
    assert text(3, 0, 3, 99) == text(3, 0, 9, 9) == "last_one"
    assert text(50, 0, 51, 0) == ""
    assert text(0, 0, 5_000, 0) == ""


@pytest.mark.parametrize(
    ("line", "character", "symbol"),
    [(0, 3, "b_c"), (0, 6, "b_c"), (0, 7, ""), (0, 9, "ünïcode"), (1, 2, "second"), (3, 99, "last_one"), (9, 0, "")],
)
def test_symbol_under_the_cursor(source: Path, line: int, character: int, symbol: str) -> None:
    """Also right behind it, where a cursor stands after typing."""
    assert symbol_at(str(source), Position(line, character), UTF16) == symbol


def test_what_is_no_text_file_is_left_alone(tmp_path: Path) -> None:
    """A pipe would hold us up for ever; a huge or binary file tells nothing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"name\0name")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    (tmp_path / "long").write_text("name " * 5_000)
    for name in ("pipe", "binary", "huge", "long", "missing", ".", "x\0y"):
        assert symbol_at(f"{tmp_path}/{name}", Position(0, 1), UTF16) == ""


def test_ignored_files_are_told_as_git_does(tmp_path: Path) -> None:
    """Nested files, exceptions, folders, what git keeps for itself; broken and endless patterns are passed over."""
    (tmp_path / ".git" / "info").mkdir(parents=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("mine.txt\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "build").mkdir()
    (tmp_path / ".gitignore").write_text(f"*.log\nbuild/\n[z-a]\n{'*a' * 40}b\n/root.txt\n")
    (tmp_path / "sub" / ".gitignore").write_text("!keep.log\nlocal.txt\n")
    ignored = IgnoredFiles()
    told = {
        name: ignored.is_ignored(str(tmp_path), name)
        for name in (
            *("a.log", "sub/b.log", "sub/keep.log", "build/x.py", "build/deep/y.py", "mine.txt", "root.txt"),
            *("sub/root.txt", "sub/local.txt", "local.txt", "a.py", ".git/HEAD", f"{'a' * 200}"),
        )
    }
    assert {name for name, is_ignored in told.items() if is_ignored} == {
        *("a.log", "sub/b.log", "build/x.py", "build/deep/y.py", "mine.txt", "root.txt", "sub/local.txt", ".git/HEAD"),
    }
    (tmp_path / ".gitignore").write_text("a.py\n")
    os.utime(tmp_path / ".gitignore", ns=(1, 1))
    assert ignored.is_ignored(str(tmp_path), "a.py")


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:x",
        "git:/x",
        "file://host/share/x",
        "file:////host/x",
        "file:///a%00b",
        "",
        "x",
        "file:",
        f"file:///{'x' * 5_000}",
    ],
)
def test_uris_that_are_no_file_of_this_machine(uri: str) -> None:
    """None of them is opened or looked for."""
    assert file_path(uri) is None
    assert Places(list).place(uri) is None


def test_project_is_found_over_links(tmp_path: Path) -> None:
    """A folder that is reached over a link is the same project, and the file has the same path in it."""
    (tmp_path / "real" / ".git").mkdir(parents=True)
    (tmp_path / "real" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "real" / "src").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    place = Places(list).place((tmp_path / "link" / "src" / "x.py").as_uri())
    assert place is not None
    assert (place.project, place.relative) == ("real", "src/x.py")
    loose = Places(list).place("file:///nowhere/x.py")
    assert loose is not None
    assert (loose.project, loose.relative) == ("", "")


def test_told_namespace_may_be_global_but_not_anything() -> None:
    """`global` means no project; what is no namespace is refused when the editor starts."""
    assert Places(lambda: ["/tmp/x"], namespace="global").project(None) == ""
    with pytest.raises(InvalidNamespaceError):
        Places(list, namespace="*")


@given(st.text(alphabet=st.sampled_from("`~a\n\r \t<>[]()#\x1b\u202e\u2028"), max_size=200))
def test_no_text_leaves_its_fence(text: str) -> None:
    """By the rules of CommonMark: a fence ends with a line of as many backticks at least, indented by three at most."""
    opening, *inside, closing = markdown.fenced(text).split("\n")
    fence = opening.removesuffix("text")
    assert closing == fence
    ends = re.compile(rf" {{0,3}}`{{{len(fence)},}}[ \t]*$")
    assert not [line for line in inside if ends.match(line)]
    assert not {"\x1b", "\r", "\u202e", "\u2028"} & set("".join(inside))


def test_cut_texts_say_so() -> None:
    """Nobody takes a part for the whole."""
    assert markdown.cut("one\ntwo\nthree", max_characters=100, max_lines=2) == "one\ntwo …"
    assert markdown.cut("abc", max_characters=2) == "ab …"
    assert markdown.cut("abc\n", max_characters=3) == "abc"


def test_words_for_people() -> None:
    """What is not known is not told as nothing."""
    assert [age(seconds) for seconds in (3, 90, 7_300, 200_000, 9e7)] == ["now", "1 min", "2 h", "2 d", "2 y"]
    assert use_in_words(Usefulness(used=0, misled=0, shown=0, multiplier=1)) == "not shown to an agent yet"
    assert use_in_words(Usefulness(used=2, misled=1, shown=5, multiplier=1)) == "helped 2×, misled 1×, shown 5×"
    assert (counted(1, "memory", "memories"), counted(0, "memory", "memories")) == ("1 memory", "0 memories")


def test_parameters_are_taken_as_they_are_or_not_at_all() -> None:
    """Nothing is converted: a number is no text, a text no list, `true` no number."""
    told = {"content": "x", "importance": 1, "relatedTo": ["mem_1"]}
    assert structured(told, RememberParameters) == RememberParameters(content="x", importance=1, related_to=["mem_1"])
    assert structured(None, Parameters) == Parameters()
    bad: list[object] = [
        {"content": 1},
        {"content": "x", "relatedTo": "ab"},
        {"content": "x", "importance": True},
        [],
        1,
    ]
    for wrong in bad:
        with pytest.raises(ParametersError):
            structured(wrong, RememberParameters)


def test_answers_leave_out_what_there_is_not() -> None:
    """But a figure without a value says null, for it is always there."""
    assert unstructured(Recalled(memories=[])) == {"memories": [], "recallId": ""}
    figure = Figure(name="f", label="l", value=None, numerator=0, denominator=0)
    told = {"name": "f", "label": "l", "value": None, "numerator": 0, "denominator": 0}
    assert unstructured(Insights(figures=[figure])) == {"figures": [told]}


def test_every_error_says_what_is_wrong_and_most_what_to_do() -> None:
    """The remedy is not said twice, and the reason is the sidecar's."""
    problem, remedy = problem_and_remedy(MemoryNotFoundError("mem_1"))
    assert (problem, remedy) == ("no memory has the id 'mem_1'", "`sidecar list` shows what there is")
    refused = as_response(MemoryNotFoundError("mem_1"))
    assert (refused.code, refused.data) == (-32803, {"reason": "MEMORY_NOT_FOUND", "remedy": remedy})
    assert as_response(InvalidInputError("limit", 0, "more")).code == -32602
    for kind in all_errors():
        data = as_response(kind.from_wire("it is so; do that", {})).data
        assert data is not None
        assert data["reason"] == kind.reason


def test_pages_of_killed_servers_are_removed(tmp_path: Path) -> None:
    """Text of memories that nobody looks at any more does not stay."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    views = Views(lambda: home)
    views.write("recall", "first")
    uri = views.write("recall", "second")
    path = file_path(uri)
    assert path is not None
    assert Path(path).read_text() == "second"
    assert views.is_own(path)
    own = Path(path).parent
    own.rename(own.with_name("4194999"))
    Views(lambda: home).write("status", "third")
    assert [folder.name for folder in (home / FOLDER).iterdir()] == [str(os.getpid())]
