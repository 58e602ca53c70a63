"""Commands that change what is stored: remember, forget, restore."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sidecar.api.plain import plain
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import completing, rendering, values
from sidecar.cli.exit_codes import ExitCode
from sidecar.cli.invocation import HomeOption, Invocation, JsonOption, project_here
from sidecar.cli.output import Output
from sidecar.cli.typed_text import json_object, text_of
from sidecar.domain.display import one_line
from sidecar.domain.ids import is_memory_id
from sidecar.domain.memory import MemoryType, Provenance
from sidecar.domain.namespace import project_namespace
from sidecar.errors import InvalidInputError

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_PREVIEW_CHARACTERS = 100
_WHY_SKIPPED = {
    "golden_rule": "it is a golden rule; `--force` forgets it too",
    "already_forgotten": "it is forgotten already",
    "not_found": "there is no such memory",
}


ImportanceOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--importance",
        "-i",
        min=0.0,
        max=1.0,
        help="How much it matters.",
        show_default="setting remember_importance",
    ),
]

ConfidenceOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--confidence", min=0.0, max=1.0, help="How sure it is.", show_default="setting remember_confidence"),
]

StoreNamespaceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="`global`, or a project's name.",
        show_default="this folder's project",
        autocompletion=completing.namespaces,
    ),
]
SupersedesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--supersedes", metavar="ID", help="A memory that this one replaces.", autocompletion=completing.memory_ids
    ),
]
DerivedFromOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--derived-from",
        metavar="ID",
        help="A memory that this one was concluded from.",
        autocompletion=completing.memory_ids,
    ),
]
RelatesToOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--relates-to", metavar="ID", help="A memory that has to do with it.", autocompletion=completing.memory_ids
    ),
]
ForgetArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        help="Ids, or words that find the memories.", metavar="ID…|QUERY…", autocompletion=completing.memory_ids
    ),
]


def remember(
    context: typer.Context,
    *,
    text: Annotated[list[str], typer.Argument(help="What to remember; `-` reads it from stdin.", metavar="TEXT…")],
    kind: Annotated[
        MemoryType | None,
        typer.Option("--type", "-t", help="What kind of thing it is.", show_default="setting remember_type"),
    ] = None,
    namespace: StoreNamespaceOption = "",
    importance: ImportanceOption = None,
    confidence: ConfidenceOption = None,
    metadata: Annotated[
        str, typer.Option("--metadata", metavar="JSON", help="A JSON object of what belongs to it, at most 16 KiB.")
    ] = "",
    supersedes: SupersedesOption = None,
    derived_from: DerivedFromOption = None,
    relates_to: RelatesToOption = None,
    source: Annotated[Provenance, typer.Option("--source", help="Who says it.")] = Provenance.USER,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it can be found by its meaning.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Store a memory. Secrets in it are taken out first."""
    call = Invocation.of(context, home, is_json=as_json)
    request = service.RememberRequest(
        content=text_of(text, what="content"),
        memory_type=values.memory_type(kind) if kind else pb.MEMORY_TYPE_UNSPECIFIED,
        namespace=values.namespace(namespace),
        importance=importance,
        confidence=confidence,
        links=values.links_of(supersedes=supersedes, derived_from=derived_from, relates_to=relates_to),
        provenance=values.provenance(source),
        wait_for_index=wait,
    )
    if metadata:
        request.metadata.update(json_object(metadata, what="--metadata"))
    with call.sidecar() as sidecar:
        answer = sidecar.remember(request)
    if call.output.is_json:
        call.output.document(plain(answer))
        return
    _show_stored(call.output, answer, values.namespace(namespace) or project_namespace(project_here()))
    if wait and not answer.indexed:
        call.output.note("It is stored, but not yet found by its meaning; `sidecar status` says what it waits for.")


def _show_stored(output: Output, answer: service.RememberResponse, namespace: str) -> None:
    output.line(answer.memory_id)
    output.note("It was known already; nothing was changed." if answer.deduplicated else f"Stored in {namespace}.")
    if answer.redactions:
        output.note(f"Secrets were taken out of the text: {rendering.redactions(list(answer.redactions))}.")


