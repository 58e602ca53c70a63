"""What happens around every call: who calls, how errors travel, one line in the log, an end when the sidecar stops.

Each interceptor wraps the handler and works alike for unary and streaming methods. Order, outermost first:
`ErrorStatuses`, `AccessLog`, `Authentication`, `EndOfStreams`.
"""

import asyncio
import contextlib
import inspect
import logging
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from sidecar.errors import InternalError, ShuttingDownError, SidecarError, UnauthenticatedError
from sidecar.rpc.credentials import Credentials, set_current_owner
from sidecar.rpc.status import DETAILS_KEY, code_of, to_status

log = logging.getLogger(__name__)
access_log = logging.getLogger("sidecar.access")

_FIRST_MESSAGE_WITHIN_S: Final = 0.25
HEALTH_PREFIX: Final = "/grpc.health.v1.Health/"

_LIVENESS: Final = frozenset((f"{HEALTH_PREFIX}Check", f"{HEALTH_PREFIX}Watch"))

# Handlers and messages of whatever service; grpc's own types cannot say more here.
Context = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]"
Around = Callable[[Context], AbstractAsyncContextManager[None]]
_Result = TypeVar("_Result")


class AroundInterceptor(grpc.aio.ServerInterceptor, ABC):
    """Runs something around every call."""

    def __init__(self) -> None:
        # Wrapping a handler costs as much as a small call, and there are few of them.
        self._wrappings: dict[str, tuple[Handler, Handler]] = {}

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if handler is _REFUSAL:
            # Whoever has no token chooses the method's name, so nothing may be kept under it.
            return _wrapped(handler, lambda context: self.around(method, context))
        inner, outer = self._wrappings.get(method, (None, None))
        if inner is not handler or outer is None:
            outer = _wrapped(handler, lambda context: self.around(method, context))
            self._wrappings[method] = (handler, outer)
        return outer

    @abstractmethod
    def around(self, method: str, context: Context) -> AbstractAsyncContextManager[None]:
        """Return what is entered before the call and left after it, with its error if it has one."""


class ErrorStatuses(AroundInterceptor):
    """Gives errors their status. One that nobody foresaw is logged under an id, and only the id travels."""

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """See `AroundInterceptor.around`."""
        try:
            yield
        except SidecarError as error:
            await _abort(context, error)
        except grpc.aio.AbortError:
            # A library's servicer, such as health, has chosen its status itself.
            raise
        except Exception as error:
            incident = secrets.token_hex(4)
            # The traceback goes to the log, whose formatter leaves out the error's text: it may quote a memory.
            log.exception("call failed", extra={"method": method, "incident": incident})
            await _abort(context, InternalError(incident), cause=error)


class AccessLog(AroundInterceptor):
    """Writes one line per call: method, code, duration, reason. Nothing of what was sent."""

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: Context) -> AsyncIterator[None]:
        """See `AroundInterceptor.around`."""
        begun = time.perf_counter()
        code, reason = grpc.StatusCode.OK, ""
        try:
            yield
        except SidecarError as error:
            code, reason = code_of(error), error.reason
            raise
        except asyncio.CancelledError:
            code = _cancel_code(context)
            raise
        except grpc.aio.AbortError:
            code, reason = _chosen_code(context), "ABORTED"
            raise
        except Exception:
            code, reason = grpc.StatusCode.INTERNAL, InternalError.reason
            raise
        finally:
            duration_ms = round((time.perf_counter() - begun) * 1000, 1)
            level = logging.DEBUG if method.startswith(HEALTH_PREFIX) else logging.INFO
            extra = {"method": method, "code": code.name, "duration_ms": duration_ms, "reason": reason}
            access_log.log(level, "call", extra=extra)


