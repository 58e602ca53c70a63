"""One agent session as a person sees it: its recalls, what each showed, and what of that was used. Shows no query.

Queries are not stored, so that there is none to show.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sidecar.api.plain import short_name
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli.output import Output
from sidecar.errors import InvalidInputError, MemoryNotFoundError, NotFoundError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_SHORTEST_ID: Final = 8
_SEARCHED_SESSIONS: Final = 1000
_PREVIEW_CHARACTERS: Final = 100
_NAMED_SESSIONS: Final = 3


def short_ids(sessions: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each id, of one length, so long that it tells them apart; 8 characters at least."""
    whole = set(sessions)
    length = _SHORTEST_ID
    while len({session[:length] for session in whole}) < len(whole):
        length += 1
    return {session: session[:length] for session in whole}


def find_session(sidecar: "Sidecar", beginning: str) -> evidence.SessionThread:
    """Return the session whose id begins like this.

    Raises:
        NotFoundError: There is none.
        InvalidInputError: There are several.
    """
    answer = sidecar.list_sessions(evidence.ListSessionsRequest(limit=_SEARCHED_SESSIONS))
    threads = [coverage.thread for coverage in answer.sessions if coverage.thread.session.startswith(beginning)]
    found = {(thread.client, thread.session): thread for thread in threads}
    whole = [thread for thread in found.values() if thread.session == beginning]
    if not found:
        raise NotFoundError(f"no session has an id that begins with {beginning!r}; `sidecar sessions` lists them")
    if len(found) > 1 and len(whole) != 1:
        named = ", ".join(session for _, session in sorted(found)[:_NAMED_SESSIONS])
        raise InvalidInputError("ID", beginning, f"more of the id, since {len(found)} begin with it: {named}")
    return whole[0] if whole else next(iter(found.values()))


def show_session(
    output: Output, sidecar: "Sidecar", thread: evidence.SessionThread, recalls: Sequence[evidence.SessionRecall]
) -> None:
    """Show each recall of the session with the memories that it showed."""
    texts = first_words(output, sidecar, (each for recall in recalls for each in recall.shown.ids.memory_ids))
    output.line(f"{thread.client}, session {thread.session}, project {thread.project or '-'}", style="bold")
    for recall in recalls:
        at = recall.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M:%S")
        agent = f", agent {recall.agent_id}" if recall.agent_id else ""
        output.line(f"{at}  {recall.tool}{agent}: {_told(recall)}")
        used = set(recall.used_memory_ids)
        rows = [
            ("used" if memory_id in used else "-", memory_id, texts[memory_id])
            for memory_id in recall.shown.ids.memory_ids
        ]
        output.entries(("use", "memory", "its text"), rows)


def _told(recall: evidence.SessionRecall) -> str:
    state = recall.shown.WhichOneof("state")
    if state == "ids":
        return f"showed {len(recall.shown.ids.memory_ids)}, used {len(recall.used_memory_ids)}"
    if state == "nothing":
        return "showed nothing"
    if state == "cannot_record":
        return "what it showed is not recorded by this client"
    reason = short_name(evidence.UnknownReason.DESCRIPTOR, recall.shown.unknown.reason)
    return f"what it showed could not be read: {reason or 'no reason told'}"


def first_words(output: Output, sidecar: "Sidecar", memory_ids: Iterable[str]) -> dict[str, str]:
    """Return the beginning of each memory's text by its id; for a program all of it."""
    return {memory_id: _text(output, sidecar, memory_id) for memory_id in set(memory_ids)}


def _text(output: Output, sidecar: "Sidecar", memory_id: str) -> str:
    try:
        answer = sidecar.get_memory(service.GetMemoryRequest(memory_id=memory_id))
    except MemoryNotFoundError:
        return "(purged)"
    return output.preview(answer.memory.content, limit=_PREVIEW_CHARACTERS)
