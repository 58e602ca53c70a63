"""What to do next, from how things are. Pure: asks nobody and prints nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sidecar.cli.rendering import counted

MOST_SHOWN: Final = 4


class Running(StrEnum):
    """How the sidecar of a data folder is."""

    FRESH = "fresh"
    """Nothing was ever stored here."""
    STOPPED = "stopped"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class ClientFound:
    """A client on this machine. `title`: its name for a person."""

    name: str
    title: str
    is_connected: bool


@dataclass(frozen=True, slots=True)
class Situation:
    """How things are, as far as it takes to say what to do.

    Attributes:
        clients: Those that the user seems to have.
        problems: How many the sidecar tells of.
        memories: Active ones.
        sessions: Sessions of agents that were seen.
        disputes: Open ones; `misleading` are memories that misled several sessions.
        unembedded: Memories that were given up; `unjudged` are cases that were.
    """

    running: Running
    clients: tuple[ClientFound, ...] = ()
    problems: int = 0
    memories: int = 0
    sessions: int = 0
    disputes: int = 0
    misleading: int = 0
    unembedded: int = 0
    unjudged: int = 0

    @property
    def unconnected(self) -> tuple[ClientFound, ...]:
        """The clients that are not connected."""
        return tuple(client for client in self.clients if not client.is_connected)


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command, and why it is worth typing."""

    command: str
    why: str


def next_steps(now: Situation) -> list[NextStep]:
    """Return what to do next, the most urgent first, at most `MOST_SHOWN`; never empty."""
    if now.running is Running.FRESH:
        demo = NextStep("sidecar demo", "the whole loop on recorded sessions, offline, in under a minute")
        return [demo, _first_of_own(now)]
    if now.running is Running.STOPPED:
        return [
            *_connecting(now),
            NextStep("sidecar start", "or leave it to your agents, which start it by themselves"),
        ]
    return [*_mending(now), *_connecting(now), *_deciding(now), *_looking(now)][:MOST_SHOWN]


def _first_of_own(now: Situation) -> NextStep:
    if now.clients and not now.unconnected:
        return NextStep("sidecar import . --dry-run", "what CLAUDE.md, AGENTS.md and Cursor rules hold already")
    return NextStep("sidecar connect all", "gives your agents this memory; `sidecar disconnect all` undoes it exactly")


def _mending(now: Situation) -> Iterator[NextStep]:
    if now.unembedded:
        what = counted(now.unembedded, "memory", "memories")
        yield NextStep("sidecar doctor --retry-parked", f"{what} could not be embedded and are found by words alone")
    if now.unjudged:
        yield NextStep("sidecar judge --retry", f"{counted(now.unjudged, 'case')} could not be judged")
    if now.problems:
        yield NextStep("sidecar doctor", "looks into what is wrong, and says how to mend it")


def _connecting(now: Situation) -> Iterator[NextStep]:
    names = [client.title for client in now.unconnected]
    if not names:
        return
    one = now.unconnected[0].name if len(names) == 1 else "all"
    yield NextStep(
        f"sidecar connect {one}", f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not connected"
    )


def _deciding(now: Situation) -> Iterator[NextStep]:
    if now.disputes:
        waits = "waits" if now.disputes == 1 else "wait"
        yield NextStep("sidecar disputes", f"{counted(now.disputes, 'dispute')} {waits} for `sidecar resolve`")
    if now.misleading:
        what = counted(now.misleading, "memory", "memories")
        yield NextStep("sidecar review", f"{what} misled more than one session")


def _looking(now: Situation) -> Iterator[NextStep]:
    if not now.memories:
        yield NextStep("sidecar import . --dry-run", "what CLAUDE.md, AGENTS.md and Cursor rules hold already")
        yield NextStep('sidecar remember "…"', "stores a memory")
    if now.sessions:
        yield NextStep("sidecar sessions", "what each session was shown, and used")
        yield NextStep("sidecar insights", "how often memories helped")
    elif now.clients:
        yield NextStep("sidecar ingest", "reads the sessions from before; new ones are read by themselves")
    elif now.memories:
        yield NextStep('sidecar recall "…"', "finds a memory")
