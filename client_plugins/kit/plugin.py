"""What a client's transcript plugin is, and how plugins are found. Third parties ship theirs as an entry point.

A plugin says where transcripts lie, which files are some, and what one line means after those before it. It opens no
files and keeps nothing itself: reading, resuming, sending and carrying its state is the kit's job.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from client_plugins.kit.project import ProjectFinder
from sidecar.domain.evidence import EvidenceEvent
from sidecar.errors import InvalidInputError

ENTRY_POINT_GROUP: Final = "memory_sidecar.clients"
# Known without installed metadata too, so that a source tree works.
_BUILT_IN: Final = {
    "claude-code": "client_plugins.claude_code:PLUGIN",
    "codex": "client_plugins.codex:PLUGIN",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TranscriptContext:
    """What is known of a line from the path of its file alone.

    Attributes:
        session: The client's session id as the path tells it; the record's own goes before it.
        agent_id: Of the sub-agent whose file it is; empty for a session's main file.
    """

    session: str
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class LineReading:
    """What one line of a transcript says.

    Attributes:
        events: In the order of the line.
        skipped: Why nothing, or not everything, was taken from it, as a short fixed name; None if all was.
        unrecognised: The name of a kind of record that this reader does not know; empty if it knew everything.
        state: What the reader wants to know again at the next line, in a form of its own; at most
            `MAX_READER_STATE_BYTES`. Larger ones are dropped and counted.
    """

    events: tuple[EvidenceEvent, ...] = ()
    skipped: str | None = None
    unrecognised: str = ""
    state: str = ""

    @property
    def recognised(self) -> bool:
        """Whether the reader knew every kind of record on the line."""
        return not self.unrecognised


@runtime_checkable
class ClientPlugin(Protocol):
    """One client's transcripts. No method may keep anything, so that a restart between two lines is unseen."""

    @property
    def name(self) -> str:
        """The client's name, lower case with hyphens; part of every cursor and event."""
        ...

    @property
    def parser_version(self) -> int:
        """Raised when lines are read in another way: files are then read again, and known events change nothing."""
        ...

    def roots(self, environment: Mapping[str, str]) -> Sequence[Path]:
        """Return the folders below which transcripts lie, whether or not they exist yet."""
        ...

    def transcript_at(self, parts: Sequence[str]) -> TranscriptContext | None:
        """Tell whether a file is a transcript, from its path below the root; None if it is none."""
        ...

    def may_hold_transcripts(self, parts: Sequence[str]) -> bool:
        """Tell whether a folder, given by its path below the root, is worth looking into."""
        ...

    def read_line(self, line: bytes, context: TranscriptContext, state: str, project_of: ProjectFinder) -> LineReading:
        """Return what a line says; MUST depend on nothing else, and MUST NOT fail whatever the bytes are.

        Args:
            state: `LineReading.state` of the line before; empty at the beginning of a file, also when it is read anew.
                It is kept with the cursor, so it may come from an earlier process.
        """
        ...


def installed_plugins() -> dict[str, ClientPlugin]:
    """Return the plugins that are there, by name. One that cannot be loaded is logged and left out."""
    plugins: dict[str, ClientPlugin] = {}
    for name, target in _targets().items():
        plugin = _load(name, target)
        if plugin is not None:
            plugins[name] = plugin
    return plugins


def select_plugins(names: Iterable[str]) -> list[ClientPlugin]:
    """Return the plugins with these names, or all of them if no name is given.

    Raises:
        InvalidInputError: If there is no plugin of a name.
    """
    plugins = installed_plugins()
    wanted = list(dict.fromkeys(names)) or list(plugins)
    for name in wanted:
        if name not in plugins:
            raise InvalidInputError("client", name, f"one of {', '.join(sorted(plugins))}")
    return [plugins[name] for name in wanted]


def _targets() -> dict[str, str]:
    """Return where each plugin is; an installed one cannot take the place of ours."""
    installed = {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}
    return {**installed, **_BUILT_IN}


def _load(name: str, target: str) -> ClientPlugin | None:
    module, _, attribute = target.partition(":")
    try:
        plugin = getattr(import_module(module), attribute)
    except Exception:  # Code of others: whatever it does on import must not stop the other clients.
        log.exception("client plugin cannot be loaded", extra={"client": name})
        return None
    if not isinstance(plugin, ClientPlugin):
        log.error("client plugin lacks methods of ClientPlugin", extra={"client": name})
        return None
    if plugin.name != name:
        # Its cursors and events would be taken for those of another client.
        log.error("client plugin has another name than its entry point", extra={"client": name})
        return None
    return plugin
