"""What happens around calls of a real server: owner, log lines, refusals. Lifecycle tests try the rest end to end."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TypeAlias

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import evidence_service_pb2_grpc
from sidecar.client.wire import error_of, overload_pause_s
from sidecar.errors import InvalidInputError, TooManyRequestsError, UnauthenticatedError
from sidecar.rpc.admission import STANDING_STREAMS, Admission
from sidecar.rpc.credentials import Credentials, current_owner
from sidecar.rpc.interceptors import AccessLog, Authentication, EndOfStreams, ErrorStatuses

TOKEN = "the-token"
SERVICE = "sidecar.api.v1.EvidenceService"
MAX_CALLS = 3
METADATA = (("authorization", f"Bearer {TOKEN}"),)
# The class with the asynchronous signatures is known to the type checker only.
Stub: TypeAlias = "evidence_service_pb2_grpc.EvidenceServiceAsyncStub"


class EchoingEvidence(evidence_service_pb2_grpc.EvidenceServiceServicer):
    """Tells the owner that it sees; fails on a batch below 0."""

    def __init__(self) -> None:
        self.taken = asyncio.Event()
        self.closed = False

    async def ListCursors(  # noqa: N802
        self, request: evidence.ListCursorsRequest, context: object
    ) -> evidence.ListCursorsResponse:
        if request.client == "slow":
            self.taken.set()
            await asyncio.Event().wait()
        if request.client == "broken":
            raise ValueError("quotes a memory")
        return evidence.ListCursorsResponse(cursors=[evidence.TranscriptCursor(client=current_owner())])

    async def StreamEvidence(  # noqa: N802
        self, request_iterator: AsyncIterator[evidence.StreamEvidenceRequest], context: object
    ) -> AsyncIterator[evidence.StreamEvidenceResponse]:
        try:
            async for request in request_iterator:
                if request.batch_id < 0:
                    raise InvalidInputError("batch_id", request.batch_id, "0 or more")
                self.taken.set()
                yield evidence.StreamEvidenceResponse(batch_id=request.batch_id, used_memory_ids=[current_owner()])
        finally:
            self.closed = True


@pytest.fixture
async def servicer() -> EchoingEvidence:
    """What is called."""
    return EchoingEvidence()  # type: ignore[abstract]


@pytest.fixture
async def stopping() -> asyncio.Event:
    """Set when the server stops."""
    return asyncio.Event()


@pytest.fixture
async def channel(servicer: EchoingEvidence, stopping: asyncio.Event) -> AsyncIterator[grpc.aio.Channel]:
    """A connection to a real server with all interceptors."""
    interceptors = (
        ErrorStatuses(),
        AccessLog(),
        Authentication(Credentials(TOKEN, owner="ada")),
        Admission(MAX_CALLS),
        EndOfStreams(stopping),
    )
    server = grpc.aio.server(interceptors=interceptors)
    evidence_service_pb2_grpc.add_EvidenceServiceServicer_to_server(servicer, server)
    health = HealthServicer()
    for name in ("", SERVICE):
        await health.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    options = (("grpc.enable_http_proxy", 0),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield channel
    await server.stop(None)


@pytest.fixture
async def stub(channel: grpc.aio.Channel) -> Stub:
    """A client of the service."""
    return evidence_service_pb2_grpc.EvidenceServiceStub(channel)


def batches(*numbers: int) -> AsyncIterator[evidence.StreamEvidenceRequest]:
    """Yield batches with these numbers."""

    async def each() -> AsyncIterator[evidence.StreamEvidenceRequest]:
        for number in numbers:
            yield evidence.StreamEvidenceRequest(batch_id=number)

    return each()


def access_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """Return the extra fields of the log's lines on calls."""
    lines = [record.__dict__ for record in caplog.records if record.name == "sidecar.access"]
    return [{key: line[key] for key in ("method", "code", "reason")} for line in lines]


