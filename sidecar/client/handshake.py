"""The first exchange with a sidecar: each side proves that it knows the token, and neither shows it.

It rides on `grpc.health.v1.Health/Check`, which asks nothing of the store: the client sends a challenge and an HMAC of
it, the sidecar answers with what it is and an HMAC over both. So a process that took the port of a dead sidecar learns
nothing, and whoever asks a sidecar without knowing the token learns no more than that it lives.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from sidecar.client.build import Build
from sidecar.client.channel import open_channel
from sidecar.client.endpoint import DataFolder, Endpoint
from sidecar.errors import SidecarNotRunningError

HEALTH_CHECK: Final = "/grpc.health.v1.Health/Check"
CHALLENGE: Final = "sidecar-challenge"
KNOWLEDGE: Final = "sidecar-challenge-proof"
PROOF: Final = "sidecar-proof"
INSTANCE: Final = "sidecar-instance"
VERSION: Final = "sidecar-version"
PROTOCOL: Final = "sidecar-protocol"
_MAX_CHALLENGE_CHARACTERS: Final = 64
# What a sidecar signs begins with a challenge, which is hexadecimal, so neither passes for the other.
_CLIENT: Final = "client"

Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Greeting:
    """A sidecar that answered and proved to be the one of the endpoint file.

    Attributes:
        endpoint: Where it listens, with the build that it says it is.
        is_serving: Whether it takes calls; not while it stops.
    """

    endpoint: Endpoint
    is_serving: bool


def prove(token: str, challenge: str, *, instance_id: str, build: Build) -> Metadata | None:
    """Return a sidecar's answer to a challenge; nothing if the challenge is too long to be one."""
    if len(challenge) > _MAX_CHALLENGE_CHARACTERS:
        return None
    return (
        (INSTANCE, instance_id),
        (VERSION, build.version),
        (PROTOCOL, str(build.protocol)),
        (PROOF, _digest(token, (challenge, instance_id, build.version, str(build.protocol)))),
    )


def knows_token(token: str, challenge: str, knowledge: str) -> bool:
    """Tell whether who sent a challenge knows the token."""
    return hmac.compare_digest(_digest(token, (_CLIENT, challenge)).encode(), knowledge.encode())


def greet(folder: DataFolder, *, wait_s: float) -> Greeting | None:
    """Return the sidecar that the endpoint file names, if it answers in time and proves itself.

    Raises:
        UntrustedPathError: The endpoint file or the socket is not ours alone.
    """
    endpoint = Endpoint.read(folder)
    if endpoint is None:
        return None
    try:
        channel = open_channel(endpoint)
    except SidecarNotRunningError:
        return None
    with channel:
        return _shake_hands(channel, endpoint, wait_s=wait_s)


def _shake_hands(channel: grpc.Channel, endpoint: Endpoint, *, wait_s: float) -> Greeting | None:
    challenge = secrets.token_hex(16)
    try:
        answer, call = health_pb2_grpc.HealthStub(channel).Check.with_call(
            health_pb2.HealthCheckRequest(),
            timeout=wait_s,
            metadata=((CHALLENGE, challenge), (KNOWLEDGE, _digest(endpoint.token, (_CLIENT, challenge)))),
        )
    except grpc.RpcError:
        # Refused, silent or no gRPC server at all: whichever, it is not a sidecar that can be used now.
        return None
    build = _proven_build(_texts(call.initial_metadata() or ()), endpoint, challenge)
    if build is None:
        return None
    known = Endpoint(endpoint.holder, endpoint.address, endpoint.token, build, endpoint.max_message_bytes)
    return Greeting(known, is_serving=answer.status == health_pb2.HealthCheckResponse.SERVING)


def _proven_build(answer: dict[str, str], endpoint: Endpoint, challenge: str) -> Build | None:
    """Return what the other side says it is, or nothing if it cannot prove to be the sidecar of the endpoint file."""
    instance_id, version, protocol = (answer.get(name, "") for name in (INSTANCE, VERSION, PROTOCOL))
    expected = _digest(endpoint.token, (challenge, instance_id, version, protocol))
    is_proven = hmac.compare_digest(expected.encode(), answer.get(PROOF, "").encode())
    if not is_proven or instance_id != endpoint.holder.instance_id or not protocol.isdecimal():
        return None
    return Build(version, int(protocol))


def _digest(token: str, parts: tuple[str, ...]) -> str:
    return hmac.new(token.encode(), "\n".join(parts).encode(), hashlib.sha256).hexdigest()


def _texts(metadata: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    return {key: value for key, value in metadata if isinstance(value, str)}
