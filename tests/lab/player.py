"""Plays a script: finds the reply that a request is due. Knows no wire format."""

import re
import threading
from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.lab.exchange import ModelReply, ModelRequest, OfferedTool, ToolCall
from tests.lab.script import Reply, Script

_MAX_SEARCHES = 3
"""Per reply. Clients start MCP servers in the background, so the first search may come too early."""

_PLACEHOLDER = re.compile(r"\$\{(?P<name>\w+)(?:\[(?P<index>\d+)\])?\}")


class _Part:
    """One agent's place in its list of replies."""

    def __init__(self, name: str, replies: tuple[Reply, ...], when: str = "") -> None:
        self.name = name
        self.when = when
        self.replies = replies
        self.position = 0
        self.searches = 0
        self.open_calls: tuple[str, ...] = ()

    def is_for(self, request: ModelRequest) -> bool:
        return any(re.search(self.when, prompt) for prompt in request.prompts)


class Player:
    """Answers requests from a script, in order. Safe to call from several threads.

    Attributes:
        problems: What went wrong so far, for a test to assert empty. A client is never left without
            an answer: after a problem the turn ends with the problem as text.
    """

    def __init__(self, script: Script) -> None:
        self._summary = script.summary
        self._main = _Part("main", script.main)
        self._agents = [_Part(agent.when, agent.replies, agent.when) for agent in script.agents]
        self._captured: dict[str, list[str]] = {}
        self._call_numbers = count(1)
        self._lock = threading.Lock()
        self.problems: list[str] = []

    def unplayed(self) -> dict[str, int]:
        """Replies that no request has asked for yet: part -> count; empty once all were played."""
        left = {part.name: len(part.replies) - part.position for part in [self._main, *self._agents]}
        return {name: replies for name, replies in left.items() if replies}

    def answer(self, request: ModelRequest) -> ModelReply:
        """Return the reply that this request is due."""
        with self._lock:
            if request.is_compaction:
                return ModelReply(say=self._summary)
            if request.is_aside:
                return ModelReply(say="ok")
            part = next((agent for agent in self._agents if agent.is_for(request)), self._main)
            return self._next(part, request)

    def _next(self, part: _Part, request: ModelRequest) -> ModelReply:
        self._capture(part, request)
        if part.position == len(part.replies):
            return self._problem(f"{part.name}: the script has no further reply")
        reply = part.replies[part.position]
        tools = {call.tool: _find(call.tool, request.tools) for call in reply.calls}
        missing = [name for name, tool in tools.items() if tool is None]
        if missing and request.discovery and part.searches < _MAX_SEARCHES:
            part.searches += 1
            search = ToolCall(self._new_call_id(request), request.discovery, {"query": missing[0]})
            return ModelReply(calls=(search,))
        part.searches = 0
        part.position += 1
        if missing:
            offered = ", ".join(sorted(tool.name for tool in request.tools))
            return self._problem(f"{part.name}: {', '.join(missing)} not among the offered tools: {offered}")
        calls = tuple(
            ToolCall(self._new_call_id(request), tool, self._fill(dict(call.args)))
            for call in reply.calls
            if (tool := tools[call.tool])
        )
        part.open_calls = tuple(call.id for call in calls)
        return ModelReply(self._fill(reply.say), self._fill(reply.think), calls, reply.context_tokens, reply.delay_s)

    def _capture(self, part: _Part, request: ModelRequest) -> None:
        if not part.open_calls:
            return
        text = "\n".join(request.results.get(call_id, "") for call_id in part.open_calls)
        for name, pattern in part.replies[part.position - 1].capture.items():
            found = list(dict.fromkeys(match.group(0) for match in re.finditer(pattern, text)))
            if not found:
                self.problems.append(f"{part.name}: {pattern!r} matches nothing in {text[:500]!r}")
            self._captured[name] = found
        part.open_calls = ()

    def _new_call_id(self, request: ModelRequest) -> str:
        return f"{request.call_prefix}_scripted_{next(self._call_numbers):04}"

    def _fill(self, value: Any) -> Any:
        """Replace `${name}` in a text, or in all texts of nested lists and mappings."""
        if isinstance(value, str):
            return _PLACEHOLDER.sub(self._captured_text, value)
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self._fill(item) for key, item in value.items()}
        return value

    def _captured_text(self, placeholder: re.Match[str]) -> str:
        values = self._captured.get(placeholder["name"], [])
        index = int(placeholder["index"] or 0)
        if index < len(values):
            return values[index]
        self.problems.append(f"nothing was captured for {placeholder[0]}")
        return placeholder[0]

    def _problem(self, text: str) -> ModelReply:
        self.problems.append(text)
        return ModelReply(say=f"[script problem] {text}")


def _find(name: str, tools: tuple[OfferedTool, ...]) -> OfferedTool | None:
    return next((tool for tool in tools if tool.short_name == name), None)