async def test_owner_comes_from_the_token(stub: Stub) -> None:
    """Unary and streaming servicers see the same owner, whatever the request says."""
    answer = await stub.ListCursors(evidence.ListCursorsRequest(client="eve"), metadata=METADATA)
    assert answer.cursors[0].client == "ada"
    streamed = [each async for each in stub.StreamEvidence(batches(1, 2), metadata=METADATA)]
    assert [(each.batch_id, each.used_memory_ids[0]) for each in streamed] == [(1, "ada"), (2, "ada")]


def test_outside_a_call_there_is_no_owner() -> None:
    """Code that forgot the credentials must fail rather than act for somebody."""
    with pytest.raises(UnauthenticatedError):
        current_owner()


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", TOKEN),),
        (("authorization", f"bearer {TOKEN}"),),
        (("authorization", f"Bearer {TOKEN} "),),
        (("authorization", f"Bearer {TOKEN[:-1]}"),),
        (("authorization", "Bearer "),),
        (*METADATA, *METADATA),
        (("authorization-bin", f"Bearer {TOKEN}".encode()),),
    ],
)
async def test_anything_but_the_token_is_refused(
    stub: Stub, caplog: pytest.LogCaptureFixture, metadata: tuple[tuple[str, str], ...]
) -> None:
    """Exactly one header with exactly the token, for unary and streaming methods; refusals are logged without it."""
    caplog.set_level(logging.INFO)
    with pytest.raises(grpc.aio.AioRpcError) as unary:
        await stub.ListCursors(evidence.ListCursorsRequest(), metadata=metadata)
    assert unary.value.code() is grpc.StatusCode.UNAUTHENTICATED
    with pytest.raises(grpc.aio.AioRpcError) as streaming:
        _ = [each async for each in stub.StreamEvidence(batches(1), metadata=metadata)]
    assert streaming.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert [line["reason"] for line in access_lines(caplog)] == ["UNAUTHENTICATED"] * 2
    assert TOKEN[:-1] not in caplog.text


async def test_each_call_is_logged_once_with_code_and_reason(stub: Stub, caplog: pytest.LogCaptureFixture) -> None:
    """One line tells what happened, for calls that work, that fail and that fail in the middle of a stream."""
    caplog.set_level(logging.INFO)
    await stub.ListCursors(evidence.ListCursorsRequest(), metadata=METADATA)
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.ListCursors(evidence.ListCursorsRequest(client="broken"), metadata=METADATA)
    with pytest.raises(grpc.aio.AioRpcError):
        _ = [each async for each in stub.StreamEvidence(batches(1, -1), metadata=METADATA)]
    found = access_lines(caplog)
    assert [(line["code"], line["reason"]) for line in found] == [
        ("OK", ""),
        ("INTERNAL", "INTERNAL"),
        ("INVALID_ARGUMENT", "INVALID_INPUT"),
    ]
    assert all(str(line["method"]).startswith("/sidecar.api.v1.EvidenceService/") for line in found)


