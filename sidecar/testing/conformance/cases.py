"""What an author of a client plugin gives to the conformance suite: transcripts, and what is to be found in them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from client_plugins.kit.plugin import ClientPlugin
from sidecar.domain.evidence import Shown, ShownState, UnknownReason

CANNOT_RECORD: Final = Shown(ShownState.CANNOT_RECORD)
NOTHING: Final = Shown(ShownState.NOTHING)
UNANSWERED: Final = None
"""In place of what a recall showed: no result was read."""

UNHEARD_OF: Final = b'{"type":"conformance_unheard_of","role":"conformance_unheard_of","payload":{"a":[1,{"b":"c"}]}}\n'
"""A record of a kind that no client writes, for transcripts of JSON lines."""


def shows(*memory_ids: str) -> Shown:
    """Return that these memories were shown, in this order."""
    return Shown(ShownState.IDS, memory_ids)


def unknown(reason: UnknownReason) -> Shown:
    """Return that it is not known what was shown."""
    return Shown(ShownState.UNKNOWN, reason=reason)


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One file: its path below the client's root, in parts, and its bytes."""

    parts: tuple[str, ...]
    content: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """A transcript whose content is known.

    Attributes:
        name: For the check's name.
        file: The transcript; whole lines.
        recalls: Its recalls in the order of their calls: our name of the tool, and what was shown.
        remembers: How many calls of `remember` it has.
        texts: What agent and user said, in the order of the file; None if that need not be checked.
        reordered: Other orders of the same lines, such as results of parallel calls; they must read the same.
        repetitions: Files that hold nothing new: forks, moved files, and the same file with parts written again.
    """

    name: str
    file: SampleFile
    recalls: tuple[tuple[str, Shown | None], ...]
    remembers: int = 0
    texts: tuple[str, ...] | None = None
    reordered: tuple[bytes, ...] = ()
    repetitions: tuple[SampleFile, ...] = ()


@dataclass(frozen=True)
class ClientCase:
    """A plugin and what it is checked with.

    Attributes:
        samples: One at least, and one at least with a recall.
        quote: Returns whole lines in which user, agent and results of other tools say a text, as the client would write
            it; our tools are not called in them.
        unheard_of: Records of kinds that the client does not write; none for a form that has no kinds.
    """

    plugin: ClientPlugin
    samples: tuple[Sample, ...]
    quote: Callable[[str], bytes]
    unheard_of: tuple[bytes, ...] = field(default=(UNHEARD_OF,))
