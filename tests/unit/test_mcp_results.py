"""What the tools hand over: within the clients' limits, and nothing taken for what it is not."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_plugins.kit.recognition import shown_memories
from client_plugins.mcp_bridge.display import CUT_MARK
from client_plugins.mcp_bridge.documents import MAX_DOCUMENT_CHARACTERS, as_document
from client_plugins.mcp_bridge.limits import context_limits
from client_plugins.mcp_bridge.tools import build_context, recall
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.entry import run
from sidecar.config import SETTINGS
from sidecar.domain.context import CharacterTokenCounter, ContextCandidate, ContextRequest
from sidecar.domain.context import build_context as make_context
from sidecar.domain.ids import memory_id
from sidecar.domain.memory import Memory, MemoryType
from tests.unit.test_cli_commands import memory

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MOST_BY_DEFAULT = int(next(setting.most for setting in SETTINGS if setting.name == "default_results"))
MARKER = "k3v9x7q2w8"


def stored(number: int, content: str, *, kind: MemoryType = MemoryType.FACT) -> Memory:
    """Return a memory of the store."""
    when = NOW - timedelta(days=number)
    return Memory(
        id=memory_id(number, b"0123456789"),
        owner="o",
        namespace="global",
        type=kind,
        content=content,
        content_hash="",
        created_at=when,
        accessed_at=when,
    )


def context_of(*memories: Memory, token_budget: int = 100_000) -> service.BuildContextResponse:
    """Return a context as the sidecar builds it."""
    request = ContextRequest(now=NOW, marker=MARKER, token_budget=token_budget, max_golden_rules=100)
    built = make_context(map(ContextCandidate, memories), request, counter=CharacterTokenCounter())
    return service.BuildContextResponse(
        markdown=built.markdown, memory_ids=built.memory_ids, dropped=len(built.dropped_ids), recall_id="rec_1"
    )


def text_of(result: Any) -> str:
    """Return the text block of a result."""
    (block,) = result.content
    assert isinstance(block.text, str)
    return block.text


def test_context_is_markdown_with_every_id() -> None:
    """What has room comes whole, in both forms, with the ids of what is in it and no others."""
    answer = context_of(
        stored(1, "Use tabs.", kind=MemoryType.GOLDEN_RULE), stored(2, f"see {memory_id(9, b'x' * 10)}")
    )
    result = build_context.as_result(answer)
    assert text_of(result) == answer.markdown
    assert result.structured_content == {"recall_id": "rec_1", "markdown": answer.markdown, "left_out": 0}
    assert shown_memories([text_of(result)]).memory_ids == tuple(answer.memory_ids)


@pytest.mark.parametrize("character", ["x", "\n", '"', "\\", "ä"])
@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_context_that_is_too_long_loses_whole_entries(client: str, character: str) -> None:
    """A fence that a client cuts off leaves stored text standing free, so the cut is made between entries."""
    memories = [stored(number, f"{number}" + character * 1_500 + "end") for number in range(1, 40)]
    answer = context_of(*memories)
    limit = context_limits(client).characters
    result = build_context.as_result(answer, characters=limit)
    assert len(json.dumps(result.structured_content, ensure_ascii=False)) <= limit
    assert len(text_of(result)) <= limit
    shown = shown_memories([text_of(result)]).memory_ids
    assert shown == tuple(answer.memory_ids)[: len(shown)]
    assert 0 < len(shown) < 39
    assert result.structured_content["left_out"] == 39 - len(shown)
    assert f"[{MARKER} end of stored notes]" in text_of(result)


@given(st.integers(0, 12_000), st.lists(st.integers(1, 2_000), max_size=10))
def test_cut_context_is_always_fenced(room: int, sizes: list[int]) -> None:
    """Wherever it is cut, it opens and closes its fence and fits, unless the frame alone is larger."""
    kinds = list(MemoryType)
    memories = [stored(n, "y " * (size // 2) + "z", kind=kinds[n % len(kinds)]) for n, size in enumerate(sizes, 1)]
    answer = context_of(*memories)
    cut, left_out = build_context.fit_context(answer.markdown, room=room)
    shown = shown_memories([cut]).memory_ids
    assert shown == tuple(answer.memory_ids)[: len(answer.memory_ids) - left_out]
    if answer.markdown:
        assert cut.endswith(f"[{MARKER} end of stored notes]\n")
        assert len(cut) <= max(room, 400)


def test_empty_context_says_so() -> None:
    """An agent must be able to tell nothing from a failure."""
    assert "Nothing is known" in text_of(build_context.as_result(service.BuildContextResponse()))


def test_document_is_the_same_in_both_forms() -> None:
    """Short answers come whole; what could hide or turn text round is written out, in keys too."""
    result = as_document({"memory": {"id": "mem_1", "text": "a\u202eb", "metadata": {"\x1bk": [1, None, True]}}})
    assert json.loads(text_of(result)) == result.structured_content
    assert result.structured_content == {
        "memory": {"id": "mem_1", "text": "a\\u{202e}b", "metadata": {"\\x1bk": [1, None, True]}}
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=300) | st.just("\x1b" * 900),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=8),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(["memories", "edges", "memory", "note"]), _JSON, max_size=4))
def test_document_stays_under_the_clients_limit(document: dict[str, Any]) -> None:
    """What is over the limit is cut by the client wherever it happens to be; so it is cut here, and said."""
    text = text_of(as_document(document))
    assert len(text) <= MAX_DOCUMENT_CHARACTERS
    assert isinstance(json.loads(text), dict)


def test_long_lists_lose_their_end_and_say_so() -> None:
    """A page of memories keeps its first rows, and what follows the list."""
    rows: list[Any] = [{"id": f"mem_{number}", "content": "c" * 500} for number in range(200)]
    result = as_document({"memories": rows, "next_page_token": "t"})
    found = result.structured_content
    assert found is not None
    assert found["cut"] == ["memories"]
    assert found["next_page_token"] == "t"
    assert [row["id"] for row in found["memories"]] == [row["id"] for row in rows[: len(found["memories"])]]
    assert found["memories"][0]["content"].endswith(CUT_MARK)


def expanded(number: int, content: str) -> service.ExpandedMemory:
    """Return a memory that was reached over relations."""
    found = service.ExpandedMemory(relevance_score=0.4, explanation="over supersedes", hop_distance=1)
    found.memory.CopyFrom(memory(memory_id(number, b"9876543210"), content))
    return found


@pytest.mark.parametrize("n_results", [1, 5, MOST_BY_DEFAULT, 25, recall.MAX_RESULTS])
def test_related_memories_have_room_beside_the_results(n_results: int) -> None:
    """No more are asked for than can be shown, whatever their contents are."""
    most = recall.most_related(n_results)
    found = [service.RecalledMemory(memory=memory(memory_id(n, b"0123456789"), "x" * 9_000)) for n in range(n_results)]
    answer = service.RecallResponse(memories=found, expanded=[expanded(n, "y" * 9_000) for n in range(most)])
    text = text_of(recall.as_result(recall.present(answer, now=NOW)))
    assert len(text) <= recall.MAX_RESULT_CHARACTERS
    assert len(shown_memories([text]).memory_ids) == n_results + most
    # Where the agent names no number, the setting decides, and all related ones are asked for.
    assert n_results > MOST_BY_DEFAULT or most == recall.most_related(None) == recall.MAX_RELATED


def test_related_memories_are_told_apart() -> None:
    """An agent must see what answered its question and what only hangs together with that."""
    answer = service.RecallResponse(memories=[service.RecalledMemory(memory=memory())], expanded=[expanded(3, "old")])
    shown = recall.present(answer, now=NOW)
    fence = shown.fence
    assert [one.content for one in shown.memories] == [f"{fence} Redis was chosen over Memcached. {fence}"]
    related = [(one.content, one.relevance, one.type) for one in shown.related]
    assert related == [(f"{fence} old {fence}", 0.4, "decision")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["mcp"], False),
        (["mcp", "--tools", "core"], False),
        (["mcp", "--tools", "all"], True),
        (["--home", "/h", "mcp", "--tools=all"], True),
        (["mcp", "--tools=all", "--home=/h"], True),
    ],
)
def test_flag_says_which_tools_are_offered(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected: bool
) -> None:
    """The quick way to the bridge, which skips the command line, knows the flag as well."""
    asked: list[bool] = []

    def main(*, is_offering_all: bool) -> int:
        asked.append(is_offering_all)
        return 0

    monkeypatch.setenv("SIDECAR_HOME", "/h")
    monkeypatch.setattr("client_plugins.mcp_bridge.__main__.main", main)
    assert run(arguments, serve=lambda arguments: 0) == 0
    assert asked == [expected]


def test_unknown_set_of_tools_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error must not silently give the smaller set."""
    assert run(["mcp", "--tools", "everything"], serve=lambda arguments: 0) == 2
    assert "core" in capsys.readouterr().err
