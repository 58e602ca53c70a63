"""The kinds of records in Codex transcripts, and what their heads say. Every field is optional and may be wrong."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from client_plugins.kit.fields import as_identifier, identifier_field, object_field, text_field
from client_plugins.kit.json_line import JsonObject

SILENT_RECORDS: Final = frozenset(
    {
        *("compacted", "world_state", "token_usage_record", "inter_agent_communication"),
        *("inter_agent_communication_metadata", "dynamic_tools_updated", "security_risk_score", "realtime_item"),
        *("id_allocation",),
    }
)
"""`type` of records that hold no words of the conversation, or copies of them, as `compacted` does."""

SILENT_ITEMS: Final = frozenset(
    {
        *("reasoning", "agent_message", "additional_tools", "tool_search_call", "tool_search_output"),
        *("web_search_call", "image_generation_call", "ghost_snapshot", "compaction", "compaction_summary"),
        *("compaction_trigger", "context_compaction", "configuration_update", "other"),
    }
)
"""`payload.type` of response items of which nothing is taken. What agents write to each other is no recall."""

SILENT_EVENTS: Final = frozenset(
    {
        # Doubles of response items.
        *("user_message", "agent_reasoning", "agent_reasoning_raw_content", "plan_update"),
        *("agent_reasoning_section_break", "exec_command_begin", "exec_command_end", "patch_apply_begin"),
        *("patch_apply_end", "web_search_begin", "web_search_end", "view_image_tool_call", "mcp_tool_call_begin"),
        *("image_generation_begin", "image_generation_end", "dynamic_tool_call_request", "item_started"),
        *("dynamic_tool_call_response", "terminal_interaction", "raw_response_item"),
        # About the session.
        *("token_count", "thread_rolled_back", "thread_settings_applied", "thread_name_updated", "turn_diff"),
        *("thread_goal_updated", "thread_queue_changed", "session_configured", "context_compacted"),
        *("entered_review_mode", "exited_review_mode", "undo_started", "undo_completed", "shutdown_complete"),
        *("error", "warning", "stream_error", "deprecation_notice", "background_event", "model_reroute"),
        *("model_verification", "turn_moderation_metadata", "guardian_assessment", "guardian_warning"),
        *("hook_started", "hook_completed", "environment_connected", "environment_disconnected"),
        *("skills_update_available", "mcp_startup_update", "mcp_startup_complete", "sub_agent_activity"),
        *("collab_agent_spawn_begin", "collab_agent_spawn_end", "collab_agent_interaction_begin"),
        *("collab_agent_interaction_end", "collab_waiting_begin", "collab_waiting_end", "collab_close_begin"),
        *("collab_close_end", "collab_resume_begin", "collab_resume_end"),
    }
)
"""`payload.type` of events of which nothing is taken."""

SILENT_COMPLETED: Final = frozenset(
    {
        *("UserMessage", "Reasoning", "Plan", "HookPrompt", "FunctionCallOutput", "DynamicToolCall"),
        *("CommandExecution", "FileChange", "WebSearch", "ImageView", "ImageGeneration", "Sleep"),
        *("CollabAgentToolCall", "SubAgentActivity", "ContextCompaction", "EnteredReviewMode", "ExitedReviewMode"),
    }
)
"""`payload.item.type` of `item_completed` of which nothing is taken."""

TURN_ENDS: Final = frozenset({"task_complete", "turn_complete", "turn_aborted"})
TURN_BEGINS: Final = frozenset({"task_started", "turn_started"})

# What the client writes as if the user had said it; newer versions say so in `content_item_kinds`.
_CLIENT_TEXT: Final = re.compile(
    r"\s*(?:<([A-Za-z_]+(?: instructions)?)>.*</\1>\s*$|<(?:environment_context|user_instructions|turn_aborted|skill|"
    r"subagent_notification|user_shell_command|permissions instructions|collaboration_mode)\b|"
    r"# AGENTS\.md instructions\b)",
    re.DOTALL | re.IGNORECASE,
)
_MAX_VERSION_CHARACTERS: Final = 40
_ONE_SHOT: Final = "codex_exec"
_SPOKEN: Final = frozenset({"input_text", "output_text", "text"})
_USER_KINDS: Final = ("user.", "unknown")


@dataclass(frozen=True, slots=True)
class Head:
    """What a `session_meta` says of its thread.

    Attributes:
        session: The root thread's id, where a sub-agent's head names it, else the nearest one known.
        agent_id: The thread's id if it is a sub-agent's; empty for a main thread.
        is_one_shot: The program takes one prompt, and ends with the turn.
    """

    thread: str
    session: str
    agent_id: str
    cwd: str
    version: str
    is_one_shot: bool = False


def read_head(payload: JsonObject) -> Head:
    """Return what the payload of a `session_meta` says."""
    thread = identifier_field(payload, "id")
    source = object_field(payload, "source").get("subagent")
    spawn = object_field(source, "thread_spawn") if isinstance(source, Mapping) else {}
    parent = identifier_field(payload, "parent_thread_id") or identifier_field(spawn, "parent_thread_id")
    root = identifier_field(payload, "session_id") or parent or thread
    is_agent = source is not None or text_field(payload, "thread_source") == "subagent" or root != thread
    return Head(
        thread=thread,
        session=root,
        agent_id=thread if is_agent else "",
        cwd=text_field(payload, "cwd"),
        version=identifier_field(payload, "cli_version")[:_MAX_VERSION_CHARACTERS],
        is_one_shot=text_field(payload, "originator") == _ONE_SHOT,
    )


def turn_of(payload: JsonObject) -> str:
    """Return the id of the turn that a record belongs to; empty if it does not say."""
    passed_on = object_field(payload, "internal_chat_message_metadata_passthrough")
    return identifier_field(payload, "turn_id") or identifier_field(passed_on, "turn_id")


def texts_of(content: object) -> Iterator[str]:
    """Give the texts of a message or of an output, which is a string or a list of items; images are left out."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, Mapping) and text_field(item, "type") in _SPOKEN:
                yield text_field(item, "text")


def user_texts_of(payload: JsonObject) -> Iterator[str]:
    """Give the texts of a `user` message that the user wrote; the client writes its own in the same form."""
    kinds = object_field(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    content = payload.get("content")
    known = kinds if isinstance(kinds, list) and isinstance(content, list) and len(kinds) == len(content) else None
    for number, item in enumerate(content if isinstance(content, list) else [content]):
        if known is not None and not str(known[number]).startswith(_USER_KINDS):
            continue
        yield from (
            text for text in texts_of([item] if isinstance(item, Mapping) else item) if not is_client_text(text)
        )


def is_client_text(text: str) -> bool:
    """Tell whether the client wrote this in the user's name: a context, instructions or a notice."""
    return _CLIENT_TEXT.match(text) is not None


def call_identifier(call_id: str, origin: str) -> str:
    """Return what names a call in events; empty if it has no id.

    Some models count their calls anew in each session; their ids mean something only with the thread they come from.
    """
    if not call_id or not _COUNTED.search(call_id):
        return as_identifier(call_id)
    return as_identifier(f"{origin}.{call_id}")


# Ids of the services have 20 characters or more, with chance in them.
_COUNTED: Final = re.compile(r"^.{0,11}$|:\d{1,4}$", re.DOTALL)
