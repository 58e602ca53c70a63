"""The Anthropic Messages API as Claude Code speaks it: `POST /v1/messages`, streamed."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.lab.exchange import ModelReply, ModelRequest, OfferedTool, ToolCall, ToolKind

_SEARCH_TOOL = "ToolSearch"
_WAIT_TOOL = "WaitForMcpServers"
_COMPACTION_PROMPT = "Your task is to create a detailed summary of"
_MCP_NAME = re.compile(r"\bmcp__[\w-]+")


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """Read the body of a `POST /v1/messages`."""
    prompts: list[str] = []
    results: dict[str, str] = {}
    for message in body["messages"]:
        if message["role"] == "assistant":
            continue
        for block in _blocks(message["content"]):
            if block["type"] == "tool_result":
                results[block["tool_use_id"]] = _text(block.get("content", ""))
            elif block["type"] == "text":
                prompts.append(block["text"])
    names = [tool["name"] for tool in body.get("tools", [])]
    loaded = [name for text in results.values() for name in _MCP_NAME.findall(text)]
    search = next((name for name in (_WAIT_TOOL, _SEARCH_TOOL) if name in names), None)
    return ModelRequest(
        prompts=tuple(prompts),
        results=results,
        tools=tuple(OfferedTool(name) for name in dict.fromkeys(names + (loaded if search else []))),
        discovery=OfferedTool(search, kind=ToolKind.SEARCH) if search else None,
        is_compaction=any(_COMPACTION_PROMPT in prompt for prompt in prompts),
        is_aside=not names,
        call_prefix="toolu",
    )


def write_reply(reply: ModelReply, *, reply_id: str, model: str) -> Iterator[Mapping[str, Any]]:
    """Yield the reply's events in the order of the stream."""
    usage = {"input_tokens": reply.context_tokens, "output_tokens": 1}
    message = {"id": reply_id, "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (block, delta) in enumerate(_content(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        if block["type"] == "thinking":
            signature = {"type": "signature_delta", "signature": "c2NyaXB0ZWQ="}
            yield {"type": "content_block_delta", "index": index, "delta": signature}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def _content(reply: ModelReply) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield (empty content block, the delta that fills it)."""
    if reply.think:
        yield {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": reply.think}
    if reply.say:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": reply.say}
    for call in reply.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.tool.name, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": json.dumps(_arguments(call))}


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    if call.tool.kind is not ToolKind.SEARCH:
        return call.args
    return {"query": call.args["query"], "max_results": 5} if call.tool.name == _SEARCH_TOOL else {}


def _blocks(content: str | list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[Mapping[str, Any]]) -> str:
    """Return a tool result's text; a reference to a loaded tool counts as its name."""
    return "\n".join(str(block.get("text") or block.get("tool_name") or "") for block in _blocks(content))
