"""The language model as the judge in a real sidecar process: from transcripts to ranks, and what happens without it."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import insights_service_pb2 as insights
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import DataFolder, Sidecar
from sidecar.domain.llm_judging import judge_request
from sidecar.domain.llm_prompt import DataFence
from sidecar.domain.reinforcement import Evidence, multiplier
from sidecar.testing.transcripts import ClaudeCodeTranscript
from tests.e2e.running import CONTEXT, running_sidecar
from tests.scripted_llm import Asked, Reply, ScriptedLlm, anthropic_reply, openai_reply, tool_block
from tests.unit.test_llm_questions import case, piece

USED = "Integration tests of the harbour service need PGPORT=6543, or they hang."
MISLEADING = "The harbour service is deployed with `make ship`."
UNUSED = "Release notes of the harbour service are signed by the release captain."
TEXTS = (USED, MISLEADING, UNUSED)
SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
FIRST, SECOND = "0b0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e10", "7d1c0f52-0f4e-4b57-9d0a-3f2d8f6f9a11"


def session(ids: Sequence[str], *, name: str = FIRST, says: str = "All 48 pass with PGPORT=6543.") -> bytes:
    """A session that was shown all memories, has a secret on its screen, and says something in the end."""
    transcript = ClaudeCodeTranscript(session=name, cwd="/home/dev/harbour", seed=name)
    transcript.user("The integration tests hang. Please get them to run, then deploy.")
    transcript.recall(*ids)
    run = transcript.call("Bash", {"command": "PGPORT=6543 pytest -q && make ship"})
    transcript.result(run, f"48 passed\nmake: *** No rule to make target 'ship'.\nTOKEN={SECRET}")
    transcript.agent_text(f"{says} `make ship` was wrong; it is `make deploy`.")
    return transcript.to_bytes()


def own_session(memory_id: str) -> bytes:
    """The transcript of an agent that was asked to judge."""
    cases = [case(memory_id, USED, after=(piece(memory_id),))]
    asked = judge_request(DataFence("mark"), cases, max_bytes=24_000)
    transcript = ClaudeCodeTranscript(session=SECOND, cwd="/home/dev/harbour", seed=SECOND)
    transcript.user(f"{asked.system}\n{asked.user}")
    transcript.agent_text(json.dumps({"verdicts": [says(1, 1.0, 0.0)]}))
    return transcript.to_bytes()


def numbers(asked: Asked) -> dict[str, int]:
    """The number that each memory has in a question."""
    question = asked.body["messages"][-1]["content"]
    places = {text: question.index(text) for text in TEXTS if text in question}
    found = [(m.start(), int(m[1])) for m in re.finditer(r"^\[\w+ memory (\d+):", question, re.M)]
    return {text: max(pair for pair in found if pair[0] < place)[1] for text, place in places.items()}


def says(number: int, used: float, misled: float) -> dict[str, object]:
    return {"memory": number, "used": used, "relevant": used, "misled": misled}


def verdicts(asked: Asked) -> dict[str, object]:
    """One used, one misled although followed, one not named, and one that nobody asked about."""
    number = numbers(asked)
    return {"verdicts": [says(number[USED], 0.9, 0.0), says(number[MISLEADING], 0.9, 0.8), says(9, 1.0, 0.0)]}


def openai(asked: Asked) -> Reply:
    return openai_reply(json.dumps(verdicts(asked)))


def anthropic(asked: Asked) -> Reply:
    return anthropic_reply([tool_block(verdicts(asked), name="verdicts")])


@dataclass(frozen=True)
class Bench:
    """A sidecar that watches a folder and has the language model judge."""

    sidecar: Sidecar
    folder: Path

    def remember(self) -> list[str]:
        return [self.sidecar.remember(pb.RememberRequest(content=text)).memory_id for text in TEXTS]

    def write(self, content: bytes, name: str = FIRST) -> None:
        (self.folder / f"{name}.jsonl").write_bytes(content)

    def until(self, condition: Callable[[insights.GetJudgeQueueResponse], bool]) -> insights.GetJudgeQueueResponse:
        """Wait until the judge's queue is so."""
        ends_at = time.monotonic() + 60
        while not condition(queue := self.sidecar.get_judge_queue()):
            assert time.monotonic() < ends_at, queue
            time.sleep(0.05)
        return queue

    def why(self, memory_id: str) -> insights.ExplainMemoryResponse:
        return self.sidecar.explain_memory(insights.ExplainMemoryRequest(memory_id=memory_id))


