"""Runs what is asked for: reads the parameters, shows progress, and makes of every failure what an editor may see."""

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lsprotocol.types import ExecuteCommandParams, ProgressToken
from pygls.exceptions import JsonRpcException

from client_plugins.lsp_bridge.command_names import COMMAND_PREFIX, COMMANDS
from client_plugins.lsp_bridge.failures import as_response, bad_parameters, unforeseen
from client_plugins.lsp_bridge.operations import Operation, Operations
from client_plugins.lsp_bridge.progress import progress
from client_plugins.lsp_bridge.showing import Showing
from client_plugins.lsp_bridge.structuring import ParametersError, structured, unstructured
from sidecar.errors import SidecarError

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

log = logging.getLogger(__name__)

_PROGRESS: Final = "workDoneToken"
_Answer = TypeVar("_Answer")


class Requests:
    """Answers the requests and commands of ours."""

    def __init__(
        self, server: "LanguageServer", operations: Operations, showing: Showing, *, changed: Callable[[], None]
    ) -> None:
        """Take what they work with.

        Args:
            changed: Called after what is stored was changed from here.
        """
        self._server = server
        self._operations = operations
        self._showing = showing
        self._changed = changed

    async def request(self, name: str, params: object) -> object:
        """Answer a request, named without its prefix.

        Raises:
            JsonRpcException: What the editor is told.
        """
        return await told(name, self._run(name, params, token=None, is_shown=False))

    async def command(self, params: ExecuteCommandParams) -> object:
        """Run a command, and show what it came to unless it is to be quiet.

        Raises:
            JsonRpcException: What the editor is told.
        """
        name = params.command.removeprefix(COMMAND_PREFIX)
        if params.command != f"{COMMAND_PREFIX}{name}" or name not in COMMANDS:
            raise bad_parameters("there is no command of this name; the server's capabilities list them")
        arguments = params.arguments or ()
        if len(arguments) > 1:
            raise bad_parameters(f"{params.command} takes one object, and there are {len(arguments)} arguments")
        argument = arguments[0] if arguments else None
        return await told(name, self._run(name, argument, token=params.work_done_token, is_shown=True))

    async def _run(self, name: str, params: object, *, token: ProgressToken | None, is_shown: bool) -> object:
        operation = self._operations.by_name[name]
        token, fields = _without_token(params, token)
        asked = structured(fields, operation.parameters)
        async with progress(self._server, _doing(operation, name), token):
            result = await operation.run(asked)
        if operation.is_change:
            self._changed()
        if is_shown and not asked.quiet:
            self._showing.begin(name, asked, result)
        return unstructured(result)


async def told(name: str, answer: Awaitable[_Answer]) -> _Answer:
    """Return the answer.

    Raises:
        JsonRpcException: In place of whatever went wrong.
    """
    try:
        return await answer
    except JsonRpcException:
        raise
    except ParametersError as error:
        raise bad_parameters(str(error)) from error
    except SidecarError as error:
        raise as_response(error) from error
    except Exception as error:
        log_fault(name, error)
        raise unforeseen() from error


async def empty_if_failing(name: str, answer: Awaitable[_Answer], empty: _Answer) -> _Answer:
    """Return the answer of something that only looks; where it fails, the empty one, and the log says why."""
    try:
        return await answer
    except SidecarError as error:
        log.warning("%s answers empty: %s", name, error.reason)
    except Exception as error:  # noqa: BLE001 - a fault of ours is no reason to disturb an editor
        log_fault(name, error)
    return empty


def log_fault(name: str, error: BaseException) -> None:
    """Log a fault of ours: where, and never its text, which may quote a memory or a document."""
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    log.error("%s failed: %s\n  %s", name, type(error).__name__, "\n  ".join(frames))


def _without_token(params: object, token: ProgressToken | None) -> tuple[ProgressToken | None, object]:
    if not isinstance(params, Mapping) or _PROGRESS not in params:
        return token, params
    own: Any = params[_PROGRESS]
    fields = {name: value for name, value in params.items() if name != _PROGRESS}
    return (own if isinstance(own, str | int) else token), fields


def _doing(operation: Operation, name: str) -> str:
    return f"{name} …" if not operation.is_change else f"{name}: storing …"
