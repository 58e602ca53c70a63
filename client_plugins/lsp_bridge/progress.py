"""Tells an editor that something takes a while, and ends it when the user says so there."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from lsprotocol.types import ProgressToken, WorkDoneProgressBegin, WorkDoneProgressEnd
from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer

_TITLE: Final = "Memory"
# What is done sooner only flickers.
_BEGIN_AFTER_S: Final = 0.3
_CREATE_WAIT_S: Final = 2.0


@asynccontextmanager
async def progress(server: "LanguageServer", message: str, token: ProgressToken | None) -> AsyncIterator[None]:
    """Show that this takes a while, from a moment on; if the user stops it there, the current task is cancelled.

    Args:
        message: What is done.
        token: That of the request, if the editor gave it one.
    """
    task = asyncio.current_task()
    assert task is not None
    shown: list[ProgressToken] = []
    begin = asyncio.create_task(_begin(server, message, token, task, shown))
    try:
        yield
    finally:
        begin.cancel()
        for each in shown:
            server.work_done_progress.end(each, WorkDoneProgressEnd())
            server.work_done_progress.tokens.pop(each, None)


async def _begin(
    server: "LanguageServer",
    message: str,
    token: ProgressToken | None,
    task: "asyncio.Task[object]",
    shown: list[ProgressToken],
) -> None:
    await asyncio.sleep(_BEGIN_AFTER_S)
    reporter = server.work_done_progress
    if token is None:
        window = server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        token = f"memory-{uuid.uuid4().hex[:12]}"
        try:
            await asyncio.wait_for(reporter.create_async(token), _CREATE_WAIT_S)
        except (TimeoutError, JsonRpcException):
            return
    reporter.begin(token, WorkDoneProgressBegin(title=_TITLE, message=message, cancellable=True))
    shown.append(token)
    reporter.tokens[token].add_done_callback(lambda stopped: task.cancel() if stopped.cancelled() else None)
