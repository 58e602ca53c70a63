"""What every request works with: the way to the sidecar, the workspace, and who asks."""

import re
import uuid
from typing import TYPE_CHECKING, Final

from client_plugins.lsp_bridge.about_code import AboutCode
from client_plugins.lsp_bridge.connection import Connection
from client_plugins.lsp_bridge.contract import AWAY, InitializationOptions, Status
from client_plugins.lsp_bridge.failures import problem_and_remedy
from client_plugins.lsp_bridge.places import Places
from sidecar.domain.namespace import project_namespace

if TYPE_CHECKING:
    from sidecar.api.v1.memory_pb2 import CallContext

_NOT_ALLOWED: Final = re.compile(r"[^a-z0-9._-]+")
_MAX_NAME_CHARACTERS: Final = 48


class Desk:
    """One editor's requests.

    Attributes:
        options: What the editor said at the start.
    """

    def __init__(self, connection: Connection, places: Places, options: InitializationOptions, *, editor: str) -> None:
        """Take what the editor told of itself.

        Args:
            editor: Its name, as it gives it; empty if none.
        """
        self.connection = connection
        self.places = places
        self.options = options
        # Not the bare name: Cursor's agent is called `cursor`, and is another than the person before the editor.
        name = _NOT_ALLOWED.sub("-", editor.lower()).strip("-")[:_MAX_NAME_CHARACTERS] or "editor"
        self._client = f"lsp-{name}"
        self._session = f"lsp-{uuid.uuid4().hex[:12]}"
        self.about = AboutCode(self.context)

    def context(self, project: str) -> "CallContext":
        """Return who asks, in this project."""
        from sidecar.api.v1.memory_pb2 import CallContext  # noqa: PLC0415 - protobuf is for calls only

        return CallContext(client=self._client, session=self._session, project=project)

    def status(self) -> Status:
        """Return how the sidecar is, without asking it."""
        connection = self.connection
        seen = connection.seen
        problem = ": ".join(filter(None, problem_and_remedy(connection.problem))) if connection.problem else None
        return Status(
            state=connection.state,
            namespace=project_namespace(self.places.project(None)),
            memories=seen.memory_count if seen else None,
            version=seen.version if seen else None,
            message=problem if connection.state == AWAY else None,
        )
