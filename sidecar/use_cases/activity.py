"""Notes what files sessions touch, and lists those touched last. Opens no file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sidecar.domain.file_activity import (
    DEFAULT_RECENT_DAYS,
    DEFAULT_RECENT_FILES,
    MAX_FILE_METADATA_BYTES,
    FileAction,
    FileEvent,
    RecentFile,
    RecentFilesQuery,
    guess_file_type,
    kept_path,
)
from sidecar.domain.memory import Caller
from sidecar.domain.namespace import project_namespace
from sidecar.errors import ContentTooLargeError
from sidecar.ports import ActivityStore, Clock, Redactor
from sidecar.use_cases.clean_text import clean


@dataclass(frozen=True, slots=True)
class ActivityPolicy:
    """What holds where the caller says nothing: how many files are listed, and of how many days."""

    listed_files: int = DEFAULT_RECENT_FILES
    days: int = DEFAULT_RECENT_DAYS


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that a session did something with, as the caller names it."""

    path: str
    action: FileAction
    project_root: str
    metadata: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NotedFile:
    """What was noted: the database's id, and the kind of file, empty if unknown."""

    id: int
    file_type: str


class FileActivity:
    """Keeps file activity."""

    def __init__(self, *, activity: ActivityStore, redactor: Redactor, clock: Clock, policy: ActivityPolicy) -> None:
        self._activity = activity
        self._redactor = redactor
        self._clock = clock
        self._policy = policy

    async def add(self, caller: Caller, touched: TouchedFile) -> NotedFile:
        """Note that a file was touched.

        Raises:
            InvalidInputError: If the path is blank or too long, the metadata too large, or the project's name bad.
        """
        project_namespace(caller.project)
        path = kept_path(touched.path, project_root=touched.project_root)
        _require_small(touched.metadata)
        metadata = clean(self._redactor, "", touched.metadata).metadata
        _require_small(metadata)
        event = FileEvent(
            path=path, action=touched.action, at=self._clock.now(), session=caller.session, project=caller.project
        )
        event_id = await self._activity.add_file_activity(caller.owner, event, client=caller.client, metadata=metadata)
        return NotedFile(event_id, guess_file_type(path))

    async def recent(self, caller: Caller, *, project: str, limit: int, days: int) -> tuple[RecentFile, ...]:
        """Return the files touched last; without a project the caller's, and without that either of all projects.

        Raises:
            InvalidInputError: If limit or days is out of range.
        """
        query = RecentFilesQuery(
            project=project or caller.project,
            limit=limit or self._policy.listed_files,
            days=days or self._policy.days,
        )
        return await self._activity.recent_files(caller.owner, query)


def _require_small(metadata: Mapping[str, object]) -> None:
    size = len(json.dumps(dict(metadata), ensure_ascii=False).encode("utf-8", "surrogatepass")) if metadata else 0
    if size > MAX_FILE_METADATA_BYTES:
        raise ContentTooLargeError("metadata", size, MAX_FILE_METADATA_BYTES)
