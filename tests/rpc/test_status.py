"""Every error travels over a real gRPC server and arrives as the same class."""

from collections.abc import AsyncIterator
from typing import TypeAlias

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import admin_service_pb2_grpc
from sidecar.client.wire import error_of
from sidecar.errors import (
    DOMAIN,
    CallFailedError,
    DeadlineError,
    InvalidInputError,
    NotFoundError,
    SidecarError,
    SidecarNotRunningError,
    UnavailableError,
    all_errors,
)
from sidecar.rpc.interceptors import ErrorStatuses
from sidecar.rpc.status import CODES, code_of, to_status

# The class with the asynchronous signatures is known to the type checker only.
Stub: TypeAlias = "admin_service_pb2_grpc.AdminServiceAsyncStub"


class RaisingAdmin(admin_service_pb2_grpc.AdminServiceServicer):
    """Fails as the test wants it."""

    error: Exception = ValueError()

    async def GetStatus(self, request: admin.GetStatusRequest, context: object) -> admin.GetStatusResponse:  # noqa: N802
        raise self.error


@pytest.fixture
async def servicer() -> RaisingAdmin:
    """What fails."""
    return RaisingAdmin()  # type: ignore[abstract]


@pytest.fixture
async def stub(servicer: RaisingAdmin) -> AsyncIterator[Stub]:
    """A client of a real server with the interceptor."""
    server = grpc.aio.server(interceptors=(ErrorStatuses(),))
    admin_service_pb2_grpc.add_AdminServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    options = (("grpc.enable_http_proxy", 0),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield admin_service_pb2_grpc.AdminServiceStub(channel)
    await server.stop(None)


async def failure_of(stub: Stub) -> grpc.aio.AioRpcError:
    """Call and return how it failed."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await stub.GetStatus(admin.GetStatusRequest(), timeout=10)
    return failed.value


def decoded(failure: grpc.aio.AioRpcError) -> SidecarError:
    """Return what our client makes of it."""
    return error_of(failure, operation="GetStatus", home="/home", deadline_s=1)


@pytest.mark.parametrize("error_class", all_errors(), ids=lambda cls: cls.reason)
async def test_every_error_arrives_as_it_was_raised(
    servicer: RaisingAdmin, stub: Stub, error_class: type[SidecarError]
) -> None:
    """Class, reason, message and details survive the way, whatever is in them."""
    metadata = {"field": "naïve", "size_bytes": "3"}
    servicer.error = error_class.from_wire("what is wrong: 'naïve'; what to do", metadata)
    failure = await failure_of(stub)
    arrived = decoded(failure)
    assert type(arrived) is error_class
    assert arrived.message == "what is wrong: 'naïve'; what to do"
    assert dict(arrived.metadata) == metadata
    assert failure.code() is code_of(servicer.error)


def test_reasons_are_unique() -> None:
    """A reason names one class, or the client could not tell which."""
    reasons = [cls.reason for cls in all_errors()]
    assert len(reasons) == len(set(reasons))
    assert all(reason.replace("_", "").isalpha() and reason.isupper() for reason in reasons)


def test_every_family_of_errors_has_a_code() -> None:
    """Only the root may fall back to UNKNOWN and what no sidecar sends on purpose."""
    without = [cls for cls in all_errors() if code_of(cls.from_wire("", {})) is grpc.StatusCode.UNKNOWN]
    assert without == [SidecarError, CallFailedError]
    assert set(CODES) <= set(all_errors())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.NOT_FOUND, NotFoundError),
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidInputError),
        (grpc.StatusCode.UNAVAILABLE, UnavailableError),
        (grpc.StatusCode.INTERNAL, SidecarError),
    ],
)
def test_reason_of_a_newer_sidecar_becomes_the_nearest_class(
    code: grpc.StatusCode, expected: type[SidecarError]
) -> None:
    """A client that does not know the leaf can still act on the kind."""
    status = to_status(NotFoundError("gone", id="x"))
    info = error_details_pb2.ErrorInfo(reason="FROM_THE_FUTURE", domain=DOMAIN, metadata={"id": "x"})
    status.details[0].Pack(info)
    arrived = decoded(failure_with(code, status.SerializeToString()))
    assert type(arrived) is expected
    assert dict(arrived.metadata) == {"id": "x", "reason": "FROM_THE_FUTURE"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineError),
        (grpc.StatusCode.UNAVAILABLE, SidecarNotRunningError),
        (grpc.StatusCode.UNIMPLEMENTED, CallFailedError),
        (grpc.StatusCode.INTERNAL, CallFailedError),
    ],
)
@pytest.mark.parametrize("details", [b"", b"\xff\xff\xff", b"\x08"])
def test_status_without_readable_details_becomes_an_error_of_ours(
    code: grpc.StatusCode, expected: type[SidecarError], details: bytes
) -> None:
    """GRPC's own failures carry none, and a broken one must not break the client."""
    assert type(decoded(failure_with(code, details))) is expected


def failure_with(code: grpc.StatusCode, details: bytes) -> grpc.aio.AioRpcError:
    """Return a failed call as the library would."""
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", details))
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details="said by gRPC")


def test_field_and_delay_travel_in_the_standard_details() -> None:
    """Clients in other languages read BadRequest and RetryInfo without knowing us."""
    invalid = to_status(InvalidInputError("importance", 2, "0 to 1"))
    bad_request = error_details_pb2.BadRequest()
    assert invalid.details[1].Unpack(bad_request)
    assert bad_request.field_violations[0].field == "importance"
    retry = error_details_pb2.RetryInfo()
    assert to_status(UnavailableError("not now")).details[1].Unpack(retry)
    assert retry.retry_delay.nanos > 0


async def test_huge_or_broken_text_still_travels(servicer: RaisingAdmin, stub: Stub) -> None:
    """A value from a transcript may hold half a character, and metadata must stay under 8 KiB."""
    servicer.error = NotFoundError("no \ud83d " + "x" * 100_000, memory_id="\ud83d")
    arrived = decoded(await failure_of(stub))
    assert isinstance(arrived, NotFoundError)
    assert arrived.message.startswith("no ? x")
