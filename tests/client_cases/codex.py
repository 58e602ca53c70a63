"""Codex's samples in the shapes of 0.171: direct calls, and calls made by a script, whose output alone was shown."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from client_plugins.codex import PLUGIN
from sidecar.domain.evidence import UnknownReason
from sidecar.testing.conformance import (
    NOTHING,
    UNANSWERED,
    UNHEARD_OF,
    ClientCase,
    Sample,
    SampleFile,
    shows,
    unknown,
)
from sidecar.testing.transcripts import sample_memory_id

ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))
THREAD, FORK = "01a22da8-08e8-7561-841b-72e2a1f353aa", "01a22da8-08e8-7561-841b-72e2a1f353bb"
SCRIPTED = "01a22da8-08e8-7561-841b-72e2a1f353dd"
_BEGIN = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)

Record = dict[str, object]


@dataclass
class Rollout:
    """One Codex transcript, filled record by record."""

    thread: str = THREAD
    begin: datetime = _BEGIN
    records: list[tuple[str, Record]] = field(default_factory=list)

    def head(self, thread: str = "") -> "Rollout":
        """Add the head of this thread, or of another one."""
        named = thread or self.thread
        meta = {"id": named, "session_id": named, "cwd": "/home/dev/shop", "cli_version": "0.171.0", "source": "cli"}
        return self.add("session_meta", **meta)

    def turn(self, number: int) -> "Rollout":
        """Begin a turn."""
        return self.add("event_msg", type="task_started", turn_id=f"turn-{number}")

    def said(self, role: str, text: str) -> "Rollout":
        """Add a message."""
        kind = "input_text" if role == "user" else "output_text"
        return self.add("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    def function_call(self, call_id: str, name: str, arguments: object, namespace: str = "") -> "Rollout":
        """Add a direct call."""
        shape = {"namespace": namespace} if namespace else {}
        passed = json.dumps(arguments)
        return self.add("response_item", type="function_call", name=name, arguments=passed, call_id=call_id, **shape)

    def function_output(self, call_id: str, output: object) -> "Rollout":
        """Add a direct call's output."""
        return self.add("response_item", type="function_call_output", call_id=call_id, output=output)

    def script(self, call_id: str, source: str) -> "Rollout":
        """Add a script that the model wrote."""
        return self.add("response_item", type="custom_tool_call", name="exec", call_id=call_id, input=source)

    def script_output(self, call_id: str, *texts: str) -> "Rollout":
        """Add what a script printed."""
        parts = [{"type": "input_text", "text": text} for text in ("Script completed\nOutput:\n", *texts)]
        return self.add("response_item", type="custom_tool_call_output", call_id=call_id, output=parts)

    def mcp_item(self, item_id: str, tool: str, *texts: str, turn: int = 1, is_error: bool = False) -> "Rollout":
        """Add the client's own record of a call and its result."""
        result = {"content": [{"type": "text", "text": text} for text in texts], "isError": is_error}
        status = "failed" if is_error else "completed"
        item = {"type": "McpToolCall", "id": item_id, "server": "memory", "tool": tool, "arguments": {}}
        item |= {"status": status, "result": result}
        return self.add("event_msg", type="item_completed", thread_id=self.thread, turn_id=f"turn-{turn}", item=item)

    def add(self, kind: str, **payload: object) -> "Rollout":
        """Add a record."""
        self.records.append((kind, payload))
        return self

    def lines(self) -> list[bytes]:
        """Return the lines, each with its newline."""
        times = (self.begin + timedelta(seconds=number) for number in range(len(self.records)))
        records = [
            {
                "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "type": kind,
                "payload": payload,
            }
            for at, (kind, payload) in zip(times, self.records, strict=True)
        ]
        return [
            json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n" for record in records
        ]

    def to_bytes(self) -> bytes:
        """Return the whole file."""
        return b"".join(self.lines())


def _file(content: bytes, thread: str = THREAD, *, is_archived: bool = False) -> SampleFile:
    folders = () if is_archived else ("2026", "11", "30")
    return SampleFile((*folders, f"rollout-2026-11-30T19-00-00-{thread}.jsonl"), content)


