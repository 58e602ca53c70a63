"""Builds transcripts as Claude Code writes them, for tests and for authors of plugins. Writes no files.

The shapes are those of recorded sessions of Claude Code 2.1; the words are made up.
"""

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from sidecar.domain.ids import memory_id

_BEGIN: Final = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
_NAMESPACE: Final = uuid.UUID("6f1c2f0e-2d53-4c8e-9b1a-6a4f2f0f7f11")


def sample_memory_id(number: int) -> str:
    """Return a memory id that is the same for the same number."""
    return memory_id(1_764_525_600_000 + number, number.to_bytes(10, "big"))


def text_block(text: str) -> dict[str, object]:
    """Return a block of text, as in messages and in results."""
    return {"type": "text", "text": text}


@dataclass
class ClaudeCodeTranscript:
    """One transcript, filled record by record. Every method that adds returns what later records refer to.

    Attributes:
        session: Session id; for a sub-agent's transcript its parent's.
        agent_id: The sub-agent whose file it is; empty for the main one.
        seed: Tells uuids and call ids of two transcripts apart; the same seed gives the same ones.
    """

    session: str = "0b0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e10"
    cwd: str = "/home/dev/shop"
    version: str = "2.1.197"
    agent_id: str = ""
    seed: str = "main"
    records: list[dict[str, object]] = field(default_factory=list)

    def user(self, content: object, **fields: object) -> str:
        """Add what the user said; `fields` go into the record. Return its uuid."""
        return self.add("user", {"role": "user", "content": content}, **fields)

    def agent(self, *blocks: dict[str, object], message_id: str = "", **fields: object) -> str:
        """Add one record of the model's answer. Return its uuid."""
        message: dict[str, object] = {
            "id": message_id or f"msg_{self._unique('message')}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": list(blocks),
            "stop_reason": None,
        }
        return self.add("assistant", message, **fields)

    def agent_text(self, text: str, *, message_id: str = "", **fields: object) -> str:
        """Add a text of the model's. Return its uuid."""
        return self.agent(text_block(text), message_id=message_id, **fields)

    def call(self, name: str, arguments: object = None, *, call_id: str = "") -> str:
        """Add a tool's call. Return the call's id."""
        call_id = call_id or f"toolu_{self._unique('call')}"
        self.agent({"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments})
        return call_id

    def result(self, call_id: str, content: object, *, is_error: bool = False, **fields: object) -> str:
        """Add the result of a call: `content` is a string or a list of blocks. Return the record's uuid."""
        block: dict[str, object] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if is_error:
            block["is_error"] = True
        return self.add("user", {"role": "user", "content": [block]}, toolUseResult=content, **fields)

    def recall(self, *memory_ids: str, name: str = "mcp__memory__recall") -> str:
        """Add a recall and its structured result that shows these memories. Return the call's id."""
        call_id = self.call(name, {"query": "deploy window"})
        found = [{"id": one, "text": f"Note {number}."} for number, one in enumerate(memory_ids)]
        self.result(call_id, json.dumps({"result": found}))
        return call_id

    def add(self, kind: str, message: dict[str, object] | None = None, **fields: object) -> str:
        """Add a record of any type; without a message it is one that does not speak. Return its uuid."""
        record_id = self._unique("record")
        record: dict[str, object] = {
            "parentUuid": self.records[-1]["uuid"] if self.records else None,
            "isSidechain": bool(self.agent_id),
            **({"agentId": self.agent_id} if self.agent_id else {}),
            "type": kind,
            **({"message": message} if message is not None else {}),
            "uuid": record_id,
            "timestamp": self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": self.version,
            **fields,
        }
        self.records.append(record)
        return record_id

    def fork(self, session: str) -> "ClaudeCodeTranscript":
        """Return what `--fork-session` writes: every record copied, only `sessionId` another."""
        records = [{**record, "sessionId": session} for record in self.records]
        return ClaudeCodeTranscript(session, self.cwd, self.version, self.agent_id, f"{self.seed}-fork", records)

    def lines(self) -> list[bytes]:
        """Return the lines, each with its newline."""
        return [
            json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
            for record in self.records
        ]

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.lines())

    def _now(self) -> datetime:
        return _BEGIN + timedelta(seconds=len(self.records))

    def _unique(self, purpose: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self.seed} {purpose} {len(self.records)}"))
