"""A stand-in for a connected sidecar whose answers a test scripts; for states that a real one is rarely in."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from google.protobuf.message import Message

from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import evidence_service_pb2 as evidence
from sidecar.api.v1 import memory_pb2 as pb
from sidecar.api.v1 import memory_service_pb2 as memory
from sidecar.client import Sidecar


class ScriptedSidecar:
    """Answers each method with what the test set, and keeps what it was asked."""

    def __init__(self, **answers: Message | Exception | Callable[[Any], Message]) -> None:
        self.answers = {
            "get_status": admin.GetStatusResponse(),
            "get_coverage": evidence.GetCoverageResponse(),
            "get_memory": memory.GetMemoryResponse(memory=pb.Memory(content="A text.")),
            **answers,
        }
        self.requests: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def __getattr__(self, method: str) -> Callable[..., Message]:
        answer = self.answers[method]

        def call(request: Message | None = None) -> Message:
            # Asking for the state in passing has no request of its own.
            if request is not None:
                self.requests.append(request)
            if isinstance(answer, Exception):
                raise answer
            return answer if isinstance(answer, Message) else answer(request)

        return call


def connect_to(monkeypatch: pytest.MonkeyPatch, sidecar: ScriptedSidecar) -> None:
    """Make every command reach this stand-in."""

    def connect(home: Path | None = None, **options: object) -> ScriptedSidecar:
        return sidecar

    monkeypatch.setattr(Sidecar, "connect", connect)
