"""The optional language model in a real sidecar process: what it changes, and what it never does."""

import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.api.v1 import validation_service_pb2 as validation
from sidecar.client import DataFolder, Sidecar
from sidecar.errors import SidecarStartError
from tests.e2e.running import launch_of, running_sidecar, wait_until_embedded, write_settings
from tests.scripted_llm import Asked, Reply, ScriptedLlm, openai_reply

KEY = "sk-test-0123456789abcdef"
OLD = "The importer retries failed downloads three times because the mirror drops connections."
NEW = "Since the mirror drops connections, the importer retries failed downloads with a growing pause."


class Answers:
    """What the endpoint says to each kind of question; the numbers are those of the first memory."""

    def __init__(self) -> None:
        self.relation = "relates_to"
        self.verdict = "compatible"
        self.objection = "no_objection"
        self.raw: Callable[[Asked], Reply] | None = None

    def __call__(self, asked: Asked) -> Reply:
        if self.raw is not None:
            return self.raw(asked)
        parts = {"own_part": "", "other_part": ""}
        by_question = {
            "relations": ("relations", {"relation": self.relation}),
            "pairs": ("pairs", {"verdict": self.verdict} | parts),
            "replacements": ("replacements", {"objection": self.objection}),
        }
        name, said = by_question[question_of(asked)]
        return openai_reply(json.dumps({name: [{"memory": 1} | said]}))


