"""Looks for what may be wrong with a data folder and its sidecar, and says for each finding how to mend it.

Starts nothing and changes nothing but one throw-away memory, which it purges again.
"""

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sidecar import __version__
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import maintenance_service_pb2 as maintenance
from sidecar.api.v1 import memory_service_pb2 as service
from sidecar.cli import rendering
from sidecar.cli.findings import Finding, Verdict
from sidecar.cli.stopped import check_stopped, rescue
from sidecar.errors import SidecarError, SidecarNotRunningError, StorageCorruptError, UntrustedPathError

if TYPE_CHECKING:
    from sidecar.client import DataFolder, Sidecar

TRIAL_NAMESPACE: Final = "project:sidecar-doctor"
"""Where the throw-away memory lies while it exists."""

_RETRY: Final = "--retry-parked"
_LOW_SPACE_BYTES: Final = 500 * 2**20
_GROUP_AND_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def check_folder(folder: "DataFolder") -> Iterator[Finding]:
    """Look at the data folder itself: there, ours alone."""
    home = folder.home
    if not home.exists():
        yield Finding("folder", Verdict.GOOD, f"{home} is not there yet; the first start makes it")
        return
    try:
        folder.check_purpose()
    except UntrustedPathError as error:
        yield Finding("folder", Verdict.BAD, error.message, "see the message; nothing in it was changed")
        return
    open_paths = [path for path in (home, *_private_files(folder)) if _is_open_to_others(path)]
    for path in open_paths:
        mode = "700" if path.is_dir() else "600"
        yield Finding("folder", Verdict.BAD, f"others may read or change {path}", f"run `chmod {mode} {path}`")
    if not open_paths:
        yield Finding("folder", Verdict.GOOD, f"{home} is ours alone")


def check_variables() -> Iterator[Finding]:
    """Look for variables that are meant as settings and are none."""
    from sidecar.config import unknown_variables  # noqa: PLC0415

    unknown = rendering.unknown_variables(unknown_variables(os.environ))
    if unknown:
        yield Finding("settings", Verdict.DOUBTFUL, unknown, "correct the name or unset it")


def check_status(answer: admin.GetStatusResponse) -> Iterator[Finding]:
    """Look at what the sidecar tells about itself."""
    if answer.version == __version__:
        yield Finding("version", Verdict.GOOD, f"{answer.version}, as this command")
    else:
        told = f"the sidecar is {answer.version}, this command {__version__}"
        yield Finding("version", Verdict.DOUBTFUL, told, "run `sidecar restart`")
    # What was given up is told below with the reasons, and so is what is the matter with the language model.
    told_below = [_RETRY] if answer.queue.parked else []
    told_below += [answer.language_model.problem] if answer.language_model.problem else []
    for problem in (each for each in answer.problems if not any(text in each for text in told_below)):
        yield Finding("sidecar", Verdict.DOUBTFUL, problem, "see the text; `sidecar status` shows every part")
    yield from _check_language_model(answer.language_model)
    queue = answer.queue
    if queue.parked:
        reasons = sorted({job.reason for job in queue.parked_jobs}) or ["no reason told"]
        told = f"{rendering.counted(queue.parked, 'memory', 'memories')} without a vector: {'; '.join(reasons)}"
        yield Finding("queue", Verdict.DOUBTFUL, told, f"found by words only; `sidecar doctor {_RETRY}` tries again")
    else:
        yield Finding("queue", Verdict.GOOD, f"{queue.pending} waiting, none given up")
    free = answer.storage.free_bytes
    if free < _LOW_SPACE_BYTES:
        told = f"{free // 2**20} MiB free where the data lies"
        yield Finding("disk", Verdict.DOUBTFUL, told, "free some space; without any, nothing can be stored")
    else:
        yield Finding("disk", Verdict.GOOD, f"{free // 2**20} MiB free")


def _check_language_model(model: admin.LanguageModelStatus) -> Iterator[Finding]:
    """Look at whom texts are sent to, and whether that works; nothing is said of one that is off."""
    if not model.host:
        return
    told = rendering.language_model(model)
    if model.state == admin.PART_STATE_READY:
        yield Finding("language model", Verdict.GOOD, told)
    else:
        remedy = "all else works without it; correct the settings `llm_…` and restart, or see to the model"
        yield Finding("language model", Verdict.DOUBTFUL, told, remedy)


