"""Claude Code's samples: built ones for what is rare, recorded ones for what the real client writes."""

import json
from pathlib import Path

from client_plugins.claude_code import PLUGIN
from sidecar.domain.evidence import UnknownReason
from sidecar.testing.conformance import (
    UNANSWERED,
    UNHEARD_OF,
    ClientCase,
    Sample,
    SampleFile,
    shows,
    unknown,
)
from sidecar.testing.transcripts import ClaudeCodeTranscript, sample_memory_id, text_block

GOLDEN = Path(__file__).parents[1] / "golden" / "claude_code"
ONE, TWO, THREE = (sample_memory_id(number) for number in (1, 2, 3))
SESSION, FORK = "5f0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e10", "6f0e7a54-7f9d-4b5c-8f5e-1d6b4a3c2e11"
FOLDER = "-home-dev-shop"


def _main(content: bytes, session: str = SESSION) -> SampleFile:
    return SampleFile((FOLDER, f"{session}.jsonl"), content)


def _parallel() -> Sample:
    """Three calls in one message, answered backwards; forked, moved and written again."""
    transcript = ClaudeCodeTranscript(SESSION)
    transcript.user("Frage: wann, 何時, 😀?")
    calls = [transcript.call("mcp__memory__recall", {"query": "deploy"}, call_id=f"toolu_0{n}") for n in range(2)]
    calls.append(transcript.call("mcp__plugin_memory-kit_memory__build_context", call_id="toolu_02"))
    first_result = len(transcript.records)
    transcript.result(calls[2], [text_block(f"{ONE} {TWO}"), {"type": "image"}, text_block(THREE)])
    transcript.result(calls[1], "Error: no such server " + ONE, is_error=True)
    transcript.result(calls[0], json.dumps({"result": [{"id": TWO}]}))
    transcript.agent_text("Antwort — 火曜日 🚀")
    call_id = transcript.call("mcp__memory__remember", {"text": "Redis", "supersedes": [ONE]}, call_id="toolu_03")
    transcript.result(call_id, json.dumps({"id": THREE}))
    lines = transcript.lines()
    results = lines[first_result : first_result + 3]
    around = lines[:first_result], lines[first_result + 3 :]
    fork = transcript.fork(FORK)
    whole = transcript.to_bytes()
    return Sample(
        name="parallel",
        file=_main(whole),
        recalls=(
            ("recall", shows(TWO)),
            ("recall", unknown(UnknownReason.ERRORED)),
            ("build_context", shows(ONE, TWO, THREE)),
        ),
        remembers=1,
        texts=("Frage: wann, 何時, 😀?", "Antwort — 火曜日 🚀"),
        reordered=(
            b"".join([*around[0], *reversed(results), *around[1]]),
            # Clients write from several queues, so a result may even stand ahead of its call.
            b"".join([*results, *around[0], *around[1]]),
            b"".join(reversed(lines)),
        ),
        repetitions=(
            _main(fork.to_bytes(), FORK),
            SampleFile(("-home-dev-other", f"{SESSION}.jsonl"), whole),
            _main(whole + whole),
            _main(b"".join(line.rstrip(b"\n") + other for line, other in zip(lines[::2], lines[1::2], strict=True))),
        ),
    )


def _sub_agent() -> Sample:
    """A sub-agent's own file, and its turns inside the main one as they were up to 1.0."""
    transcript = ClaudeCodeTranscript(SESSION, agent_id="a1b2c3d4e5f60718")
    transcript.user("Find out.")
    transcript.recall(ONE, THREE)
    transcript.call("mcp__memory__recall", call_id="toolu_cut")
    file = SampleFile((FOLDER, SESSION, "subagents", "agent-a1b2c3d4e5f60718.jsonl"), transcript.to_bytes())
    inline = _main(b"".join(transcript.lines()))
    return Sample("sub_agent", file, (("recall", shows(ONE, THREE)), ("recall", UNANSWERED)), repetitions=(inline,))


def _recorded(name: str, *recalls: tuple[str, object], remembers: int = 0) -> Sample:
    (path,) = (GOLDEN / name).glob("*.jsonl")
    return Sample(name, SampleFile((FOLDER, path.name), path.read_bytes()), recalls, remembers)  # type: ignore[arg-type]


def _quote(text: str) -> bytes:
    transcript = ClaudeCodeTranscript("77777777-7f9d-4b5c-8f5e-1d6b4a3c2e10", seed="quote")
    transcript.user(f"Look: {text}")
    transcript.agent_text(f"It says {text}")
    transcript.result(transcript.call("Read", {"file_path": text}), text)
    transcript.result(transcript.call("Bash", {"command": text}), [text_block(text)])
    transcript.add("progress", data={"message": {"message": {"content": text}}})
    transcript.add("attachment", attachment={"type": "hook_success", "stdout": text})
    return transcript.to_bytes()


_RECORDED = tuple(
    f"mem_01J8ZQ{end}" for end in ("4T7N9V2B6K3M5X8C0D1F", "5A2C4E6G8J0M2P4R6T8W", "6B3D5F7H9K1N3Q5S7V9X")
)

CASE = ClientCase(
    plugin=PLUGIN,
    samples=(
        _parallel(),
        _sub_agent(),
        _recorded("terminal", ("recall", shows(*_RECORDED)), ("recall", shows(_RECORDED[0])), remembers=1),
        _recorded("large_and_failing", ("build_context", unknown(UnknownReason.SPILLED))),
        _recorded("compaction_manual", *([("recall", shows(*_RECORDED))] * 2)),
    ),
    quote=_quote,
    unheard_of=(UNHEARD_OF, b'{"type":"assistant_v2","message":{"content":[{"type":"text","text":"x"}]}}\n'),
)