@contextmanager
def bench_at(tmp_path: Path, server: ScriptedLlm, **settings: str | float | bool) -> Iterator[Bench]:
    folder = tmp_path / "claude" / "projects" / "-home-dev-harbour"
    folder.mkdir(parents=True, exist_ok=True)
    watching: dict[str, str | float | bool] = {
        "watcher": True,
        "watch_clients": "claude-code",
        "claude_config_dir": str(tmp_path / "claude"),
    }
    model: dict[str, str | float | bool] = {
        "llm": "openai-compatible",
        "llm_base_url": server.url,
        "llm_model": "tiny",
        "judge": "llm",
    }
    quick: dict[str, str | float | bool] = {"judge_idle_s": 0.3, "judge_backoff_s": 0.2, "embedder": "none"}
    with running_sidecar(tmp_path / "home", context=CONTEXT, **(watching | model | quick | settings)) as sidecar:
        yield Bench(sidecar, folder)


@pytest.mark.parametrize(("provider", "script"), [("openai-compatible", openai), ("anthropic", anthropic)])
def test_language_model_judges_what_sessions_used(
    tmp_path: Path, provider: str, script: Callable[[Asked], Reply]
) -> None:
    """Only what was asked about gets a verdict, misled excludes used, what is not named was of no use."""
    with ScriptedLlm(script) as server, bench_at(tmp_path, server, llm=provider) as bench:
        ids = bench.remember()
        # An endpoint may be an agent that keeps transcripts; what it is asked there shows no memory to anybody.
        bench.write(own_session(ids[0]), SECOND)
        bench.write(session(ids))
        bench.until(lambda queue: queue.done == 3)
        sessions = bench.sidecar.list_sessions(evidence.ListSessionsRequest()).sessions
        used, misleading, unused = map(bench.why, ids)
        sent, questions = server.everything.decode(), len(server.asked)
        log = DataFolder.at(tmp_path / "home").log_path.read_text()
    assert questions == 1
    assert [coverage.thread.session for coverage in sessions if coverage.recalls] == [FIRST]
    assert [len(one.verdicts) for one in (used, misleading, unused)] == [1, 1, 1]
    assert {one.verdicts[0].judge for one in (used, misleading, unused)} == {"llm-1:tiny"}
    assert used.verdicts[0].used == pytest.approx(0.9)
    assert used.multiplier > 1
    assert misleading.verdicts[0].used == 0.0
    assert misleading.verdicts[0].misled == pytest.approx(0.8)
    assert {(event.source, event.valence) for event in misleading.events} == {
        ("judge", "misled"),
        ("judge", "relevant"),
    }
    assert misleading.multiplier < 1
    assert (unused.verdicts[0].used, unused.multiplier, len(unused.events)) == (0.0, 1.0, 0)
    assert SECRET not in sent
    assert "[redacted:" in sent
    assert not [told for told in (*ids, FIRST, str(tmp_path)) if told in sent]
    assert "harbour service" not in log


