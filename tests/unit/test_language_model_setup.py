"""The language model as it is set up: where its key may lie, what is missing, and that nothing is sent yet."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sidecar.adapters.in_memory.llm_ledger import InMemoryLlmLedger
from sidecar.adapters.judges.llm import LlmJudge
from sidecar.cli.rendering import language_model
from sidecar.config import LLM_KEY_VARIABLE, Settings, load_settings, unknown_variables
from sidecar.domain.llm import LlmEndpoint, LlmProvider
from sidecar.errors import InvalidInputError
from sidecar.rpc.admin_service import language_model_status
from sidecar.server.language_model import LlmSetUp, pick_judge, set_up_llm
from tests.scripted_llm import Reply, ScriptedLlm
from tests.unit.fake_parts import PlainRedactor, SteppingClock

KEY = "sk-0123456789"
NAMED: Mapping[str, str | float | bool] = {
    "llm": "openai-compatible",
    "llm_base_url": "https://llm.example/v1",
    "llm_model": "tiny",
}


def settings_of(home: Path, **flags: str | float | bool) -> Settings:
    return load_settings(home=home, flags={**NAMED, **flags}, environment={})


def set_up(settings: Settings) -> LlmSetUp:
    return set_up_llm(settings, ledger=InMemoryLlmLedger(), redactor=PlainRedactor(), clock=SteppingClock())


def key_file(folder: Path, content: str = KEY, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.touch(mode=0o600)
    path.write_text(content)
    path.chmod(mode)
    return path


async def test_key_in_a_file_is_used(tmp_path: Path) -> None:
    """With a line feed at its end, as editors leave one."""
    made = set_up(settings_of(tmp_path, llm_api_key_file=str(key_file(tmp_path, KEY + "\n"))))
    assert made.model is not None
    assert made.problems == ()
    assert (await made.status()).endpoint == LlmEndpoint(
        LlmProvider.OPENAI_COMPATIBLE, "tiny", "llm.example", is_local=False
    )
    await made.close()


async def test_key_in_a_variable_is_taken_out_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes that we start, such as the one that reads transcripts, must not inherit it."""
    monkeypatch.setenv(LLM_KEY_VARIABLE, KEY)
    made = set_up(settings_of(tmp_path, llm_api_key_variable=LLM_KEY_VARIABLE))
    assert made.model is not None
    with pytest.raises(KeyError):
        monkeypatch.delenv(LLM_KEY_VARIABLE)
    assert unknown_variables({LLM_KEY_VARIABLE: KEY}) == ()
    await made.close()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"llm_api_key_file": "/no/such/file"}, "/no/such/file"),
        ({"llm_api_key_file": "relative/key"}, "absolute"),
        ({"llm_api_key_variable": "NO_SUCH_VARIABLE_HERE"}, "NO_SUCH_VARIABLE_HERE"),
        ({"llm_api_key_variable": KEY}, "environment variable"),
    ],
)
async def test_missing_key_is_told_and_stops_nothing(tmp_path: Path, flags: dict[str, str], told: str) -> None:
    """It depends on who started the sidecar; what it would have been asked goes on without."""
    made = set_up(settings_of(tmp_path, **flags))
    (problem,) = made.problems
    assert made.model is None
    assert told in problem
    assert KEY not in problem
    assert (await made.status()).problem in problem
    assert pick_judge(settings_of(tmp_path, judge="llm"), made, local=pytest.fail, clock=SteppingClock()) is None


@pytest.mark.parametrize("content", ["", " \n", "two words", "ké"])
async def test_file_that_holds_no_key_is_told(tmp_path: Path, content: str) -> None:
    """Without showing what it holds."""
    made = set_up(settings_of(tmp_path, llm_api_key_file=str(key_file(tmp_path, content))))
    assert made.model is None
    assert "llm_api_key_file" in made.problems[0]
    assert "words" not in made.problems[0]


async def test_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """A key that others can read is theirs as well; so is one that is kept in two places."""
    made = set_up(settings_of(tmp_path, llm_api_key_file=str(key_file(tmp_path, mode=0o640))))
    assert "other users" in made.problems[0]
    twice = settings_of(tmp_path, llm_api_key_file=str(key_file(tmp_path)), llm_api_key_variable="SOME_KEY")
    assert "one place" in set_up(twice).problems[0]


async def test_key_is_never_sent_unencrypted_to_another_machine(tmp_path: Path) -> None:
    """To this machine it may be."""
    path = str(key_file(tmp_path))
    remote = set_up(settings_of(tmp_path, llm_api_key_file=path, llm_base_url="http://llm.example"))
    assert "https" in remote.problems[0]
    local = set_up(settings_of(tmp_path, llm_api_key_file=path, llm_base_url="http://127.0.0.1:1"))
    assert local.model is not None
    await local.close()


async def test_setting_up_connects_to_nothing(tmp_path: Path) -> None:
    """The first question does."""
    with ScriptedLlm(lambda _: Reply()) as server:
        made = set_up(settings_of(tmp_path, llm_base_url=server.url))
        await made.status()
        await made.close()
        assert (server.asked, server.tunnels) == ([], [])


async def test_judge_is_the_one_that_the_setting_names(tmp_path: Path) -> None:
    """The language model's needs a language model."""
    settings = settings_of(tmp_path, llm_base_url="http://127.0.0.1:1", judge="llm")
    made = set_up(settings)
    judge = pick_judge(settings, made, local=pytest.fail, clock=SteppingClock())
    assert isinstance(judge, LlmJudge)
    assert pick_judge(settings_of(tmp_path), made, local=lambda: judge, clock=SteppingClock()) is judge
    await made.close()
    with pytest.raises(InvalidInputError, match="judge"):
        set_up(settings_of(tmp_path, llm="off", judge="llm"))


async def test_terminal_says_where_texts_go(tmp_path: Path) -> None:
    """A remote model is said in words that cannot be missed; one that is off, too."""
    for flags, told in (
        ({"llm": "off"}, "off, nothing is sent anywhere"),
        ({"llm_base_url": "http://localhost:11434/v1"}, "at localhost:11434 (on this machine)"),
        ({}, "at llm.example (REMOTE: texts leave this machine)"),
        ({"llm_api_key_file": "/no/such"}, "degraded"),
    ):
        made = set_up(settings_of(tmp_path, **flags))
        assert told in language_model(language_model_status(await made.status()))
        await made.close()