def until(condition: Callable[[], object]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def question_of(asked: Asked) -> str:
    """Return which kind of question it is."""
    return str(asked.body["response_format"]["json_schema"]["name"])


def questions(server: ScriptedLlm, name: str) -> list[Asked]:
    """Return the questions of one kind."""
    return [asked for asked in server.asked if question_of(asked) == name]


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def server(answers: Answers) -> Iterator[ScriptedLlm]:
    with ScriptedLlm(answers) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def running(home: Path, server: ScriptedLlm) -> Iterator[Sidecar]:
    """A sidecar whose key lies in a file of its user's own."""
    key_file = home.parent / "llm.key"
    key_file.touch(mode=0o600)
    key_file.write_text(KEY + "\n")
    with running_sidecar(
        home, llm="openai-compatible", llm_base_url=server.url, llm_model="tiny", llm_api_key_file=str(key_file)
    ) as sidecar:
        yield sidecar


@pytest.fixture
def sidecar(running: Sidecar, answers: Answers, server: ScriptedLlm) -> Sidecar:
    """The sidecar, with an endpoint that has no opinion and remembers nothing."""
    answers.__init__()  # type: ignore[misc]  # back to how it began
    server.asked.clear()
    return running


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    return f"project:{request.node.name.partition('[')[0]}"


def remember(sidecar: Sidecar, namespace: str, content: str, **fields: object) -> str:
    """Store a memory, wait until it is embedded and linked, and return its id."""
    request = memory.RememberRequest(content=content, namespace=namespace, wait_for_index=True, **fields)  # type: ignore[arg-type]
    return sidecar.remember(request).memory_id


def edges_of(sidecar: Sidecar, memory_id: str) -> list[pb.Edge]:
    return list(sidecar.get_memory(memory.GetMemoryRequest(memory_id=memory_id)).edges)


def counter(sidecar: Sidecar, name: str) -> int:
    return sidecar.get_status().counters[name]


def answered(sidecar: Sidecar) -> int:
    return sidecar.get_status().language_model.counters["answered"]


def test_relation_made_by_itself_is_refined_afterwards(
    sidecar: Sidecar, answers: Answers, server: ScriptedLlm, namespace: str
) -> None:
    """The call that stores never waits for the model: it holds its answer until the store has answered."""
    hold = threading.Event()
    said = {"relations": [{"memory": 1, "relation": "caused_by"}]}
    answers.raw = lambda _: replace(openai_reply(json.dumps(said)), hold=hold)
    old = remember(sidecar, namespace, OLD)
    new = remember(sidecar, namespace, NEW)
    assert [edge.relation for edge in edges_of(sidecar, new)] == [pb.RELATION_RELATES_TO]
    hold.set()
    until(lambda: edges_of(sidecar, new)[0].relation == pb.RELATION_CAUSED_BY)
    (edge,) = edges_of(sidecar, new)
    assert (edge.source_id, edge.target_id) == (new, old)
    assert edge.weight == pytest.approx(edges_of(sidecar, old)[0].weight)
    (asked,) = questions(server, "relations")
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert "growing pause" in asked.body["messages"][1]["content"]


def test_supersedes_is_never_taken_on_its_word(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """A memory that is superseded leaves every answer; that takes a caller, or a record of successes."""
    answers.relation = "supersedes"
    held_back = counter(sidecar, "llm_supersedes_held_back")
    old = remember(sidecar, namespace, OLD)
    new = remember(sidecar, namespace, NEW)
    until(lambda: counter(sidecar, "llm_supersedes_held_back") > held_back)
    assert [edge.relation for edge in edges_of(sidecar, new)] == [pb.RELATION_RELATES_TO]
    kept = sidecar.get_memory(memory.GetMemoryRequest(memory_id=old)).memory
    assert kept.state == pb.MEMORY_STATE_ACTIVE


def test_caller_can_keep_the_model_out(sidecar: Sidecar, answers: Answers, server: ScriptedLlm, namespace: str) -> None:
    """`use_llm_classification=false` sends nothing of this memory anywhere."""
    answers.relation = "caused_by"
    remember(sidecar, namespace, OLD)
    remember(sidecar, namespace, NEW, use_llm_classification=False)
    remember(sidecar, f"{namespace}-2", OLD)
    remember(sidecar, f"{namespace}-2", NEW)
    until(lambda: questions(server, "relations"))
    assert len(questions(server, "relations")) == 1


def test_malformed_answer_is_dropped_and_counted(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """The relation stays as it was made, and the status says so."""
    before = sidecar.get_status().language_model.counters["malformed"]
    answers.raw = lambda _: openai_reply('{"relations": [{"memory": 1, "relation": "eats"}]}')
    remember(sidecar, namespace, OLD)
    new = remember(sidecar, namespace, NEW)
    until(lambda: sidecar.get_status().language_model.counters["malformed"] == before + 1)
    assert [edge.relation for edge in edges_of(sidecar, new)] == [pb.RELATION_RELATES_TO]


def pair_without_a_rule(sidecar: Sidecar, namespace: str) -> tuple[str, str]:
    """Store two memories that contradict each other in words that no rule compares."""
    old = remember(sidecar, namespace, "The undo history of the editor survives a restart.", auto_link=False)
    new = remember(sidecar, namespace, "Restarting the editor loses its undo history.", auto_link=False)
    return old, new


def detect(sidecar: Sidecar, memory_id: str) -> validation.DetectContradictionsResponse:
    request = validation.DetectContradictionsRequest(memory_id=memory_id, similarity_threshold=0.4)
    return sidecar.detect_contradictions(request)


def test_contradiction_that_no_rule_finds(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """Found by the model, named so, related, and nothing is said to be unchecked any more."""
    old, new = pair_without_a_rule(sidecar, namespace)
    answers.verdict = "contradicts"
    (found,) = (answer := detect(sidecar, new)).contradictions
    assert (found.memory_id, found.method) == (old, "language_model")
    assert [edge.relation for edge in edges_of(sidecar, old)] == [pb.RELATION_CONTRADICTS]
    assert list(answer.not_checked) == []


def test_what_a_rule_decides_is_not_asked(sidecar: Sidecar, server: ScriptedLlm, namespace: str) -> None:
    """It costs nothing, and no model talks a rule out of it."""
    remember(sidecar, namespace, "The API gateway listens on port 8080.", auto_link=False)
    new = remember(sidecar, namespace, "The API gateway listens on port 9090.", auto_link=False)
    (found,) = detect(sidecar, new).contradictions
    assert found.method == "changed_number"
    assert questions(server, "pairs") == []


def test_model_that_is_unsure_says_so(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """And one that fails is named with the reason."""
    old, new = pair_without_a_rule(sidecar, namespace)
    answers.verdict = "unsure"
    assert f"{old}: the language model was not sure" in detect(sidecar, new).not_checked
    answers.raw = lambda _: Reply(status=503)
    answer = detect(sidecar, new)
    assert not answer.contradictions
    assert any("HTTP 503" in text for text in answer.not_checked)
    status = sidecar.get_status()
    assert status.language_model.state == admin.PART_STATE_DEGRADED
    assert status.state == admin.PART_STATE_READY


def proven_pair(sidecar: Sidecar, namespace: str) -> tuple[str, str]:
    """Store two memories on one topic, the newer of which has proved better."""
    old = remember(sidecar, namespace, OLD, auto_link=False)
    new = remember(sidecar, namespace, NEW, auto_link=False)
    for memory_id, is_success in ((old, False), (new, True), (new, True)):
        sidecar.record_outcome(validation.RecordOutcomeRequest(memory_id=memory_id, success=is_success))
    return old, new


def test_objection_keeps_the_older_memory(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """The reason is one of a few that we know; nothing is replaced. Without an objection it is."""
    old, new = proven_pair(sidecar, namespace)
    answers.objection = "other_circumstances"
    request = validation.CheckSupersedesRequest(memory_id=new)
    answer = sidecar.check_supersedes(request)
    assert (answer.superseded_id, answer.edge_id) == ("", 0)
    assert [(veto.memory_id, veto.reason) for veto in answer.vetoes] == [
        (old, validation.VETO_REASON_OTHER_CIRCUMSTANCES)
    ]
    assert sidecar.get_memory(memory.GetMemoryRequest(memory_id=old)).memory.state == pb.MEMORY_STATE_ACTIVE
    answers.objection = "no_objection"
    assert sidecar.check_supersedes(request).superseded_id == old


def test_replacement_goes_on_without_an_answer(sidecar: Sidecar, answers: Answers, namespace: str) -> None:
    """The model may object, but nothing waits for its consent."""
    old, new = proven_pair(sidecar, namespace)
    answers.raw = lambda _: openai_reply("I would rather not say.")
    answer = sidecar.check_supersedes(validation.CheckSupersedesRequest(memory_id=new))
    assert answer.superseded_id == old
    assert any("was dropped" in text for text in answer.not_checked)


def test_status_tells_whom_texts_go_to(sidecar: Sidecar, server: ScriptedLlm, namespace: str) -> None:
    """Which model, where, whether that is this machine, and what it cost; no key anywhere, nor text in the log."""
    remember(sidecar, namespace, OLD)
    remember(sidecar, namespace, NEW)
    until(lambda: answered(sidecar) and questions(server, "relations"))
    status = sidecar.get_status().language_model
    assert (status.provider, status.model, status.host) == ("openai-compatible", "tiny", server.host)
    assert status.local
    assert 0 < status.calls_today <= status.calls_a_day == 200
    assert 0 < status.tokens_today <= status.tokens_a_day == 500_000
    folder = DataFolder.at(Path(sidecar.get_status().data_folder))
    log = folder.log_path.read_text()
    assert KEY not in log
    assert "mirror" not in log
    assert KEY not in sidecar.get_status().SerializeToString().decode("utf-8", "replace")


def test_budget_holds_across_a_restart(tmp_path: Path, server: ScriptedLlm, answers: Answers) -> None:
    """Spent is spent: all else works, says why, and a new process does not begin at zero."""
    answers.__init__()  # type: ignore[misc]  # back to how it began
    answers.verdict = "contradicts"
    server.asked.clear()
    home = tmp_path / "home"

    def started() -> AbstractContextManager[Sidecar]:
        return running_sidecar(
            home, llm="openai-compatible", llm_base_url=server.url, llm_model="tiny", llm_calls_a_day=1
        )

    with started() as sidecar:
        _, new = pair_without_a_rule(sidecar, "project:budget")
        assert len(detect(sidecar, new).contradictions) == 1
    with started() as sidecar:
        wait_until_embedded(sidecar)
        answer = detect(sidecar, new)
        assert not answer.contradictions
        assert any("1 of 1 calls" in text for text in answer.not_checked)
        assert sidecar.get_status().language_model.counters["over_budget"] == 1
    assert len(server.asked) == 1
    with closing(sqlite3.connect(DataFolder.at(home).database_path)) as database:
        assert database.execute("SELECT calls, tokens FROM llm_spending").fetchall() == [(1, 120)]


def test_endpoint_that_is_away_disturbs_nothing(tmp_path: Path) -> None:
    """Storing, linking and recalling go on; the parts that ask say that nobody answered."""
    with ScriptedLlm(lambda _: Reply()) as gone:
        url = gone.url
    with running_sidecar(tmp_path / "home", llm="openai-compatible", llm_base_url=url, llm_model="tiny") as sidecar:
        old = remember(sidecar, "project:away", OLD)
        new = remember(sidecar, "project:away", NEW)
        until(lambda: counter(sidecar, "llm_relations_not_asked"))
        found = sidecar.recall(memory.RecallRequest(query="importer retries", namespace="project:away"))
        assert {each.memory.id for each in found.memories} == {old, new}
        assert any("no connection" in text for text in detect(sidecar, new).not_checked)
        assert sidecar.get_status().language_model.calls_today == 0


def test_off_connects_to_nothing(tmp_path: Path) -> None:
    """An address alone switches nothing on."""
    with ScriptedLlm(lambda _: Reply()) as listening:
        with running_sidecar(tmp_path / "home", llm_base_url=listening.url, llm_model="tiny") as sidecar:
            remember(sidecar, "project:off", OLD)
            new = remember(sidecar, "project:off", NEW)
            assert any("none is asked" in text for text in detect(sidecar, new).not_checked)
            status = sidecar.get_status().language_model
            assert (status.state, status.host) == (admin.PART_STATE_OFF, "")
        assert listening.asked == []


def test_missing_key_is_a_problem_and_no_obstacle(tmp_path: Path) -> None:
    """Who starts the sidecar may not have the key; it starts, and says what is missing."""
    key_file = tmp_path / "llm.key"
    key_file.write_text(KEY)
    key_file.chmod(0o644)
    with running_sidecar(
        tmp_path / "home",
        llm="anthropic",
        llm_base_url="https://llm.example",
        llm_model="tiny",
        llm_api_key_file=str(key_file),
        embedder="none",
    ) as sidecar:
        status = sidecar.get_status()
    assert any("the language model is not asked" in text and str(key_file) in text for text in status.problems)
    assert (status.language_model.state, status.language_model.host) == (admin.PART_STATE_DEGRADED, "llm.example")
    assert not status.language_model.local
    assert KEY not in str(status)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"llm": "openai-compatible", "llm_model": "tiny"}, "llm_base_url"),
        ({"llm": "openai-compatible", "llm_base_url": "http://127.0.0.1:1"}, "llm_model"),
        ({"judge": "llm"}, "judge"),
        ({"golden_confidence": 0.6, "golden_fall_back": 0.7}, "golden_fall_back"),
    ],
)
def test_settings_that_do_not_fit_stop_the_start(tmp_path: Path, settings: dict[str, str | float], told: str) -> None:
    """As any setting does that cannot be meant, with the name of the one to mend."""
    home = tmp_path / "home"
    write_settings(home, **settings)
    with pytest.raises(SidecarStartError, match=re.escape(told)):
        Sidecar.connect(home, launch=launch_of(home))
