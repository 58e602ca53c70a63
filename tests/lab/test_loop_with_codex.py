"""The whole loop with the real Codex: our bridge, our sidecar, our watcher; only the model is scripted."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.api.v1.memory_pb2 import CallContext
from sidecar.client import Sidecar
from sidecar.domain.ids import find_memory_ids
from tests.e2e.running import running_sidecar, wait_until_embedded
from tests.lab.client_run import ClientRun
from tests.lab.codex import CodexToolMode

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

ID = r"mem_[0-9A-HJKMNP-TV-Z]{26}"
FACTS = (
    "Deploys go out on Tuesday at 10:00 UTC, never on Friday.",
    "The staging database is restored from production every night.",
    "Feature flags live in flags.toml and need a restart.",
)
PROMPTS = ["We deploy at 11:00 now.", "And the flags?"]
A_ROUND: list[dict[str, Any]] = [
    {"call": "recall", "args": {"query": "when do deploys go out"}, "capture": {"ids": ID}},
    {
        "say": "Deploys go out on Tuesday; you moved them to 11:00, so I note that.",
        "call": "remember",
        "args": {
            "content": "Deploys go out on Tuesday at 11:00 UTC, never on Friday.",
            "links": [{"relation": "supersedes", "memory_id": "${ids[0]}"}],
        },
    },
    {"say": "Done."},
]
PARALLEL = {
    "calls": [
        {"call": "recall", "args": {"query": "feature flags"}},
        {"call": "recall", "args": {"query": "staging database"}},
        {"call": "recall", "args": {"query": " "}},
    ]
}
RECALL = 'const r = await tools.mcp__memory__recall({"query": "staging database"});\n'
FIRST_ID = f"JSON.stringify(r).match(/{ID}/)[0]"
# What a script may do with a recall beside printing it: print a part, keep it for a later script, go on meanwhile.
IN_SCRIPTS: list[dict[str, Any]] = [
    {"call": "exec", "args": {"source": f"{RECALL}text({FIRST_ID});"}},
    {"call": "exec", "args": {"source": f'{RECALL}store("r", r);'}},
    {"call": "exec", "args": {"source": f'const r = load("r");\ntext({FIRST_ID});'}},
    {"call": "exec", "args": {"source": f"{RECALL}"}},
    {
        "call": "exec",
        "args": {
            "source": f"{RECALL}yield_control();\nawait new Promise((end) => setTimeout(end, 500));\ntext({FIRST_ID});"
        },
        "capture": {"cell": r"(?<=cell ID )\w+"},
    },
    {"call": "wait", "args": {"cell_id": "${cell}"}},
]
Codex = Callable[..., ClientRun]


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    """A sidecar with three facts that watches the session's folder."""
    with _watching(tmp_path) as running:
        for fact in FACTS:
            running.remember(pb.RememberRequest(content=fact))
        wait_until_embedded(running)
        yield running


@contextmanager
def _watching(folder: Path) -> Iterator[Sidecar]:
    context = CallContext(client="test", project="harbour")
    codex_home = str(folder / "codex" / ".codex")
    with running_sidecar(
        folder / "home", context=context, watcher=True, watch_clients="codex", codex_home=codex_home
    ) as running:
        yield running


def _run(codex: Codex, folder: Path, script: Sequence[Any], mode: CodexToolMode, **options: Any) -> ClientRun:
    bridge = {"command": sys.executable, "args": ["-m", "sidecar", "mcp", "--home", str(folder / "home")]}
    project = folder / "work" / "harbour"
    run = codex(script, {"memory": bridge}, prompt=PROMPTS, project=project, tool_mode=mode, **options)
    assert (run.exit_code, run.problems, dict(run.unplayed), run.refused) == (0, (), {}, ()), run.stderr
    return run


@pytest.mark.parametrize("mode", list(CodexToolMode))
def test_ledger_equals_what_the_model_was_shown(
    codex: Codex, sidecar: Sidecar, tmp_path: Path, mode: CodexToolMode
) -> None:
    """Id for id, over two processes of one session, with parallel calls and one that fails, in every mode."""
    run = _run(codex, tmp_path, [*A_ROUND, PARALLEL, {"say": "In flags.toml."}], mode)
    recalls = _await_recalls(sidecar, run.session_id, count=4)
    results = _results(run)
    shown_to_model = find_memory_ids(next(text for text in results if FACTS[0] in text))
    assert tuple(recalls[0].shown.ids.memory_ids) == shown_to_model
    assert set(shown_to_model)
    # In scripts, parallel calls stand in the order in which they ended.
    assert [recall.shown.WhichOneof("state") for recall in recalls].count("ids") == 3
    (failed,) = [recall for recall in recalls if recall.shown.WhichOneof("state") == "unknown"]
    assert failed.shown.unknown.reason == evidence.UNKNOWN_REASON_ERRORED
    in_parallel = {one for recall in recalls[1:] for one in recall.shown.ids.memory_ids}
    assert in_parallel == set(find_memory_ids("\n".join(results[len(results) - (1 if _is_code(mode) else 3) :])))
    assert [list(recall.used_memory_ids) for recall in recalls if recall.used_memory_ids] == [[shown_to_model[0]]]
    _check_session(sidecar, run.session_id, shown={one for recall in recalls for one in recall.shown.ids.memory_ids})


