"""Runs the embedding process for the sidecar: starts it, takes turns on its pipes, and restarts it when it died.

One request is in the pipe at a time; queries go before documents, since someone waits for them.
"""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Final

from sidecar.adapters.embedders.child_protocol import (
    Embeddings,
    EmbedRequest,
    Failure,
    ProtocolBrokenError,
    receive_embeddings,
    receive_fingerprint,
    send_request,
)
from sidecar.domain.model import ModelFingerprint
from sidecar.errors import EmbedderUnavailableError, EmbeddingFailedError

log = logging.getLogger(__name__)

_CHILD_MODULE: Final = "sidecar.adapters.embedders.sentence_transformers_child"
_LOAD_TIMEOUT_S: Final = 180.0
_REQUEST_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 5.0
_MAX_FAILURES: Final = 5
_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """How the process's Python is started.

    Attributes:
        arguments: The program and the options before `-m`, such as the one that isolates it from the current folder.
        environment: All variables that it gets.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    requests: BinaryIO
    answers: BinaryIO
    fingerprint: ModelFingerprint


class EmbeddingProcess:
    """One child process with a loaded model. Safe to call from several threads."""

    def __init__(self, *, name: str, python: PythonCommand) -> None:
        """Describe the process; nothing is started.

        Args:
            name: What the model's fingerprint calls it.
            python: What runs it.
        """
        self._name = name
        self._python = python
        self._model = ""
        self._turn = threading.Condition()
        self._is_busy = False
        self._queries_waiting = 0
        self._is_closed = False
        self._failures = 0
        self._failed_at = 0.0
        # The one that was started last, which may still load.
        self._process: subprocess.Popen[bytes] | None = None
        self._child: _Child | None = None
        self._fingerprint: ModelFingerprint | None = None

    def load(self, model: str) -> None:
        """Start the process and wait until its model has loaded; seconds, most of them torch's import. Call it once.

        Args:
            model: A model folder, or a hub name in the local cache.

        Raises:
            EmbedderUnavailableError: If it does not load, or `close` was called meanwhile; the process is gone then.
        """
        with self._my_turn(is_query=True):
            self._model = model
            self._child = self._start()
            self._fingerprint = self._child.fingerprint

    @property
    def fingerprint(self) -> ModelFingerprint:
        """What the process said about its model.

        Raises:
            EmbedderUnavailableError: If none was loaded.
        """
        if self._fingerprint is None:
            raise EmbedderUnavailableError("it was not loaded")
        return self._fingerprint

    @property
    def process_id(self) -> int | None:
        """Operating system's id of the process; None while there is none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def embed(self, request: EmbedRequest) -> Embeddings:
        """Return the answer to a request, starting a new process if the last one died.

        Raises:
            EmbeddingFailedError: If the model failed on this request; the process goes on.
            EmbedderUnavailableError: If the process died or was closed, or cannot be started again.
        """
        with self._my_turn(is_query=request.is_query):
            child = self._living_child()
            answer = self._ask(child, request)
            self._failures = 0
            if isinstance(answer, Failure):
                raise EmbeddingFailedError(answer.problem)
            return answer

    def close(self) -> None:
        """End the process at once, a load or a call that runs with it. May be called from any thread, and again."""
        with self._turn:
            self._is_closed = True
            process = self._process
        if process is None:
            return
        # It has nothing to save, and whoever reads its pipe now finds the end of it.
        process.kill()
        with self._my_turn(is_query=True):
            _stop(process)
            self._child = None

    @contextmanager
    def _my_turn(self, *, is_query: bool) -> Iterator[None]:
        with self._turn:
            self._queries_waiting += is_query
            self._turn.wait_for(lambda: not self._is_busy and (is_query or not self._queries_waiting))
            self._queries_waiting -= is_query
            self._is_busy = True
        try:
            yield
        finally:
            with self._turn:
                self._is_busy = False
                self._turn.notify_all()

    def _living_child(self) -> _Child:
        if self._is_closed:
            raise EmbedderUnavailableError("it was closed")
        if self._child is None:
            # Without a bound, a model that ends its process would be loaded again for every call.
            if self._failures >= _MAX_FAILURES and time.monotonic() - self._failed_at < _PAUSE_S:
                raise EmbedderUnavailableError(
                    f"its process ended {self._failures} times in a row; it is tried again within {_PAUSE_S:.0f} s"
                )
            log.info("embedding process restarted", extra={"failures": self._failures})
            self._child = self._restart()
        return self._child

    def _restart(self) -> _Child:
        try:
            child = self._start()
        except EmbedderUnavailableError:
            self._note_failure()
            raise
        if child.fingerprint != self.fingerprint:
            _stop(child.process)
            raise EmbedderUnavailableError("the model's files changed while it ran; run `sidecar restart`")
        return child

    def _start(self) -> _Child:
        process = subprocess.Popen(  # noqa: S603 - our own module, by its full path
            [*self._python.arguments, "-m", _CHILD_MODULE, self._model, self._name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._python.environment,
            # Not the terminal's group: Ctrl-C is for the sidecar, which then closes the pipe.
            start_new_session=os.name != "nt",
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("subprocess made no pipes")
        self._take_over(process)
        answers = process.stdout
        try:
            with _killed_after(process, _LOAD_TIMEOUT_S):
                # `read` of these buffered pipes returns less than asked only at the end.
                greeting = receive_fingerprint(answers)  # type: ignore[arg-type]
        except ProtocolBrokenError as error:
            code = _stop(process)
            raise EmbedderUnavailableError(
                "it was closed"
                if self._is_closed
                else f"its process ended with code {code} while loading {self._model}"
            ) from error
        if isinstance(greeting, Failure):
            _stop(process)
            raise EmbedderUnavailableError(greeting.problem)
        return _Child(process, process.stdin, answers, greeting)  # type: ignore[arg-type]

    def _take_over(self, process: subprocess.Popen[bytes]) -> None:
        """Let `close` know of a new process, unless it was called already."""
        with self._turn:
            is_closed = self._is_closed
            if not is_closed:
                self._process = process
        if is_closed:
            process.kill()
            _stop(process)
            raise EmbedderUnavailableError("it was closed")

    def _ask(self, child: _Child, request: EmbedRequest) -> Embeddings | Failure:
        try:
            with _killed_after(child.process, _REQUEST_TIMEOUT_S):
                send_request(child.requests, request)
                return receive_embeddings(child.answers, dim=self.fingerprint.dim)
        except (OSError, ProtocolBrokenError) as error:
            self._child = None
            self._note_failure()
            code = _stop(child.process)
            raise EmbedderUnavailableError(
                "it was closed"
                if self._is_closed
                else f"its process ended with code {code} during a call; the next call starts it again"
            ) from error

    def _note_failure(self) -> None:
        self._failures += 1
        self._failed_at = time.monotonic()


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], timeout_s: float) -> Iterator[None]:
    """End the process if the block takes longer: reading a pipe cannot be given a deadline on every system."""
    timer = threading.Timer(timeout_s, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _stop(process: subprocess.Popen[bytes]) -> int:
    """Close the pipes, wait a little, kill, and return the exit code."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                # Closing flushes, and a dead child cannot take what was still in the buffer.
                log.debug("pipe of the embedding process was broken already")
    try:
        return process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