async def test_deadline_of_the_client_is_logged_as_such(
    stub: Stub, servicer: EchoingEvidence, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler is cancelled; the line must not say that the call went well."""
    caplog.set_level(logging.INFO)
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.ListCursors(evidence.ListCursorsRequest(client="slow"), metadata=METADATA, timeout=0.2)
    async with asyncio.timeout(10):
        while not access_lines(caplog):
            await asyncio.sleep(0.01)
    assert access_lines(caplog)[0]["code"] in {"DEADLINE_EXCEEDED", "CANCELLED"}


async def test_stop_ends_a_stream_between_two_messages(
    stub: Stub, servicer: EchoingEvidence, stopping: asyncio.Event
) -> None:
    """What was taken is answered, and the servicer's own cleaning up runs."""
    call = stub.StreamEvidence(metadata=METADATA)
    await call.write(evidence.StreamEvidenceRequest(batch_id=1))
    assert await call.read() == evidence.StreamEvidenceResponse(batch_id=1, used_memory_ids=["ada"])
    stopping.set()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await call.read()
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert servicer.closed


async def test_calls_beyond_the_most_are_told_to_come_again(
    stub: Stub, servicer: EchoingEvidence, channel: grpc.aio.Channel
) -> None:
    """Those under way go on, health answers too, and the next call is taken as soon as one has ended."""
    under_way = []
    for _ in range(MAX_CALLS):
        servicer.taken.clear()
        under_way.append(stub.ListCursors(evidence.ListCursorsRequest(client="slow"), metadata=METADATA))
        await servicer.taken.wait()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.ListCursors(evidence.ListCursorsRequest(), metadata=METADATA)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert overload_pause_s(refused.value) == 0.5
    error = error_of(refused.value, operation="ListCursors", home="/h", deadline_s=1)
    assert isinstance(error, TooManyRequestsError)
    health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    assert [each.batch_id async for each in stub.StreamEvidence(batches(1), metadata=METADATA)] == [1]
    under_way[0].cancel()
    await _until_answered(stub)
    for call in under_way[1:]:
        call.cancel()


async def test_streams_that_stand_open_leave_every_place_to_calls(stub: Stub) -> None:
    """Watchers keep theirs for as long as they live. There is an end to them all the same, and each goes on."""
    standing = [stub.StreamEvidence(metadata=METADATA) for _ in range(MAX_CALLS)]
    for number, call in enumerate(standing):
        await call.write(evidence.StreamEvidenceRequest(batch_id=number))
        assert await call.read() == evidence.StreamEvidenceResponse(batch_id=number, used_memory_ids=["ada"])
    requests = [stub.ListCursors(evidence.ListCursorsRequest(), metadata=METADATA) for _ in range(MAX_CALLS)]
    assert all(answer.cursors for answer in await asyncio.gather(*requests))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        _ = [each async for each in stub.StreamEvidence(batches(1), metadata=METADATA)]
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    for call in standing:
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
    assert [each.batch_id async for each in stub.StreamEvidence(batches(2), metadata=METADATA)] == [2]


def test_standing_streams_are_methods_of_the_contract() -> None:
    """A renamed one would count as a call again, and nobody would notice."""
    service = evidence.DESCRIPTOR.services_by_name["EvidenceService"]
    assert {f"/{service.full_name}/{method.name}" for method in service.methods} >= STANDING_STREAMS


async def _until_answered(stub: Stub) -> None:
    """Return once a call is let in: the server learns of a cancelled one a moment later."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(grpc.aio.AioRpcError):
                assert (await stub.ListCursors(evidence.ListCursorsRequest(), metadata=METADATA)).cursors
                return
            await asyncio.sleep(0.01)


async def test_refused_calls_are_not_counted_as_under_way(stub: Stub) -> None:
    """A call that failed, or was never let in, makes room again."""
    for _ in range(2 * MAX_CALLS):
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.ListCursors(evidence.ListCursorsRequest(client="broken"), metadata=METADATA)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.ListCursors(evidence.ListCursorsRequest())
    assert (await stub.ListCursors(evidence.ListCursorsRequest(), metadata=METADATA)).cursors


@pytest.mark.parametrize("name", [SERVICE, "unknown"])
async def test_health_without_the_token_tells_that_it_lives_and_no_more(channel: grpc.aio.Channel, name: str) -> None:
    """Which services there are, and how each is, is for those who may use them."""
    stub = health_pb2_grpc.HealthStub(channel)
    named = health_pb2.HealthCheckRequest(service=name)
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.aio.AioRpcError) as checked:
        await stub.Check(named)
    with pytest.raises(grpc.aio.AioRpcError) as watched:
        _ = [each async for each in stub.Watch(named)]
    with pytest.raises(grpc.aio.AioRpcError) as listed:
        await channel.unary_unary("/grpc.health.v1.Health/List", request_serializer=bytes)(b"")
    codes = {refused.value.code() for refused in (checked, watched, listed)}
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    known = await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE), metadata=METADATA)
    assert known.status == health_pb2.HealthCheckResponse.SERVING
