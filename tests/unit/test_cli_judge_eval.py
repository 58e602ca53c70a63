"""The command `judge-eval`, with the judge that ships and no sidecar anywhere."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.unit.test_cli_commands import command
from tests.unit.test_judge_scoring import LINE


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Return a file with two transcripts."""
    path = tmp_path / "labelled.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | {"id": "t\u2028 2"}, ensure_ascii=False) + "\n")
    return path


def test_json_has_scores_for_each_question_and_kind(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts compare judges by these figures."""
    assert command("judge-eval", str(labelled), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cases"] == 4
    assert document["judge"].startswith("local-")
    for question in ("used", "relevant", "misled"):
        assert {"precision", "recall", "f1", "support", "tp", "fp", "fn"} <= set(document[question])
    assert document["used"]["support"] == 2
    assert document["kinds"]["verbatim_citation"]["cases"] == 2
    assert document["kinds"]["verbatim_citation"]["used"]["support"] == 2
    assert "verdicts" not in document


def test_verbose_lists_each_verdict(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever looks for failures needs the cases."""
    assert command("judge-eval", str(labelled), "--json", "--verbose") == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert [verdict["memory_id"] for verdict in verdicts] == ["a", "b", "a", "b"]
    assert 0 <= verdicts[0]["used"]["probability"] <= 1
    assert command("judge-eval", str(labelled), "--verbose") == 0
    assert "verbatim_citation" in capsys.readouterr().out


def test_text_is_a_table(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rates without cases are `none`, not 0."""
    assert command("judge-eval", str(labelled)) == 0
    rows = {line.split("\t")[0]: line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line}
    assert rows["misled"][1:4] == ["none", "none", "none"]


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A filter may select the transcripts."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(LINE).encode())))
    assert command("judge-eval", "-", "--json") == 0
    assert json.loads(capsys.readouterr().out)["cases"] == 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps(LINE).encode() + b"\n{]", "line 2"),
        (b"\n\n", "at least one"),
        (b"\xff\xfe", "UTF-8"),
        (None, "can be read"),
    ],
)
def test_bad_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, problem: str
) -> None:
    """With the line's number where there is one, and no figure at all."""
    path = tmp_path / "bad.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert command("judge-eval", str(path)) != 0
    captured = capsys.readouterr()
    assert problem in captured.err
    assert not captured.out


def test_judge_that_is_not_set_up_is_told(labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of another judge than the one asked for would mislead."""
    assert command("judge-eval", str(labelled), "--judge", "llm") != 0
    assert "language model" in capsys.readouterr().err
