"""The configurations that lie ready in docs/editors: each can be read, and starts what there is to start."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from client_plugins.lsp_bridge import contract
from client_plugins.lsp_bridge.command_names import COMMANDS
from client_plugins.lsp_bridge.operations import OPERATION_NAMES
from client_plugins.lsp_bridge.structuring import structured
from tests.e2e.running import ROOT

EDITORS = ROOT / "docs" / "editors"
ELISP = sorted(path.name for path in EDITORS.glob("*.el"))
START = ["sidecar", "lsp"]


def configuration(name: str) -> Any:
    """Return a configuration as its editor reads it."""
    text = (EDITORS / name).read_text(encoding="utf-8")
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def test_helix_starts_it_behind_the_real_server() -> None:
    """Helix asks the first server that can, so that ours must not stand before the language's own."""
    found = configuration("helix.toml")
    server = found["language-server"]["memory-sidecar"]
    assert [server["command"], *server["args"]] == START
    structured(server["config"], contract.InitializationOptions)
    for language in found["language"]:
        assert language["language-servers"][-1] == "memory-sidecar"
        assert len(language["language-servers"]) == 2


def test_kate_starts_it() -> None:
    """Each entry has what Kate looks for: a command and the kinds of file."""
    for server in configuration("kate.json")["servers"].values():
        assert server["command"] == START
        assert re.fullmatch(server["highlightingModeRegex"], server["highlightingModeRegex"].strip("^$"))


def test_sublime_and_zed_start_it_with_options_that_are_known() -> None:
    """An option of another name would be passed over with a message."""
    sublime = configuration("sublime.json")["clients"]["memory-sidecar"]
    assert (sublime["command"], sublime["enabled"]) == (START, True)
    structured(sublime["initializationOptions"], contract.InitializationOptions)
    zed = configuration("zed.json")
    (name, server), *others = zed["lsp"].items()
    assert not others
    assert [server["binary"]["path"], *server["binary"]["arguments"]] == START
    structured(server["initialization_options"], contract.InitializationOptions)
    assert all(name in language["language_servers"] for language in zed["languages"].values())


@pytest.mark.parametrize("name", ELISP)
def test_elisp_is_whole(name: str) -> None:
    """A missing parenthesis would take the rest of an init file with it. Read here, for Emacs is not everywhere."""
    forms = list(top_level_forms((EDITORS / name).read_text(encoding="utf-8")))
    assert len(forms) > 2
    assert '("sidecar" "lsp")' in "".join(forms)
    assert forms[-1].startswith("(provide ")


@pytest.mark.skipif(shutil.which("emacs") is None, reason="Emacs is not installed; the reader above stands in for it")
@pytest.mark.parametrize("name", ELISP)
def test_emacs_reads_the_elisp(name: str) -> None:
    """Emacs' own reader finds the same forms."""
    path = EDITORS / name
    count = "(while t (read (current-buffer)) (setq forms (1+ forms)))"
    program = (
        f"(with-temp-buffer (insert-file-contents {json.dumps(str(path))})"
        f" (let ((forms 0)) (ignore-error end-of-file {count}) (princ forms)))"
    )
    command = ["emacs", "-Q", "--batch", "--eval", program]
    counted = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(counted.stdout) == len(list(top_level_forms(path.read_text(encoding="utf-8"))))


def test_reader_of_elisp_sees_what_is_wrong() -> None:
    """The reader that stands in for Emacs is no yes-man."""
    assert list(top_level_forms('; (\n(a "b)\\"" ?\\( (c)) (d)')) == ['(a "b)\\"" ?\\( (c))', "(d)"]
    for broken in ("(a (b)", "(a))", '(a "b)', "a"):
        with pytest.raises(AssertionError):
            list(top_level_forms(broken))


def top_level_forms(text: str) -> Iterator[str]:
    """Yield the lists at the top level of a file in Emacs Lisp."""
    token = re.compile(r';[^\n]*|"(?:[^"\\]|\\.)*"|\?\\?.|[()]|[^\s()";]+|\s+', re.DOTALL)
    depth, start, end = 0, 0, 0
    while end < len(text):
        found = token.match(text, end)
        assert found, f"no token at {end}: {text[end : end + 20]!r}"
        if found[0] == "(":
            start = end if depth == 0 else start
            depth += 1
        elif found[0] == ")":
            depth -= 1
            assert depth >= 0, f"one parenthesis too many at {end}"
            if depth == 0:
                yield text[start : found.end()]
        else:
            assert depth or found[0].isspace() or found[0].startswith(";"), f"{found[0]!r} stands alone"
        end = found.end()
    assert depth == 0, f"{depth} parentheses are open at the end"


def test_protocol_page_names_every_request_command_and_field() -> None:
    """Authors of plugins go by the page."""
    page = (EDITORS / "protocol.md").read_text(encoding="utf-8")
    assert not [name for name in OPERATION_NAMES if f"`sidecar/{name}`" not in page]
    assert not [name for name in COMMANDS if f"`sidecar.{name}`" not in page]
    classes = [each for each in vars(contract).values() if isinstance(each, type) and attrs.has(each)]
    assert len(classes) > 20
    told = set(re.findall(r"`(\w+)`", page)) | {"quiet", "figures"}
    missing = {f"{each.__name__}.{field}" for each in classes for field in camel(each) if field not in told}
    assert not missing


def camel(kind: type[Any]) -> Iterator[str]:
    """Yield the fields' names as JSON has them."""
    for field in attrs.fields(kind):
        first, *rest = field.name.split("_")
        yield first + "".join(map(str.capitalize, rest))


def test_readme_leads_to_every_configuration() -> None:
    """A file that nobody is led to is found by nobody."""
    page = (EDITORS / "README.md").read_text(encoding="utf-8")
    ready = [path.name for path in EDITORS.iterdir() if path.suffix in {".toml", ".json", ".el"}]
    assert len(ready) >= 6
    assert not [name for name in ready if f"]({name})" not in page]
