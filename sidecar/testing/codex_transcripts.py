"""Builds transcripts as Codex writes them, for tests and for authors of plugins. Writes no files.

The shapes are those of recorded sessions of Codex 0.171 and, where a method says so, of earlier versions; the words are
made up.
"""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

_BEGIN: Final = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
_NAMESPACE: Final = uuid.UUID("c1f0a8de-92a5-4f5e-8a77-0f6f0d1b2c3d")
Json = dict[str, object]


def codex_text(text: str) -> Json:
    """Return an item of text as outputs hold it."""
    return {"type": "input_text", "text": text}


def codex_result(*memory_ids: str, is_error: bool = False) -> Json:
    """Return what a recalling tool answers: structured, and the same as text."""
    found = [{"id": one, "text": f"Note {number}."} for number, one in enumerate(memory_ids)]
    content: list[Json] = [{"type": "text", "text": json.dumps(one, indent=2)} for one in found]
    return {"content": content, "structuredContent": {"result": found}, "isError": is_error}


@dataclass
class CodexTranscript:
    """One rollout, filled record by record.

    Attributes:
        thread: Id of the thread; its head is written by `head`.
        seed: Tells ids of two rollouts apart; the same seed gives the same ones.
        begin: Time of the first record, UTC.
    """

    thread: str = "01a22da8-08e8-7561-841b-72e2a1f353aa"
    cwd: str = "/home/dev/shop"
    version: str = "0.171.0"
    seed: str = "main"
    begin: datetime = _BEGIN
    turn: str = ""
    records: list[Json] = field(default_factory=list)

    def head(self, **fields: object) -> None:
        """Add the `session_meta`; `fields` go into its payload."""
        payload = {
            "session_id": self.thread,
            "id": self.thread,
            "cwd": self.cwd,
            "originator": "codex_exec",
            "cli_version": self.version,
            "source": "exec",
            "history_mode": "paginated",
            **fields,
        }
        self.add("session_meta", payload)

    def begin_turn(self, text: str) -> str:
        """Begin a turn with what the user says. Return its id."""
        self.turn = self._unique("turn")
        self.event("task_started", turn_id=self.turn)
        self.add("turn_context", {"turn_id": self.turn, "cwd": self.cwd})
        self.message("user", text)
        return self.turn

    def end_turn(self) -> None:
        """End the turn."""
        self.event("task_complete", turn_id=self.turn)

    def message(self, role: str, text: str, **fields: object) -> None:
        """Add a message; `fields` go into the record."""
        kind = "output_text" if role == "assistant" else "input_text"
        item: Json = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        self.item(item, **fields)

    def call(self, name: str, *, namespace: str = "mcp__memory", arguments: object = None, call_id: str = "") -> str:
        """Add a direct call. Return its id."""
        call_id = call_id or f"call_{self._unique('call')}"
        where: Json = {"namespace": namespace} if namespace else {}
        text = json.dumps({"query": "deploys"} if arguments is None else arguments)
        self.item({"type": "function_call", "name": name, **where, "arguments": text, "call_id": call_id})
        return call_id

    def output(self, call_id: str, output: object) -> None:
        """Add what the model got of a direct call."""
        self.item({"type": "function_call_output", "call_id": call_id, "output": output})

    def script(self, source: str = "text(await tools.mcp__memory__recall({}))") -> str:
        """Add a script of the model's, as in code mode. Return its id."""
        call_id = f"call_{self._unique('script')}"
        self.item({"type": "custom_tool_call", "name": "exec", "call_id": call_id, "input": source})
        return call_id

    def script_output(self, call_id: str, *printed: str, head: str = "Script completed") -> None:
        """Add what a script printed."""
        items = [codex_text(f"{head}\nWall time 0.1 seconds\nOutput:\n"), *map(codex_text, printed)]
        self.item({"type": "custom_tool_call_output", "call_id": call_id, "output": items})

    def mcp_item(self, call_id: str, result: Json | None, *, tool: str = "recall", **fields: object) -> str:
        """Add the client's event of an MCP call; an empty id makes it a script's. Return the id."""
        call_id = call_id or f"exec-{self._unique('nested')}"
        is_failed = result is None or result.get("isError") is True
        item = {
            "type": "McpToolCall",
            "id": call_id,
            "server": "memory",
            "tool": tool,
            "arguments": {"query": "deploys"},
            "status": "failed" if is_failed else "completed",
            **({"result": result} if result is not None else {}),
            "duration": {"secs": 0, "nanos": 4_000_000},
            **fields,
        }
        self.event("item_completed", thread_id=self.thread, turn_id=self.turn, item=item)
        return call_id

    def mcp_end(self, call_id: str, result: Json, *, tool: str = "recall", server: str = "memory") -> None:
        """Add the event of an MCP call as up to 0.149: `result` is `{"Ok": ...}` or `{"Err": ...}`."""
        invocation = {"server": server, "tool": tool, "arguments": {"query": "deploys"}}
        duration = {"secs": 0, "nanos": 4_000_000}
        self.event("mcp_tool_call_end", call_id=call_id, invocation=invocation, duration=duration, result=result)

    def direct_recall(self, *memory_ids: str, name: str = "recall") -> str:
        """Add a direct recall as 0.171 writes it: call, event, output. Return its id."""
        call_id = self.call(name)
        result = codex_result(*memory_ids)
        self.mcp_item(call_id, result, tool=name)
        self.output(call_id, f"Wall time: 0.1 seconds\nOutput:\n{json.dumps(result['structuredContent'])}")
        return call_id

    def scripted_recall(self, *memory_ids: str, printed: str | None = None) -> str:
        """Add a recall in code mode that prints all it got, or something else. Return the nested call's id."""
        script = self.script()
        result = codex_result(*memory_ids)
        call_id = self.mcp_item("", result)
        self.script_output(script, json.dumps(result) if printed is None else printed)
        return call_id

    def item(self, payload: Json, **fields: object) -> None:
        """Add a `response_item`; `fields` go into the record."""
        turn: Json = {"internal_chat_message_metadata_passthrough": {"turn_id": self.turn}} if self.turn else {}
        self.add("response_item", {**payload, **turn}, **fields)

    def event(self, kind: str, **fields: object) -> None:
        """Add an `event_msg`; `fields` go into its payload."""
        self.add("event_msg", {"type": kind, **fields})

    def add(self, kind: str, payload: Json, **fields: object) -> None:
        """Add a record of any type; `fields` go into it."""
        at = self.begin + timedelta(seconds=len(self.records))
        stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.records.append(
            {"timestamp": stamp, "ordinal": len(self.records), "type": kind, "payload": payload, **fields}
        )

    def legacy_fork(self, thread: str) -> "CodexTranscript":
        """Return what a fork was before 0.15: a head of its own, then every record copied with a new time."""
        fork = CodexTranscript(
            thread, self.cwd, self.version, f"{self.seed}-{thread}", self.begin + timedelta(days=1), self.turn
        )
        fork.head(forked_from_id=self.thread, history_mode="legacy")
        for record in self.records:
            fork.add(str(record["type"]), dict(record["payload"]))  # type: ignore[call-overload] # payloads are objects
        return fork

    def lines(self) -> list[bytes]:
        """Return the lines, each with its newline."""
        return [
            json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
            for record in self.records
        ]

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.lines())

    def _unique(self, purpose: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.seed} {purpose} {len(self.records)}"))
