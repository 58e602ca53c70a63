"""What a hook wants of the sidecar, the same for all clients. Values only.

They are named tuples rather than dataclasses, whose import costs a third of what a hook has.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from client_plugins.hooks.payload import JsonObject


class Session(NamedTuple):
    """Whose hook it is. `session` and `cwd` are empty if the client does not say."""

    client: str
    session: str
    cwd: str


class Briefing(NamedTuple):
    """Tell the agent what it should know.

    Attributes:
        event: As the client names it; part of the answer.
        prompt: What is relevant to it; empty for the essentials of the project.
    """

    event: str
    prompt: str = ""


class FileTouched(NamedTuple):
    """Note that a file was changed. `action` is an action of the contract, without its prefix; never what is in it."""

    path: str
    action: str
    project_root: str


class ReadTranscript(NamedTuple):
    """Read this transcript now."""

    path: str


class OwnToolAnswered(NamedTuple):
    """Note what one of our own tools showed.

    Attributes:
        call_id: The same for the same call, from whichever hook.
        tool: Our name of it: `recall`, `build_context` or `remember`.
        memory_ids: In the order of the answer.
        is_error: Whether the call failed; then it is not known what was shown.
    """

    call_id: str
    tool: str
    memory_ids: tuple[str, ...]
    is_error: bool


class AgentSaid(NamedTuple):
    """Note what the agent said, for the judge."""

    event_id: str
    text: str


class SessionEnded(NamedTuple):
    """Say that the session ended. `client` is the one under which the sidecar knows it."""

    client: str


Wish: TypeAlias = Briefing | FileTouched | ReadTranscript | OwnToolAnswered | AgentSaid | SessionEnded


class Hook(NamedTuple):
    """One hook as its client called it. `is_start` is whether a session begins with it."""

    session: Session
    wishes: tuple[Wish, ...]
    is_start: bool = False


class HookClient(NamedTuple):
    """One client's hooks.

    Attributes:
        read: Gives what a payload says; None if there is nothing to do, or it is another client's.
        framed: Puts a briefing into the form in which the client takes it from this event.
        max_briefing_bytes: A longer one would be moved to a file, or be refused, by the client.
    """

    read: Callable[[JsonObject], Hook | None]
    framed: Callable[[str, str], JsonObject]
    max_briefing_bytes: int