def forget(
    context: typer.Context,
    *,
    what: ForgetArgument,
    namespace: values.ReadNamespaceOption = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-l", min=1, max=100, help="Most memories, for words.", show_default="setting default_results"
        ),
    ] = None,
    similarity_floor: Annotated[
        float | None,
        typer.Option(
            "--similarity-floor",
            min=0.0,
            max=1.0,
            help="Lowest raw cosine, for words.",
            show_default="setting forget_similarity_floor",
        ),
    ] = None,
    purge: Annotated[bool, typer.Option("--purge", help="Remove every byte; this cannot be undone.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Golden rules, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget memories named by id, or those that words find. `sidecar restore` undoes it, unless purged.

    Words, and `--purge`, first show what would be forgotten and ask; without a terminal only `--yes` goes on.
    """
    call = Invocation.of(context, home, is_json=as_json)
    words, ids = " ".join(what), _ids(what)
    common = service.ForgetMemoriesRequest(force=force, purge=purge, confirm=False)
    with call.sidecar() as sidecar:
        if ids:
            preview = _previewed(sidecar, ids, common)
        else:
            common.MergeFrom(
                service.ForgetMemoriesRequest(
                    query=words,
                    namespace=values.namespace(namespace),
                    n_results=limit or 0,
                    similarity_floor=similarity_floor,
                )
            )
            preview = sidecar.forget_memories(common)
        needs_consent = (purge or not ids) and not yes
        if needs_consent and preview.deleted_ids and not _consents(call.output, preview, is_purge=purge):
            return
        answer = _forget_each(sidecar, preview, is_forced=force, is_purge=purge) if preview.deleted_ids else preview
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        _show_forgotten(call.output, answer, is_purge=purge)
    if not answer.deleted_ids:
        raise typer.Exit(ExitCode.CONFLICT if answer.skipped else ExitCode.NOT_FOUND)


def restore(
    context: typer.Context,
    *,
    memory_id: Annotated[
        str,
        typer.Argument(
            help="Id of the forgotten memory, `mem_…`.", metavar="ID", autocompletion=completing.forgotten_ids
        ),
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a forgotten memory back."""
    call = Invocation.of(context, home, is_json=as_json)
    with call.sidecar() as sidecar:
        answer = sidecar.restore_memory(service.RestoreMemoryRequest(memory_id=values.memory_id(memory_id)))
    if call.output.is_json:
        call.output.document(plain(answer))
    else:
        state = rendering.state_name(answer.memory)
        call.output.line(f"{answer.memory.id} is {state} again: {one_line(answer.memory.content, limit=200)}")


def _ids(given: list[str]) -> list[str]:
    """Return the ids if nothing else was given, each once; none if words were.

    Raises:
        InvalidInputError: Ids and words were given: whether to search for them or to forget them is not clear.
    """
    words = [values.memory_id(word) for word in " ".join(given).split()]
    ids = list(dict.fromkeys(filter(is_memory_id, words)))
    if ids and not all(map(is_memory_id, words)):
        raise InvalidInputError("what to forget", " ".join(given), "either ids or words that find memories, not both")
    return ids


def _previewed(
    sidecar: "Sidecar", ids: list[str], common: service.ForgetMemoriesRequest
) -> service.ForgetMemoriesResponse:
    """Return what would be forgotten; nothing is if one of them is not there."""
    preview = service.ForgetMemoriesResponse(preview=True)
    for memory_id in ids:
        request = service.ForgetMemoriesRequest(memory_id=memory_id)
        request.MergeFrom(common)
        preview.MergeFrom(sidecar.forget_memories(request))
    return preview


def _consents(output: Output, preview: service.ForgetMemoriesResponse, *, is_purge: bool) -> bool:
    """Show what would be forgotten and return whether to go on."""
    if output.is_json:
        output.document(plain(preview))
        return False
    rows = [
        (memory.id, rendering.type_name(memory), output.preview(memory.content, limit=_PREVIEW_CHARACTERS))
        for memory in preview.memories
    ]
    output.entries(("id", "type", "memory"), rows)
    _show_skipped(output, preview)
    what = "Purge" if is_purge else "Forget"
    if is_purge:
        output.warn("Purging removes text, vector and every other byte. It cannot be undone.")
    if not output.can_ask:
        output.note(f"Nothing was changed. Add `--yes` to {what.lower()} {_memories(len(rows))}.")
        return False
    if typer.confirm(f"{what} {_memories(len(rows))}?", err=True):
        return True
    output.note("Nothing was changed.")
    return False


def _forget_each(
    sidecar: "Sidecar", preview: service.ForgetMemoriesResponse, *, is_forced: bool, is_purge: bool
) -> service.ForgetMemoriesResponse:
    """Forget exactly the memories that were shown; the same words might find others by now."""
    outcome = service.ForgetMemoriesResponse(skipped=preview.skipped)
    for memory_id in preview.deleted_ids:
        answer = sidecar.forget_memories(
            service.ForgetMemoriesRequest(memory_id=memory_id, force=is_forced, purge=is_purge, confirm=True)
        )
        outcome.deleted_ids.extend(answer.deleted_ids)
        outcome.skipped.extend(answer.skipped)
        outcome.memories.extend(answer.memories)
    outcome.count = len(outcome.deleted_ids)
    return outcome


def _show_forgotten(output: Output, answer: service.ForgetMemoriesResponse, *, is_purge: bool) -> None:
    for memory_id in answer.deleted_ids:
        output.line(f"{'Purged' if is_purge else 'Forgotten'}: {memory_id}")
        if not is_purge:
            output.line(f"undo: sidecar restore {memory_id}", indent=3)
    _show_skipped(output, answer)
    if not answer.deleted_ids and not answer.skipped:
        output.note("No memory is near enough to that; nothing was changed. A lower `--similarity-floor` finds more.")


def _show_skipped(output: Output, answer: service.ForgetMemoriesResponse) -> None:
    for skipped in answer.skipped:
        output.note(f"Left alone: {skipped.memory_id}, {_WHY_SKIPPED.get(skipped.reason, skipped.reason)}")


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"