class Authentication(grpc.aio.ServerInterceptor):
    """Lets through who has the token, and says whose call it is.

    Whether the sidecar lives may be asked without one, so that it can be watched; how each service is may not.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """See `grpc.aio.ServerInterceptor`."""
        try:
            owner = self._credentials.owner_of(handler_call_details.invocation_metadata or ())
        except UnauthenticatedError:
            if handler_call_details.method not in _LIVENESS:
                return _REFUSAL
            handler = await continuation(handler_call_details)
            return None if handler is None else _of_the_whole(handler)
        # Each call is a task of its own, from here through the servicer.
        set_current_owner(owner)
        return await continuation(handler_call_details)


class EndOfStreams(grpc.aio.ServerInterceptor):
    """Ends streams when the sidecar stops; it would otherwise wait out its whole grace for them."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        if handler.request_streaming and handler.response_streaming:
            return self._with_ending_requests(handler)
        if handler.response_streaming and not inspect.isasyncgenfunction(handler.unary_stream):
            return self._cut_short(handler)
        return handler

    def _with_ending_requests(self, handler: Handler) -> Handler:
        """End between two messages, so that what was taken is also answered."""
        answer: Any = handler.stream_stream
        if not inspect.isasyncgenfunction(answer):
            return handler

        async def answer_until_stop(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            async with contextlib.aclosing(answer(self._until_stop(requests), context)) as responses:
                async for response in responses:
                    yield response

        return _like(handler, answer_until_stop)

    def _cut_short(self, handler: Handler) -> Handler:
        """End a watch, which has nothing to finish."""
        watch: Any = handler.unary_stream

        async def watch_until_stop(request: Any, context: Context) -> None:
            await self._unless_stopping(watch(request, context))

        return _like(handler, watch_until_stop)

    async def _until_stop(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        # Whoever opens a stream has something to say, and may have said it just as the sidecar was told to stop.
        grace_s = _FIRST_MESSAGE_WITHIN_S
        while True:
            try:
                yield await self._unless_stopping(anext(requests), grace_s=grace_s)
            except StopAsyncIteration:
                return
            grace_s = 0.0

    async def _unless_stopping(self, wanted: Awaitable[_Result], *, grace_s: float = 0.0) -> _Result:
        """Return what was awaited.

        Args:
            grace_s: It may come so long after the sidecar began to stop.

        Raises:
            ShuttingDownError: The sidecar stops first.
        """
        wait = asyncio.ensure_future(_awaited(wanted))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({wait, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not wait.done() and grace_s:
                await asyncio.wait({wait}, timeout=grace_s)
            if wait.done():
                return wait.result()
            raise ShuttingDownError
        finally:
            stop.cancel()
            wait.cancel()


async def _awaited(wanted: Awaitable[_Result]) -> _Result:
    # What `anext` returns need not be a coroutine, and only of one a task can be made.
    return await wanted


async def _refuse(_: AsyncIterator[Any], __: Context) -> None:
    raise UnauthenticatedError


# A streaming handler that asks for no message: it refuses every kind of call before its bytes are parsed.
_REFUSAL: Final["Handler"] = grpc.stream_stream_rpc_method_handler(_refuse)


def _of_the_whole(handler: Handler) -> Handler:
    """Return a handler of health that answers for the sidecar as a whole, and for no service by its name."""
    answer: Any = handler.unary_unary or handler.unary_stream

    async def answer_nameless(request: Any, context: Context) -> Any:
        if request.service:
            raise UnauthenticatedError
        return await answer(request, context)

    return _like(handler, answer_nameless)


async def _abort(context: Context, error: SidecarError, *, cause: BaseException | None = None) -> None:
    """End the call with the error's status."""
    status = to_status(error)
    details = ((DETAILS_KEY, status.SerializeToString()),)
    try:
        await context.abort(code_of(error), status.message, details)
    except grpc.aio.AbortError as abort:
        raise abort from cause


def _cancel_code(context: Context) -> grpc.StatusCode:
    # None without a deadline, which the types do not say.
    remaining_s: Any = context.time_remaining()
    is_late = remaining_s is not None and remaining_s <= 0
    return grpc.StatusCode.DEADLINE_EXCEEDED if is_late else grpc.StatusCode.CANCELLED


def _chosen_code(context: Context) -> grpc.StatusCode:
    chosen: Any = context.code()
    return next((code for code in grpc.StatusCode if chosen in {code, code.value[0]}), grpc.StatusCode.UNKNOWN)


def _wrapped(handler: Handler, around: Around) -> Handler:
    """Return a handler that enters `around` for each call."""
    answer: Any = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream

    async def answer_within(request: Any, context: Context) -> Any:
        async with around(context):
            return await answer(request, context)

    async def stream_within(request: Any, context: Context) -> AsyncIterator[Any]:
        async with around(context), contextlib.aclosing(answer(request, context)) as responses:
            async for response in responses:
                yield response

    return _like(handler, stream_within if inspect.isasyncgenfunction(answer) else answer_within)


def _like(handler: Handler, answer: Any) -> Handler:
    """Return a handler with other behaviour and the same messages."""
    make: Any = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[handler.request_streaming, handler.response_streaming]
    wrapped: Handler = make(answer, handler.request_deserializer, handler.response_serializer)
    return wrapped
