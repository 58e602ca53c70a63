"""Cursor's samples. Nothing was recorded with the real client: their form is that of docs/clients/cursor.md."""

from client_plugins.cursor import PLUGIN
from sidecar.testing.conformance import CANNOT_RECORD, UNHEARD_OF, ClientCase, Sample, SampleFile
from sidecar.testing.cursor_transcripts import CursorTranscript
from sidecar.testing.transcripts import sample_memory_id

SESSION = "0b0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e10"
SLUG = "home-dev-shop"
CALL = ("recall", CANNOT_RECORD)


def _file(content: bytes, *below: str) -> SampleFile:
    return SampleFile((SLUG, "agent-transcripts", *below), content)


def _conversation() -> CursorTranscript:
    transcript = CursorTranscript().user("Wann, 何時, 😀?").mcp_call("recall", {"query": "deploy"})
    transcript.mcp_call("recall", {"query": "deploy"}).agent("On Tuesday — 火曜日.")
    transcript.user("And staging?").dynamic_call("build_context", {"kind": "session"})
    transcript.call("Shell", {"command": "ls"}).call("CallMcpTool", {})
    transcript.agent("[REDACTED]").agent("Every night.\n\n[REDACTED]")
    return transcript.mcp_call("remember", {"text": "Staging is restored every night."}).end_turn()


def _main() -> Sample:
    """Two turns; then after a compaction the first prompt stands there again."""
    transcript = _conversation()
    content = transcript.to_bytes()
    compacted = transcript.copy()
    compacted.records += [transcript.records[0], transcript.records[4]]
    compacted.add("user", {"type": "text", "text": "<dynamic_tools>\nmemory: recall, remember\n</dynamic_tools>"})
    return Sample(
        name="main",
        file=_file(content, SESSION, f"{SESSION}.jsonl"),
        recalls=(CALL, CALL, ("build_context", CANNOT_RECORD)),
        remembers=1,
        texts=("Wann, 何時, 😀?", "On Tuesday — 火曜日.", "And staging?", "Every night."),
        repetitions=(
            _file(content, f"{SESSION}.jsonl"),
            SampleFile(("Users-dev-shop", "agent-transcripts", f"{SESSION}.jsonl"), content),
            _file(compacted.to_bytes(), SESSION, f"{SESSION}.jsonl"),
        ),
    )


def _sub_agent() -> Sample:
    content = CursorTranscript(is_timed=False).user("Find out.").mcp_call("recall").agent("Found.").to_bytes()
    return Sample("sub_agent", _file(content, SESSION, "subagents", "c1.jsonl"), (CALL,), texts=("Find out.", "Found."))


_PLAIN = """user:
<user_query>
Wann, 何時, 😀?
And where?
</user_query>

assistant:
[Thinking] The user asks for recall.
Still thinking.
[Tool call] CallMcpTool
  server: user-memory
  toolName: recall
  arguments: {"query":"deploy"}

[Tool result] CallMcpTool
mem_00000000000000000000000000
assistant:
On Tuesday.
[Tool call] Shell
  command: ls

user:
<timestamp>Monday, Nov 30, 2026, 6:05 PM (UTC+1)</timestamp>
<user_query>Thanks</user_query>
A:
Done.
"""


def _quote(text: str) -> bytes:
    transcript = CursorTranscript().user(f"Look: {text}").agent(f"It says {text}")
    return transcript.call("Read", {"path": text}).call("Shell", {"command": text, "toolName": "recall"}).to_bytes()


def _quote_plain(text: str) -> bytes:
    # Plain text cannot quote: a line that looks like a mark is one.
    said = text.replace("\n", " ")
    return f"user:\nLook: {said}\nassistant:\nIt says {said}\n[Tool call] Read\n  path: {said}\n".encode()


CASE = ClientCase(
    plugin=PLUGIN,
    samples=(_main(), _sub_agent()),
    quote=_quote,
    unheard_of=(UNHEARD_OF, b'{"role":"tool","message":{"content":"x"}}\n', b'{"type":"turn_started"}\n'),
)
PLAIN_TEXT_CASE = ClientCase(
    plugin=PLUGIN,
    samples=(
        Sample(
            name="plain_text",
            file=_file(_PLAIN.replace("mem_00000000000000000000000000", sample_memory_id(1)).encode(), "old.txt"),
            recalls=(CALL,),
            texts=("Wann, 何時, 😀?", "And where?", "On Tuesday.", "Thanks", "Done."),
        ),
    ),
    quote=_quote_plain,
    unheard_of=(),
)
