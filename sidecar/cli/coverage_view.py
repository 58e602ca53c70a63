"""How much of each client's sessions could be read, as a person sees it. Gives text, prints nothing."""

from collections.abc import Iterable, Mapping
from typing import Final

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.cli import rendering

_TRANSCRIPT: Final = "transcript"


def rows(clients: Iterable[evidence.ClientCoverage]) -> list[tuple[str, str]]:
    """Return a row for each client, version and channel: its name, and what was read."""
    return [(_name(part), _told(part)) for part in clients]


def warnings(clients: Iterable[evidence.ClientCoverage]) -> list[str]:
    """Return what hints that a client writes in a form that its reader does not know."""
    return [f"{_name(part)}: {warning}" for part in clients for warning in part.warnings]


def reasons(counts: Mapping[str, int]) -> str:
    """Return counts by reason, such as `2 spilled, 1 errored`; the most first."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in ranked)


def _name(part: evidence.ClientCoverage) -> str:
    name = f"{part.client} {part.client_version}".strip()
    return name if part.channel == _TRANSCRIPT else f"{name} ({part.channel})"


def _told(part: evidence.ClientCoverage) -> str:
    read = [rendering.counted(part.files, "file")] if part.files and part.channel == _TRANSCRIPT else []
    if not part.recalls:
        return ", ".join([*read, "no recalls"])
    found = [f"{part.with_memories} showed {rendering.counted(part.shown, 'memory', 'memories')}"]
    if part.nothing_shown:
        found.append(f"{part.nothing_shown} showed nothing")
    if part.cannot_record:
        found.append(f"{part.cannot_record} cannot record")
    if part.unknown:
        found.append(f"unknown: {reasons(part.unknown)}")
    recalls = f"{rendering.counted(part.recalls, 'recall')}: {', '.join(found)}"
    return ", ".join([*read, recalls])