def test_scripts_show_what_they_print(codex: Codex, sidecar: Sidecar, tmp_path: Path) -> None:
    """A part of it, later, nothing at all, or from the background: never what was only returned."""
    listing = {"call": "recall", "args": {"query": "feature flags"}}
    run = _run(codex, tmp_path, [listing, {"say": "Now."}, *IN_SCRIPTS, {"say": "So."}], CodexToolMode.CODE)
    recalls = _await_recalls(sidecar, run.session_id, count=5)
    printed = [find_memory_ids(text) for text in _results(run) if "Script" in text and "build_context" not in text]
    assert [len(ids) for ids in printed[1:]] == [1, 0, 1, 0, 0, 1]
    first, part, stored, silent, yielded = (tuple(recall.shown.ids.memory_ids) for recall in recalls)
    assert (first, part, stored, silent, yielded) == (printed[0], printed[1], printed[3], (), printed[6])
    assert recalls[3].shown.WhichOneof("state") == "nothing"


def test_our_server_can_be_taken_out_of_scripts(codex: Codex, sidecar: Sidecar, tmp_path: Path) -> None:
    """A setting of the client's makes every call direct, also with models that otherwise write scripts."""
    features = {"plugins": False, "apps": False, "code_mode": {"direct_only_tool_namespaces": ["mcp__memory"]}}
    script = [{"call": "recall", "args": {"query": "staging database"}}, {"say": "Nightly."}, {"say": "Flags."}]
    run = _run(codex, tmp_path, script, CodexToolMode.CODE, settings={"features": features})
    (recall,) = _await_recalls(sidecar, run.session_id, count=1)
    assert not recall.call_id.startswith("exec-")
    assert set(recall.shown.ids.memory_ids) == set(find_memory_ids("\n".join(_results(run))))


def test_a_fork_counts_what_it_adds(codex: Codex, sidecar: Sidecar, tmp_path: Path) -> None:
    """The fork's file begins where its parent's was left."""
    run = _run(codex, tmp_path, [*A_ROUND, PARALLEL, {"say": "In flags.toml."}], CodexToolMode.CODE, forks=True)
    parent, fork = sorted(path.stem[-36:] for path in run.transcripts)
    assert len(_await_recalls(sidecar, parent, count=1)) == 1
    assert len(_await_recalls(sidecar, fork, count=3)) == 3


def _is_code(mode: CodexToolMode) -> bool:
    return mode is CodexToolMode.CODE


def _check_session(sidecar: Sidecar, session: str, *, shown: set[str]) -> None:
    (coverage,) = [
        one for one in sidecar.list_sessions(evidence.ListSessionsRequest()).sessions if one.thread.session == session
    ]
    assert (coverage.recalls, coverage.shown, coverage.used) == (4, len(shown), 1)
    assert (coverage.thread.client, coverage.thread.project) == ("codex", "harbour")


def _await_recalls(sidecar: Sidecar, session: str, *, count: int) -> list[evidence.SessionRecall]:
    request = evidence.GetSessionRequest(client="codex", session=session)
    recalls: list[evidence.SessionRecall] = []
    for _ in range(300):
        recalls = list(sidecar.get_session(request).recalls)
        if len(recalls) == count and not any(_is_open(recall) for recall in recalls):
            return recalls
        time.sleep(0.1)
    raise AssertionError(f"after 30 s: {recalls}; {sidecar.get_status(admin.GetStatusRequest()).watcher}")


def _is_open(recall: evidence.SessionRecall) -> bool:
    return recall.shown.unknown.reason == evidence.UNKNOWN_REASON_NO_RESULT


def _results(run: ClientRun) -> list[str]:
    """Return the outputs of calls in the order in which the model got them."""
    outputs: dict[str, str] = {}
    for item in (item for request in run.requests for item in request.get("input", ())):
        if item["type"] in {"function_call_output", "custom_tool_call_output"}:
            outputs[item["call_id"]] = json.dumps(item["output"]).encode().decode("unicode_escape")
    return [text for text in outputs.values() if "ALL_TOOLS" not in text and "mcp__memory__" not in text]
