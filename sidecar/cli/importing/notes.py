"""Shows the plan of an import of notes, and stores it, for the command `import`."""

from typing import TYPE_CHECKING, Final

from sidecar.api.plain import JsonValue
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import values
from sidecar.cli.importing.plan import ImportReport, Stored, carry_out
from sidecar.cli.invocation import Invocation
from sidecar.cli.output import Output
from sidecar.domain.display import one_line
from sidecar.domain.importing import ImportedMemory, ImportPlan, SourceFormat, SourcePlace

if TYPE_CHECKING:
    from sidecar.client import Sidecar

_PREVIEW_CHARACTERS: Final = 120
_MOST_SHOWN: Final = 20
_INSTRUCTION_FILES: Final = ("CLAUDE.md", "CLAUDE.local.md")


def show_plan(output: Output, plan: ImportPlan) -> bool:
    """Tell what would be stored and what is left, and why."""
    if output.is_json:
        memories: list[JsonValue] = [
            {"place": _at(memory.place), "type": str(memory.memory_type), "content": memory.content}
            for memory in plan.memories
        ]
        output.document({"dry_run": True, **_counts(plan), "memories": memories, "skipped": _skipped(plan)})
        return True
    # Lines and no table: a long path would leave no room for the memory.
    for memory in plan.memories[:_MOST_SHOWN]:
        output.line(f"{memory.memory_type}  {_at(memory.place)}", style="bold")
        output.line(one_line(memory.content, limit=_PREVIEW_CHARACTERS), indent=3)
    if len(plan.memories) > _MOST_SHOWN:
        output.line(f"and {len(plan.memories) - _MOST_SHOWN} more")
    _show_left(output, plan)
    output.note(f"Nothing was stored. Without `--dry-run` these {len(plan.memories)} memories are.")
    return True


def store_plan(call: Invocation, plan: ImportPlan, *, namespace: str) -> bool:
    """Store what is planned, tell what became of it, and return whether the sidecar took all of it.

    Args:
        namespace: Of memories that name none; empty means the project one works in.
    """
    if plan.memories:
        with call.sidecar() as sidecar, call.output.counting("Storing …") as count:
            done = 0

            def remember(memory: ImportedMemory) -> Stored:
                nonlocal done
                stored = _remember(sidecar, memory, namespace)
                done += 1
                count(done, len(plan.memories))
                return stored

            report = carry_out(plan, remember)
    else:
        report = ImportReport(plan, 0, 0, ())
    if call.output.is_json:
        refused: list[JsonValue] = [
            {"place": _at(one.place), "reason": one.reason, "message": one.message} for one in report.refused
        ]
        told: dict[str, JsonValue] = {"stored": report.stored, "known_already": report.duplicates}
        call.output.document({**told, **_counts(plan), "refused": refused, "skipped": _skipped(plan)})
    else:
        call.output.line(f"{report.stored} memories stored, {report.duplicates} were known already")
        for one in report.refused:
            call.output.warn(f"Not taken: {_at(one.place)}: {one.message}")
        _show_left(call.output, plan)
    return not report.refused


def _remember(sidecar: "Sidecar", memory: ImportedMemory, namespace: str) -> Stored:
    request = service.RememberRequest(
        content=memory.content,
        memory_type=values.memory_type(memory.memory_type),
        namespace=memory.namespace or namespace,
        importance=memory.importance,
        provenance=_provenance(memory),
    )
    # JSON values, which is what a Struct takes; the stubs cannot know.
    request.metadata.update(memory.metadata)  # type: ignore[arg-type]
    answer = sidecar.remember(request)
    return Stored(answer.memory_id, answer.deduplicated)


def _provenance(memory: ImportedMemory) -> pb.Provenance.ValueType:
    """Return who the words come from: Claude Code writes its notes itself, the other files are written by people."""
    is_notes = memory.format is SourceFormat.CLAUDE_MEMORY and not memory.place.path.endswith(_INSTRUCTION_FILES)
    return pb.PROVENANCE_AGENT if is_notes else pb.PROVENANCE_USER


def _show_left(output: Output, plan: ImportPlan) -> None:
    if not plan.files:
        output.note("There is no file with notes that is known here.")
    for reason, count in plan.counts_by_reason.items():
        first = next(part for part in plan.skipped if str(part.reason) == reason)
        detail = f", {first.detail}" if first.detail else ""
        output.note(f"Left: {count} {reason}, such as {_at(first.place)}{detail}")


def _counts(plan: ImportPlan) -> dict[str, JsonValue]:
    return {
        "files": list(plan.files),
        "counts_by_type": dict(plan.counts_by_type),
        "counts_by_reason": dict(plan.counts_by_reason),
    }


def _skipped(plan: ImportPlan) -> list[JsonValue]:
    return [{"place": _at(part.place), "reason": str(part.reason), "detail": part.detail} for part in plan.skipped]


def _at(place: SourcePlace) -> str:
    return f"{place.path}:{place.line}" if place.line else place.path
