"""The command `judge-eval`, with the judge that ships and with a language model; no sidecar anywhere."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.exit_codes import ExitCode
from tests.e2e.running import write_settings
from tests.scripted_llm import Asked, Reply, ScriptedLlm, anthropic_reply, openai_reply, tool_block
from tests.unit.test_cli_commands import command
from tests.unit.test_judge_scoring import LINE
from tests.unit.test_llm_judge import all_used, judging


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


@pytest.fixture
def server() -> Iterator[ScriptedLlm]:
    """Return an endpoint that finds every memory used unless the test says otherwise."""
    with ScriptedLlm(judging) as running:
        yield running


@pytest.fixture
def evaluate(tmp_path: Path, labelled: Path, server: ScriptedLlm) -> Callable[..., int]:
    """Return what runs the command with the judge `llm` at the endpoint."""
    home = tmp_path / "home"
    write_settings(home, llm="openai-compatible", llm_base_url=server.url, llm_model="tiny", llm_timeout_s=5)
    return lambda *options: command("judge-eval", str(labelled), "--judge", "llm", "--home", str(home), *options)


def document_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the document that was printed."""
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_language_model_gets_the_same_table(
    evaluate: Callable[..., int], server: ScriptedLlm, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what it was asked, and what that cost; memories of one transcript are one question."""
    assert evaluate("--json") == 0
    document = document_of(capsys)
    assert (document["judge"], document["cases"], document["unjudged"]) == ("llm-1:tiny", 4, 0)
    assert document["used"] | {"support": 2, "tp": 2, "fp": 2, "fn": 0, "tn": 0} == document["used"]
    assert document["kinds"]["verbatim_citation"]
    model = document["language_model"]
    assert (model["calls"], model["tokens"], model["answered"], model["malformed"]) == (2, 240, 2, 0)
    assert (model["host"], model["local"]) == (server.host, True)
    assert len(server.asked) == 2


def test_language_model_says_where_texts_go(evaluate: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is sent; a person also reads what it came to."""
    assert evaluate() == 0
    captured = capsys.readouterr()
    assert "llm-1:tiny on 4 cases" in captured.out
    assert "(on this machine)" in captured.err
    assert "2 questions, 240 tokens" in captured.err


def test_budget_of_a_run_is_kept(
    evaluate: Callable[..., int], server: ScriptedLlm, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not asked is no part of the figures, and the command does not end as if all was well."""
    assert evaluate("--max-calls", "1", "--json") == ExitCode.UNAVAILABLE
    document = document_of(capsys)
    assert (document["cases"], document["not_asked"]) == (2, 2)
    assert "1 of 1 calls" in str(document["stopped"])
    assert document["language_model"]["over_budget"] == 1
    assert len(server.asked) == 1
    assert evaluate("--max-calls", "1") == ExitCode.UNAVAILABLE
    assert "2 cases not asked and not in the figures" in capsys.readouterr().err
    assert evaluate("--max-tokens", "10", "--json") == ExitCode.UNAVAILABLE
    captured = capsys.readouterr()
    assert not captured.out, "without a single answer there are no figures"
    assert "budget" in captured.err
    assert len(server.asked) == 2


def test_malformed_answers_are_counted(
    evaluate: Callable[..., int], server: ScriptedLlm, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are no verdicts; the other questions go on."""
    good = iter((True, False))
    server.script = lambda asked: judging(asked) if next(good) else openai_reply("All were of great use!")
    assert evaluate("--json") == 0
    document = document_of(capsys)
    assert (document["cases"], document["unjudged"], document["not_asked"]) == (4, 2, 0)
    assert document["language_model"]["malformed"] == 1
    server.script = lambda asked: openai_reply("Of great use!")
    assert evaluate() == 0
    assert "4 cases without a verdict" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reply", "told"),
    [(Reply(status=503), "HTTP 503"), (Reply(status=307, headers={"Location": "http://llm.example/"}), "HTTP 307")],
)
def test_language_model_that_is_away_is_told(
    evaluate: Callable[..., int],
    server: ScriptedLlm,
    capsys: pytest.CaptureFixture[str],
    reply: Reply,
    told: str,
) -> None:
    """Also one that sends elsewhere: texts reach the named host alone."""
    server.script = lambda _: reply
    assert evaluate() == ExitCode.UNAVAILABLE
    captured = capsys.readouterr()
    assert told in captured.err
    assert not captured.out


def test_other_provider_and_its_key(
    tmp_path: Path, labelled: Path, server: ScriptedLlm, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key is that of the settings, and is shown nowhere."""
    key, home = tmp_path / "key", tmp_path / "home"
    key.touch(mode=0o600)
    key.write_text("sk-0123456789\n")

    def answer(asked: Asked) -> Reply:
        return anthropic_reply([tool_block(all_used(asked), name="verdicts")])

    server.script = answer
    write_settings(home, llm="anthropic", llm_base_url=server.url, llm_model="tiny", llm_api_key_file=str(key))
    asking = ("judge-eval", str(labelled), "--judge", "llm", "--home", str(home), "--json")
    assert command(*asking) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["language_model"]["provider"] == "anthropic"
    assert {asked.headers["x-api-key"] for asked in server.asked} == {"sk-0123456789"}
    assert "sk-0123456789" not in captured.out + captured.err
    key.chmod(0o644)
    assert command(*asking) == ExitCode.NOT_ALLOWED
    assert "other users" in capsys.readouterr().err
    assert len(server.asked) == 2


def test_secrets_are_not_sent(evaluate: Callable[..., int], server: ScriptedLlm, labelled: Path) -> None:
    """Labelled transcripts were never stored, so this is the only gate."""
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
    labelled.write_text(json.dumps(LINE | {"before": [{"role": "user", "text": f"export TOKEN={secret}"}]}))
    assert evaluate("--json") == 0
    assert b"export TOKEN" in server.everything
    assert secret.encode() not in server.everything


def test_judge_that_is_not_set_up_is_told(tmp_path: Path, labelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Figures of another judge than the one asked for would mislead."""
    home = str(tmp_path / "empty")
    assert command("judge-eval", str(labelled), "--judge", "llm", "--home", home) == ExitCode.USAGE
    assert "language model" in capsys.readouterr().err
