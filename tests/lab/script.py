"""Scripts: what the model thinks, says and calls, reply by reply. Data only; `player.py` plays it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

_DEFAULT_SUMMARY = "The user and the assistant talked about the project; nothing is left to do."
_DEFAULT_CONTEXT_TOKENS = 1_000


class ScriptError(ValueError):
    """The script's text does not say what to play."""


@dataclass(frozen=True)
class Call:
    """One tool call; `tool` is the last `__` segment of the name that the client offers."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """One reply of the model. Without calls it ends the turn.

    Attributes:
        capture: Name -> regex, searched in the results of this reply's calls. Later replies write
            `${name}` for the first distinct match and `${name[1]}` for the second.
        context_tokens: Context size to report; a large one makes the client compact.
        delay_s: Wait before answering, to look at a session while it is open.
    """

    say: str = ""
    think: str = ""
    calls: tuple[Call, ...] = ()
    capture: Mapping[str, str] = field(default_factory=dict)
    context_tokens: int = _DEFAULT_CONTEXT_TOKENS
    delay_s: float = 0.0


@dataclass(frozen=True)
class AgentPart:
    """The replies of a sub-agent: the one whose prompts match the regex `when`."""

    when: str
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class Script:
    """All replies of one run: the main agent's, the sub-agents', and the text of a compaction."""

    main: tuple[Reply, ...]
    agents: tuple[AgentPart, ...] = ()
    summary: str = _DEFAULT_SUMMARY

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a YAML or JSON file; see `parse`."""
        return cls.parse(yaml.safe_load(path.read_text(encoding="utf-8")))

    @classmethod
    def parse(cls, data: object) -> Self:
        """Read a script from plain data.

        Args:
            data: `{main: [...], agents: [...], summary: ...}`, or the list under `main` alone.

        Raises:
            ScriptError: If a key is unknown or a value has the wrong shape.
        """
        if isinstance(data, list):
            data = {"main": data}
        script = _mapping(data, "script", {"main", "agents", "summary"})
        return cls(
            main=_replies(script.get("main"), "main"),
            agents=tuple(_agent(agent) for agent in _list(script.get("agents", []), "agents")),
            summary=str(script.get("summary", _DEFAULT_SUMMARY)),
        )


def _agent(data: object) -> AgentPart:
    agent = _mapping(data, "agents[]", {"when", "replies"})
    when = str(agent.get("when", ""))
    if not when:
        raise ScriptError("agents[]: `when` is missing")
    return AgentPart(when=_regex(when), replies=_replies(agent.get("replies"), "agents[].replies"))


def _replies(data: object, where: str) -> tuple[Reply, ...]:
    return tuple(_reply(item, f"{where}[{number}]") for number, item in enumerate(_list(data, where)))


def _reply(data: object, where: str) -> Reply:
    allowed = {"say", "think", "call", "args", "calls", "capture", "context_tokens", "delay_s"}
    reply = _mapping(data, where, allowed)
    calls = [_mapping(call, f"{where}.calls[]", {"call", "args"}) for call in _list(reply.get("calls", []), where)]
    if "call" in reply:
        calls.append({"call": reply["call"], "args": reply.get("args", {})})
    elif "args" in reply:
        raise ScriptError(f"{where}: `args` without `call`")
    capture = _mapping(reply.get("capture", {}), f"{where}.capture")
    return Reply(
        say=str(reply.get("say", "")),
        think=str(reply.get("think", "")),
        calls=tuple(Call(str(call["call"]), _mapping(call.get("args", {}), f"{where}.args")) for call in calls),
        capture={name: _regex(str(pattern)) for name, pattern in capture.items()},
        context_tokens=int(reply.get("context_tokens", _DEFAULT_CONTEXT_TOKENS)),
        delay_s=float(reply.get("delay_s", 0.0)),
    )


def _regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ScriptError(f"{pattern!r} is no regex: {error}") from error
    return pattern


def _list(data: object, where: str) -> list[Any]:
    if not isinstance(data, list):
        raise ScriptError(f"{where}: expected a list, got {type(data).__name__}")
    return data


def _mapping(data: object, where: str, allowed: set[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ScriptError(f"{where}: expected a mapping, got {type(data).__name__}")
    unknown = set(data) - allowed if allowed is not None else set()
    if unknown:
        raise ScriptError(f"{where}: unknown key {', '.join(sorted(unknown))}")
    return data
