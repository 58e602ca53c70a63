"""The ActivityService: convert, call, convert."""

from typing import Final

import grpc

from sidecar.api.v1 import activity_service_pb2 as pb
from sidecar.api.v1 import activity_service_pb2_grpc
from sidecar.domain.file_activity import FileAction
from sidecar.errors import InvalidInputError
from sidecar.rpc import convert, enums
from sidecar.rpc.credentials import current_owner
from sidecar.use_cases.activity import FileActivity, TouchedFile

_ACTION_NUMBERS: Final[dict[FileAction, pb.FileAction.ValueType]] = {
    value: pb.FileAction.Value(f"FILE_ACTION_{value.name}") for value in FileAction
}
_ACTIONS: Final = {int(number): value for value, number in _ACTION_NUMBERS.items()}


class ActivityServicer(activity_service_pb2_grpc.ActivityServiceServicer):
    """Serves file activity. Errors travel through the interceptor."""

    def __init__(self, *, activity: FileActivity) -> None:
        self._activity = activity

    async def AddFileActivity(
        self,
        request: pb.AddFileActivityRequest,
        context: grpc.aio.ServicerContext[pb.AddFileActivityRequest, pb.AddFileActivityResponse],
    ) -> pb.AddFileActivityResponse:
        """Notes that a file was touched."""
        noted = await self._activity.add(convert.caller(current_owner(), request.context), _touched(request))
        return pb.AddFileActivityResponse(id=noted.id, file_type=noted.file_type)

    async def ListRecentFiles(
        self,
        request: pb.ListRecentFilesRequest,
        context: grpc.aio.ServicerContext[pb.ListRecentFilesRequest, pb.ListRecentFilesResponse],
    ) -> pb.ListRecentFilesResponse:
        """Lists the files touched last."""
        caller = convert.caller(current_owner(), request.context)
        files = await self._activity.recent(caller, project=request.project, limit=request.limit, days=request.days)
        return pb.ListRecentFilesResponse(
            files=[
                pb.RecentFile(
                    path=file.path,
                    last_action=_ACTION_NUMBERS[file.last_action],
                    last_time=convert.timestamp(file.last_at),
                    count=file.count,
                    file_type=file.file_type,
                )
                for file in files
            ]
        )


def _touched(request: pb.AddFileActivityRequest) -> TouchedFile:
    action = enums.looked_up("action", request.action, _ACTIONS)
    if action is None:
        raise InvalidInputError("action", request.action, f"one of {', '.join(FileAction)}")
    return TouchedFile(
        path=request.path,
        action=action,
        project_root=request.project_root,
        metadata=convert.metadata(request.metadata),
    )