def try_round_trip(sidecar: "Sidecar", *, is_meaning_off: bool) -> Iterator[Finding]:
    """Store a memory, find it, and purge it, in a namespace of its own.

    Args:
        is_meaning_off: Whether the status said so, so that it need not be told again.
    """
    word = f"doctor{secrets.token_hex(8)}"
    memory_id = ""
    try:
        stored = sidecar.remember(
            service.RememberRequest(content=f"trial {word}", namespace=TRIAL_NAMESPACE, auto_link=False)
        )
        memory_id = stored.memory_id
        found = sidecar.recall(service.RecallRequest(query=word, namespace=TRIAL_NAMESPACE, internal=True))
        is_found = memory_id in {one.memory.id for one in found.memories}
        for leg in found.degraded:
            if is_meaning_off and leg.leg == service.RECALL_LEG_MEANING:
                continue
            yield Finding("recall", Verdict.DOUBTFUL, f"degraded: {leg.reason}", "`sidecar status` says more")
    finally:
        if memory_id:
            sidecar.forget_memories(service.ForgetMemoriesRequest(memory_id=memory_id, purge=True, force=True))
    if is_found:
        yield Finding("round trip", Verdict.GOOD, "a memory was stored, found and purged")
    else:
        told = "a memory was stored but not found again"
        yield Finding("round trip", Verdict.BAD, told, "run `sidecar restart`; if it stays so, report it with the log")


def check_integrity(sidecar: "Sidecar") -> Iterator[Finding]:
    """Have every page of the database checked, and that index and database agree."""
    answer = sidecar.check_integrity(maintenance.CheckIntegrityRequest())
    mend = "run `sidecar export`, then `sidecar stop` and `sidecar restore-backup` with a backup of before"
    for fault in answer.faults:
        yield Finding("database", Verdict.BAD, fault, mend)
    if not answer.faults:
        yield Finding("database", Verdict.GOOD, "every page was checked")
    if answer.stored_vectors == answer.indexed_vectors:
        yield Finding("index", Verdict.GOOD, f"{answer.indexed_vectors} vectors, as many as are stored")
    else:
        told = f"{answer.indexed_vectors} vectors are indexed, {answer.stored_vectors} stored"
        yield Finding("index", Verdict.DOUBTFUL, told, "run `sidecar restart`, which makes it anew, then look again")


def examine(folder: "DataFolder", connect: Callable[[], "Sidecar"], *, is_deep: bool = False) -> Iterator[Finding]:
    """Yield every finding; whatever goes wrong on the way becomes one.

    Args:
        folder: The data folder.
        connect: Connects to its sidecar; starts none.
        is_deep: Whether every page of the database is read.
    """
    yield from check_folder(folder)
    yield from check_variables()
    try:
        with connect() as sidecar:
            yield Finding("sidecar", Verdict.GOOD, f"answers at {sidecar.endpoint.address}")
            answer = sidecar.get_status()
            yield from check_status(answer)
            yield from try_round_trip(sidecar, is_meaning_off=answer.embedder.state == admin.PART_STATE_OFF)
            if is_deep:
                yield from check_integrity(sidecar)
    except SidecarNotRunningError as error:
        remedy = "run `sidecar start`, then `sidecar doctor` again for the other checks"
        findings = list(check_stopped(folder))
        if any(finding.verdict is Verdict.BAD for finding in findings):
            remedy = "it cannot start before what stands below is mended"
        yield Finding("sidecar", Verdict.BAD, error.message, remedy)
        yield from findings
    except SidecarError as error:
        yield Finding("sidecar", Verdict.BAD, error.message, _remedy(error, folder))


def _remedy(error: SidecarError, folder: "DataFolder") -> str:
    if isinstance(error, StorageCorruptError):
        return rescue(folder)
    return f"see the message; the log is {folder.log_path}"


def _private_files(folder: "DataFolder") -> list[Path]:
    candidates = (folder.database_path, folder.endpoint_path, folder.holder_path, folder.log_folder, folder.log_path)
    return [path for path in candidates if path.exists()]


def _is_open_to_others(path: Path) -> bool:
    # Windows keeps access apart from the mode.
    return sys.platform != "win32" and bool(stat.S_IMODE(path.lstat().st_mode) & _GROUP_AND_OTHERS)
