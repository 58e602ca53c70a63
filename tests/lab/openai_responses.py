"""The OpenAI Responses API as Codex speaks it: `POST /v1/responses`, streamed.

Codex offers MCP tools in one of three ways, by the model's entry in its catalogue: directly, in a
namespace `mcp__<server>`; behind `tool_search`; or only from JavaScript in its `exec` tool. The
newest models all get the third.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.lab.exchange import ModelReply, ModelRequest, OfferedTool, ToolCall, ToolKind

_SEARCH_TOOL = "tool_search"
_EXEC_TOOL = "exec"
_MCP_NAME = re.compile(r"\bmcp__\w+")
_LIST_MCP_TOOLS = 'text(ALL_TOOLS.map((t) => t.name).filter((n) => n.startsWith("mcp__")));\n'
_RESULT_TYPES = {"function_call_output", "custom_tool_call_output"}


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a `POST /v1/responses`."""
    prompts: list[str] = []
    results: dict[str, str] = {}
    offers: list[Mapping[str, Any]] = list(body.get("tools", []))
    for item in body["input"]:
        if item["type"] == "message" and item["role"] != "assistant":
            prompts.append(_text(item["content"]))
        elif item["type"] == "agent_message":
            # A task for a sub-agent. OpenAI's server would have encrypted it; a report back is plain text.
            prompts.extend(part.get("encrypted_content", "") for part in item["content"])
        elif item["type"] in _RESULT_TYPES:
            results[item["call_id"]] = _text(item["output"])
        elif item["type"] in {"additional_tools", "tool_search_output"}:
            offers.extend(item["tools"])
    tools = list(_offered(offers))
    metadata = json.loads(body.get("client_metadata", {}).get("x-codex-turn-metadata", "{}"))
    search = next((tool for tool in tools if tool.kind is ToolKind.SEARCH), None)
    if search and search.name == _EXEC_TOOL:
        tools.extend(_nested(results.values()))
    return ModelRequest(
        prompts=tuple(prompts),
        results=results,
        tools=tuple(tools),
        discovery=search,
        is_compaction=metadata.get("request_kind") == "compaction",
        is_aside=metadata.get("thread_source") == "thread_title",
    )


def write_reply(reply: ModelReply, *, reply_id: str) -> Iterator[Mapping[str, Any]]:
    """Yield the reply's events in the order of the stream."""
    yield {"type": "response.created", "response": {"id": reply_id}}
    for index, item in enumerate(_items(reply, reply_id)):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": reply.context_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.context_tokens + 20,
    }
    yield {"type": "response.completed", "response": {"id": reply_id, "usage": usage}}


def _offered(tools: Sequence[Mapping[str, Any]], namespace: str | None = None) -> Iterator[OfferedTool]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _offered(tool["tools"], tool["name"])
        elif tool["type"] == _SEARCH_TOOL:
            yield OfferedTool(_SEARCH_TOOL, kind=ToolKind.SEARCH)
        elif tool.get("name") == _EXEC_TOOL and tool["type"] == "custom":
            yield OfferedTool(_EXEC_TOOL, kind=ToolKind.SEARCH)
        elif tool["type"] == "function":
            yield OfferedTool(tool["name"], namespace)


def _nested(results: Iterable[str]) -> Iterator[OfferedTool]:
    names = dict.fromkeys(name for text in results for name in _MCP_NAME.findall(text))
    return (OfferedTool(name, kind=ToolKind.NESTED) for name in names)


def _items(reply: ModelReply, reply_id: str) -> Iterator[Mapping[str, Any]]:
    if reply.think:
        summary = [{"type": "summary_text", "text": reply.think}]
        yield {"type": "reasoning", "id": f"rs_{reply_id}", "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="}
    if reply.say:
        content = [{"type": "output_text", "text": reply.say, "annotations": []}]
        phase = "commentary" if reply.calls else "final_answer"
        yield {"type": "message", "id": f"msg_{reply_id}", "role": "assistant", "phase": phase, "content": content}
    nested = [call for call in reply.calls if call.tool.kind is ToolKind.NESTED]
    if nested:
        yield _exec(nested[0].id, _nested_source(nested))
    for call in reply.calls:
        if call.tool.kind is ToolKind.SEARCH:
            yield _search(call)
        elif call.tool.kind is ToolKind.FUNCTION:
            yield _function_call(call)


def _function_call(call: ToolCall) -> Mapping[str, Any]:
    item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id}
    space = {"namespace": call.tool.namespace} if call.tool.namespace else {}
    return item | space | {"name": call.tool.name, "arguments": json.dumps(call.args)}


def _search(call: ToolCall) -> Mapping[str, Any]:
    """Write a search; a script may also call `exec` itself, with its own `source`."""
    if call.tool.name == _EXEC_TOOL:
        return _exec(call.id, call.args.get("source", _LIST_MCP_TOOLS))
    item = {"type": "tool_search_call", "id": f"tsc_{call.id}", "call_id": call.id}
    return item | {"status": "completed", "execution": "client", "arguments": {"query": call.args["query"], "limit": 8}}


def _exec(call_id: str, source: str) -> Mapping[str, Any]:
    item = {"type": "custom_tool_call", "id": f"ctc_{call_id}", "call_id": call_id, "status": "completed"}
    return item | {"name": _EXEC_TOOL, "input": source}


def _nested_source(calls: Sequence[ToolCall]) -> str:
    """Write the JavaScript that a model would write to make these calls."""
    expressions = [f"tools.{call.tool.name}({json.dumps(call.args)})" for call in calls]
    if len(expressions) == 1:
        return f"const r = await {expressions[0]};\ntext(r);\n"
    joined = ",\n  ".join(expressions)
    return f"const results = await Promise.all([\n  {joined},\n]);\nresults.forEach((r) => text(r));\n"


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)
