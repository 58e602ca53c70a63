"""Whatever comes over the wire, the sidecar answers with a typed error and lives on."""

import random
import string
import threading
from collections.abc import Iterator

import grpc
import pytest

from sidecar.api.v1 import admin_service_pb2, evidence_service_pb2, memory_service_pb2
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import Sidecar
from sidecar.client.channel import bearer, open_channel
from sidecar.errors import EmptyQueryError, SidecarError, TooLargeMessageError
from tests.e2e.running import running_sidecar, wait_until_embedded

ODD_QUERIES = 2000
MALFORMED = 300
SYNTAX = """'"*()-+:^{}[]~!/\\,.;%_#@&|=<>?` \t\n"""
WORDS = ["AND", "OR", "NOT", "NEAR", "don't", "pre-edit", "foo:bar", "''", '""', "NEAR(a b, 2)", "a*", "^x", "{a b}:c"]
METHODS = [
    f"/sidecar.api.v1.{service.name}/{method.name}"
    for file in (memory_service_pb2, evidence_service_pb2, admin_service_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if method.name != "Shutdown"
]


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("home")) as running:
        running.remember(pb.RememberRequest(content='The phrase "left (AND) right" is in the parser\'s tests.'))
        wait_until_embedded(running)
        yield running


def odd_queries(seed: int) -> Iterator[str]:
    """Punctuation, operators of query languages, other scripts, halves of surrogates, long runs."""
    chance = random.Random(seed)
    for _ in range(ODD_QUERIES):
        parts = [
            chance.choice(WORDS),
            "".join(chance.choices(SYNTAX, k=chance.randrange(6))),
            "".join(chance.choices(string.printable, k=chance.randrange(12))),
            chr(chance.choice([0x301, 0x202E, 0x1F600, 0x4E2D, 0xFFFD, 0xE000, 0x10FFFF, 0, 1])),
        ]
        chance.shuffle(parts)
        yield "".join(parts) * chance.choice([1] * 40 + [40])


def test_odd_queries_are_no_errors(sidecar: Sidecar) -> None:
    """A query is words, never syntax; only a blank one is refused."""
    answered = 0
    for query in odd_queries(seed=1):
        try:
            sidecar.recall(pb.RecallRequest(query=query, internal=True))
        except EmptyQueryError:
            continue
        answered += 1
    assert answered > ODD_QUERIES * 0.99
    found = sidecar.recall(pb.RecallRequest(query='"left (AND) right"', internal=True))
    # Other tests have stored theirs, of which some are a little relevant.
    assert found.memories[0].memory.content.startswith('The phrase "left (AND) right"')


def test_malformed_messages_leave_it_alive(sidecar: Sidecar) -> None:
    """Random bytes, cut messages and wrong types to every method."""
    chance = random.Random(2)
    token = bearer(sidecar.endpoint.token)
    codes: set[grpc.StatusCode] = set()
    with open_channel(sidecar.endpoint) as channel:
        for number in range(MALFORMED):
            path = METHODS[number % len(METHODS)]
            is_watch = path.endswith("WatchReadingRequests")
            body = chance.choice([chance.randbytes(chance.randrange(200)), b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 50])
            try:
                if path.endswith("StreamEvidence"):
                    list(_stream(channel, path)(iter([body]), timeout=10, metadata=token))
                else:
                    _unary(channel, path)(body, timeout=0.2 if is_watch else 10, metadata=token)
            except grpc.RpcError as error:
                # What happens to be a message starts a watch, which lasts as long as anybody listens.
                if not (is_watch and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED):
                    codes.add(error.code())
    # UNKNOWN and INTERNAL are gRPC's own words for bytes that are no message; none of them waited for a deadline.
    assert codes <= {
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
    }
    assert sidecar.get_status(admin.GetStatusRequest()).memory_count >= 1


def test_message_over_the_limit_is_told(sidecar: Sidecar) -> None:
    """With the limit, and the next call works."""
    with pytest.raises(TooLargeMessageError):
        sidecar.remember(pb.RememberRequest(content="x" * (9 * 1024 * 1024)))
    assert sidecar.recall(pb.RecallRequest(query="phrase", internal=True)).total == 1


def test_unread_streams_do_not_hold_up_calls(sidecar: Sidecar) -> None:
    """Sixty-four streams, each with one batch sent, whose acknowledgements nobody reads."""
    token = bearer(sidecar.endpoint.token)
    may_end = threading.Event()
    with open_channel(sidecar.endpoint) as channel:
        method = _stream(channel, "/sidecar.api.v1.EvidenceService/StreamEvidence")
        streams = [method(_one_and_wait(number, may_end), metadata=token) for number in range(64)]
        for number in range(50):
            sidecar.recall(pb.RecallRequest(query=f"phrase {number}", internal=True), deadline_s=10)
        assert all(stream.is_active() for stream in streams), "a stream was closed, so nothing was held open"
        may_end.set()
        acknowledged = [len(list(stream)) for stream in streams]
    assert acknowledged == [1] * 64


def test_text_of_every_kind_is_stored(sidecar: Sidecar) -> None:
    """NUL, bidirectional marks, emoji, combining marks, a line of 60 kB; all found again by their words."""
    for number, text in enumerate(["a\0b", "\u202eabc", "👩‍💻 works", "e\u0301a", "x" * 60_000]):
        try:
            stored = sidecar.remember(pb.RememberRequest(content=f"oddity{number} {text}"))
        except SidecarError as error:
            pytest.fail(f"refused: {error}")
        found = sidecar.recall(pb.RecallRequest(query=f"oddity{number}", internal=True))
        assert stored.memory_id in [recalled.memory.id for recalled in found.memories]


def _stream(channel: grpc.Channel, path: str) -> "grpc.StreamStreamMultiCallable[bytes, bytes]":
    return channel.stream_stream(path)


def _unary(channel: grpc.Channel, path: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    return channel.unary_unary(path)


def _one_and_wait(number: int, may_end: threading.Event) -> Iterator[bytes]:
    cursor = evidence_service_pb2.TranscriptCursor(client="test", path=f"/held/{number}")
    yield evidence_service_pb2.StreamEvidenceRequest(batch_id=number, cursor=cursor).SerializeToString()
    may_end.wait(60)
