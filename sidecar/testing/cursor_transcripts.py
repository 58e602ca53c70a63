"""Builds transcripts as Cursor writes them, for tests and authors of plugins. Writes no files; the words are ours."""

import json
from dataclasses import dataclass, field

Block = dict[str, object]
Line = dict[str, object]

TURN_ENDED: Line = {"type": "turn_ended", "status": "success"}


@dataclass
class CursorTranscript:
    """One transcript, filled line by line.

    Attributes:
        is_timed: Whether prompts begin with their time, as they do since the summer of 2026.
    """

    is_timed: bool = True
    records: list[Line] = field(default_factory=list)

    def user(self, text: str) -> "CursorTranscript":
        """Add a prompt, wrapped as Cursor does; its minute is the number of lines before it."""
        minute = len(self.records) % 60
        time = f"<timestamp>Monday, Nov 30, 2026, 6:{minute:02} PM (UTC+1)</timestamp>\n" if self.is_timed else ""
        return self.add("user", {"type": "text", "text": f"{time}<user_query>\n{text}\n</user_query>"})

    def agent(self, text: str) -> "CursorTranscript":
        """Add a text of the model's."""
        return self.add("assistant", {"type": "text", "text": text})

    def call(self, name: str, arguments: object) -> "CursorTranscript":
        """Add a call of one of Cursor's own tools."""
        return self.add("assistant", {"type": "tool_use", "name": name, "input": arguments})

    def mcp_call(self, tool: str, arguments: object = None) -> "CursorTranscript":
        """Add a call of another server's tool."""
        passed = {"server": "user-memory", "toolName": tool, "arguments": {} if arguments is None else arguments}
        return self.call("CallMcpTool", passed)

    def dynamic_call(self, tool: str, arguments: object = None) -> "CursorTranscript":
        """Add such a call in the newer form."""
        passed = {"namespace": "memory", "toolName": tool, "arguments": {} if arguments is None else arguments}
        return self.call("CallDynamicTool", passed)

    def add(self, role: str, *blocks: Block) -> "CursorTranscript":
        """Add a line."""
        self.records.append({"role": role, "message": {"content": list(blocks)}})
        return self

    def end_turn(self) -> "CursorTranscript":
        """Add the line that Cursor puts last, and replaces when the next turn begins."""
        self.records.append(TURN_ENDED)
        return self

    def copy(self) -> "CursorTranscript":
        """Return one that goes its own way from here; the end of the last turn is left out, as by the next turn."""
        records = self.records[:-1] if self.records and self.records[-1] == TURN_ENDED else self.records
        return CursorTranscript(self.is_timed, list(records))

    def lines(self) -> list[bytes]:
        """Return the lines, each with its newline."""
        return [
            json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
            for record in self.records
        ]

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.lines())