def _direct() -> Sample:
    """Three calls at once, answered backwards; the legacy fork copies them with new times behind both heads."""
    rollout = Rollout().head().turn(1).said("user", "Wann, 何時, 😀?")
    rollout.function_call("call_1", "recall", {"query": "deploy"}, "mcp__memory")
    rollout.function_call("call_2", "mcp__memory__recall", {"query": "staging"})
    rollout.function_call("call_3", "remember", {"text": "x"}, "mcp__memory")
    rollout.function_call("call_4", "recall", {}, "mcp__memory")
    place = len(rollout.records)
    rollout.function_output("call_3", f'Wall time: 0.1 seconds\nOutput:\n{{"id":"{THREE}"}}')
    rollout.function_output("call_2", [{"type": "input_text", "text": "Wall time: 0.1 seconds\nOutput:\n"}])
    rollout.function_output(
        "call_1", f'Wall time: 0.1 seconds\nOutput:\n{{"result":[{{"id":"{ONE}"}},{{"id":"{TWO}"}}]}}'
    )
    rollout.said("assistant", "Am Dienstag — 火曜日.")
    lines = rollout.lines()
    results = lines[place : place + 3]
    fork = Rollout(FORK, _BEGIN + timedelta(hours=1)).head().head(THREAD)
    fork.records += rollout.records[1:]
    return Sample(
        name="direct",
        file=_file(rollout.to_bytes()),
        recalls=(("recall", shows(ONE, TWO)), ("recall", NOTHING), ("recall", UNANSWERED)),
        remembers=1,
        texts=("Wann, 何時, 😀?", "Am Dienstag — 火曜日."),
        reordered=(b"".join([*lines[:place], *reversed(results), *lines[place + 3 :]]),),
        repetitions=(
            _file(rollout.to_bytes(), is_archived=True),
            _file(fork.to_bytes(), FORK),
            _file(b"".join([*lines, rollout.lines()[0]])),
        ),
    )


def _scripted() -> Sample:
    """The server returned three memories and the script printed two of them; another script printed nothing."""
    rollout = (
        Rollout(SCRIPTED)
        .head()
        .turn(1)
        .said("user", "When?")
        .script("call_s1", "text(await tools.mcp__memory__recall())")
    )
    rollout.mcp_item("exec-1", "recall", ONE, TWO, THREE).script_output("call_s1", f"{ONE} and {THREE}")
    rollout.script("call_s2", "await tools.mcp__memory__recall()")
    rollout.mcp_item("exec-2", "recall", "no such", is_error=True).script_output("call_s2")
    rollout.said("assistant", "On Tuesday.").add("event_msg", type="task_complete", turn_id="turn-1")
    return Sample(
        name="scripted",
        file=_file(rollout.to_bytes(), SCRIPTED),
        recalls=(("recall", shows(ONE, THREE)), ("recall", unknown(UnknownReason.ERRORED))),
        texts=("When?", "On Tuesday."),
    )


def _quote(text: str) -> bytes:
    rollout = Rollout("01a22da8-08e8-7561-841b-72e2a1f353cc").head().turn(1).said("user", f"Look: {text}")
    rollout.said("assistant", f"It says {text}").function_call("call_q1", "shell", {"command": ["cat", text]})
    rollout.function_output("call_q1", text).script("call_q2", f"// {text}\ntext(1)").script_output("call_q2", text)
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
    return rollout.add("compacted", message=text, replacement_history=history).to_bytes()


CASE = ClientCase(
    plugin=PLUGIN,
    samples=(_direct(), _scripted()),
    quote=_quote,
    unheard_of=(
        UNHEARD_OF,
        b'{"timestamp":"2026-11-30T18:00:00Z","type":"response_item","payload":{"type":"mcp_call_v2"}}\n',
        b'{"timestamp":"2026-11-30T18:00:00Z","type":"event_msg","payload":{"type":"unheard_of"}}\n',
    ),
)