def test_model_that_is_away_or_slow_or_talks_nonsense(tmp_path: Path) -> None:
    """What is away is waited for and said; nonsense is tried again, then parked until somebody has it tried anew."""
    with ScriptedLlm(lambda _: Reply(status=503)) as server:
        with bench_at(tmp_path, server, judge_max_attempts=2, llm_timeout_s=1) as bench:
            ids = bench.remember()
            bench.write(session(ids))
            away = bench.until(lambda queue: "HTTP 503" in queue.problem)
            assert (away.waiting, away.done, away.parked) == (3, 0, 0)
            server.script = lambda _: Reply(is_hanging_up=True)
            bench.until(lambda queue: "gave no answer" in queue.problem and "503" not in queue.problem)
            server.script = lambda _: Reply(status=302, headers={"Location": "http://llm.example/v1"})
            bench.until(lambda queue: "HTTP 302" in queue.problem)
            hold = threading.Event()
            server.script = lambda asked: Reply(openai(asked).body, hold=hold)
            bench.until(lambda queue: "not within 1 s" in queue.problem)
            found = bench.sidecar.recall(pb.RecallRequest(query="integration tests harbour PGPORT"))
            assert ids[0] in {one.memory.id for one in found.memories}, "recalling waits for no answer"
            problems = bench.sidecar.get_status().problems
            assert any("usefulness is not judged" in problem for problem in problems)
            hold.set()
            server.script = lambda _: openai_reply("Memory 1 was of great use.")
            parked = bench.until(lambda queue: queue.parked == 3)
            assert {job.reason for job in parked.parked_jobs} == {"the judge reached no verdict"}
            assert not bench.why(ids[0]).verdicts
            assert bench.sidecar.get_status().language_model.counters["malformed"] >= 2
            server.script = openai
            assert bench.sidecar.retry_judge_jobs().retried == 3
            judged = bench.until(lambda queue: queue.done == 3)
            assert (judged.problem, judged.parked) == ("", 0)
            assert bench.why(ids[0]).multiplier > 1


def test_spent_budget_leaves_the_rest_waiting(tmp_path: Path) -> None:
    """What was paid for is kept; the other session waits for tomorrow, and status says so. No other judge steps in."""
    with ScriptedLlm(openai) as server, bench_at(tmp_path, server, llm_calls_a_day=1) as bench:
        ids = bench.remember()
        bench.write(session(ids))
        bench.write(session(ids, name=SECOND, says="All pass."), SECOND)
        queue = bench.until(lambda queue: bool(queue.done and "1 of 1 calls" in queue.problem))
        assert (queue.done, queue.waiting, queue.parked) == (3, 3, 0)
        assert len(server.asked) == 1
        assert [verdict.judge for verdict in bench.why(ids[0]).verdicts] == ["llm-1:tiny"]
        status = bench.sidecar.get_status()
        assert status.language_model.calls_today == 1
        assert any("budget" in problem for problem in status.problems)
        assert status.state == admin.PART_STATE_DEGRADED


def test_verdicts_of_two_judges_never_add_up(tmp_path: Path) -> None:
    """A session that goes on is judged by the judge of the day; its verdict takes the place of the other one's."""
    with ScriptedLlm(openai) as server:
        with bench_at(tmp_path, server, judge="local") as bench:
            ids = bench.remember()
            bench.write(session(ids))
            bench.until(lambda queue: queue.done == 3)
            first = bench.why(ids[0])
            assert server.asked == []
        with bench_at(tmp_path, server, judge="llm") as bench:
            assert bench.why(ids[0]).verdicts == first.verdicts, "another judge alone judges nothing anew"
            going_on = ClaudeCodeTranscript(session=FIRST, cwd="/home/dev/harbour", seed="later")
            going_on.agent_text("And once more: PGPORT=6543 was needed.")
            bench.write(session(ids) + going_on.to_bytes())
            bench.until(lambda queue: bool(server.asked) and queue.done == 3)
            second = bench.why(ids[0])
    assert [verdict.judge.partition("-")[0] for verdict in first.verdicts] == ["local"]
    assert [verdict.judge for verdict in second.verdicts] == ["llm-1:tiny"]
    useful = [event for event in second.events if event.valence == "useful"]
    assert [event.source for event in useful] == ["judge"]
    assert second.multiplier == pytest.approx(multiplier(Evidence(useful=useful[0].weight)), abs=1e-6)
