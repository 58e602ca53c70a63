"""Payloads of the three clients' hooks, made by hand after what the clients send; the words in them are our own."""

import json
from collections.abc import Mapping
from typing import Final

Payload = Mapping[str, object]

SESSION: Final = "3f0c7c1e-52a7-4a53-9f83-0e1f3d5b7a90"
SECRET: Final = "a-word-from-inside-a-file"
MEMORY_ID: Final = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8W"
OTHER_ID: Final = "mem_01J8ZQ5A2C4E6G8J0M2P4R6T8X"

_PATCH: Final = f"""*** Begin Patch
*** Update File: src/ports.py
@@
-+*** Add File: not/a/file.py
+{SECRET}
*** Add File: /home/dev/harbour/new.py
+{SECRET}
*** Delete File: old.py
*** End Patch
"""


def claude_code(event: str, *, cwd: str = "/home/dev/harbour", **more: object) -> Payload:
    """Return a payload of Claude Code."""
    folder = "/home/dev/.claude/projects/-home-dev-harbour"
    common = {
        "session_id": SESSION,
        "transcript_path": f"{folder}/{SESSION}.jsonl",
        "cwd": cwd,
        "hook_event_name": event,
    }
    own: dict[str, Payload] = {
        "SessionStart": {"source": "startup"},
        "UserPromptSubmit": {"prompt": "When do deploys go out?", "permission_mode": "default", "prompt_id": "p1"},
        "PostToolUse": {
            "tool_name": "Edit",
            "tool_input": {"file_path": "/home/dev/harbour/src/ports.py", "old_string": SECRET, "new_string": SECRET},
            "tool_response": {"filePath": "/home/dev/harbour/src/ports.py", "originalFile": SECRET},
            "tool_use_id": "toolu_1",
            "duration_ms": 4,
            "effort": "high",
        },
        "Stop": {"stop_hook_active": False, "last_assistant_message": SECRET, "prompt_id": "p1"},
        "SubagentStop": {
            "agent_id": "a0123456789abcdef",
            "agent_type": "scout",
            "agent_transcript_path": f"{folder}/{SESSION}/subagents/agent-a01.jsonl",
        },
        "SessionEnd": {"reason": "other"},
    }
    return {**common, **own[event], **more}


def codex(event: str, *, cwd: str = "/home/dev/harbour", **more: object) -> Payload:
    """Return a payload of Codex."""
    folder = "/home/dev/.codex/sessions/2026/11/30"
    common = {
        "session_id": SESSION,
        "transcript_path": f"{folder}/rollout-2026-11-30T18-13-19-{SESSION}.jsonl",
        "cwd": cwd,
        "hook_event_name": event,
    }
    turn = {"turn_id": "t1", "model": "gpt-6.2-sol", "permission_mode": "bypassPermissions"}
    own: dict[str, Payload] = {
        "SessionStart": {"source": "startup", "model": "gpt-6.2-sol"},
        "UserPromptSubmit": {"prompt": "When do deploys go out?", **turn},
        "PostToolUse": {"tool_name": "apply_patch", "tool_input": {"command": _PATCH}, "tool_response": "ok", **turn},
        "Stop": {"stop_hook_active": False, "last_assistant_message": SECRET, **turn},
        "SubagentStop": {
            "agent_id": "scout",
            "agent_transcript_path": f"{folder}/rollout-2026-11-30T18-13-20-{SESSION}.jsonl",
            **turn,
        },
        "SessionEnd": {"reason": "other"},
    }
    return {**common, **own[event], **more}


def cursor(event: str, **more: object) -> Payload:
    """Return a payload of Cursor."""
    common = {
        "conversation_id": SESSION,
        "session_id": SESSION,
        "generation_id": "g-1",
        "model": "composer-2",
        "hook_event_name": event,
        "cursor_version": "2.6.11",
        "workspace_roots": ["/home/dev/harbour"],
        "user_email": None,
        "transcript_path": None,
    }
    path = f"/home/dev/.cursor/projects/home-dev-harbour/agent-transcripts/{SESSION}/{SESSION}.jsonl"
    own: dict[str, Payload] = {
        "sessionStart": {"composer_mode": "agent"},
        "postToolUse": {
            "tool_name": "MCP:recall",
            "tool_input": {"query": "deploy window", "n_results": 2},
            "tool_output": recall_result(MEMORY_ID),
            "tool_use_id": "call-7-1\nfc_0",
            "duration": 12.5,
            "transcript_path": path,
        },
        "afterMCPExecution": {
            "tool_name": "recall",
            "tool_input": '{"n_results": 2, "query": "deploy window"}',
            "result_json": recall_result(MEMORY_ID),
        },
        "afterAgentResponse": {"text": "Deploys go out on Tuesday."},
        "afterFileEdit": {
            "file_path": "/home/dev/harbour/src/ports.py",
            "edits": [{"old_string": SECRET, "new_string": SECRET}],
        },
        "stop": {"status": "completed", "loop_count": 0, "transcript_path": path},
        "sessionEnd": {"reason": "completed", "duration_ms": 5, "transcript_path": path},
    }
    return {**common, **own[event], **more}


def recall_result(*memory_ids: str) -> str:
    """Return what our `recall` answers, as Cursor hands it on."""
    found = {"recall_id": "rec_01J8ZQ5A2C4E6G8J0M2P4R6T8W", "memories": [{"id": one} for one in memory_ids]}
    return json.dumps({"content": [{"type": "text", "text": json.dumps(found)}], "isError": False})


MAKERS: Final = {"claude-code": claude_code, "codex": codex, "cursor": cursor}
