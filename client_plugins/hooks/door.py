"""The way to a sidecar that runs: its door for hooks, a Unix socket. Starts nothing and waits for nobody but an answer.

What is checked of files and socket is what `sidecar.client.trusted_files` checks; that package imports gRPC.
"""

import json
import os
import socket
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Self

from client_plugins.hooks.payload import JsonObject, decode_object, object_field, text_field

_SOCKET_SCHEME = "unix:"
_DOOR_NAME = "hooks"
_MAX_ENDPOINT_BYTES = 16 * 1024
_MAX_ANSWER_BYTES = 1024 * 1024
_CONNECT_WITHIN_S = 0.2
_OTHERS = 0o077


class Call(NamedTuple):
    """A call of the contract: the method's name, and its request as protobuf writes it in JSON."""

    method: str
    request: JsonObject


class Address(NamedTuple):
    """Where the sidecar of a data folder says that it listens, and its token."""

    address: str
    token: str

    @classmethod
    def of(cls, home: Path) -> Self | None:
        """Return what the endpoint file says; None if there is none, or it is not ours alone."""
        endpoint = decode_object(_read_private(home / "endpoint.json"))
        address, token = text_field(endpoint, "address"), text_field(endpoint, "token")
        return cls(address, token) if address and token else None

    @property
    def door_path(self) -> Path | None:
        """Path of the door; None where the sidecar listens on no Unix socket."""
        path = Path(self.address.removeprefix(_SOCKET_SCHEME))
        is_socket = self.address.startswith(_SOCKET_SCHEME) and path.is_absolute()
        return path.with_name(_DOOR_NAME) if is_socket else None


class Door:
    """An open door."""

    def __init__(self, connected: socket.socket, token: str) -> None:
        self._socket = connected
        self._token = token

    @classmethod
    def of(cls, address: Address) -> Self | None:
        """Return the door of a sidecar; None if it has none, or nobody is behind it."""
        path = address.door_path
        if path is None:
            return None
        try:
            found = path.lstat()
            if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
                return None
        except OSError:
            return None
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.settimeout(_CONNECT_WITHIN_S)
        try:
            connected.connect(str(path))
        except OSError:
            # Refused, or with a queue so long that it stands still.
            connected.close()
            return None
        return cls(connected, address.token)

    def close(self) -> None:
        """Leave; what was sent is carried out."""
        self._socket.close()

    def tell(self, calls: Iterable[Call]) -> None:
        """Send calls, and leave before they are answered: they are carried out all the same.

        Raises:
            OSError: If they could not be sent.
        """
        self._socket.sendall(b"".join(self._line(call, is_quiet=True) for call in calls))

    def ask(self, call: Call) -> JsonObject:
        """Return the answer to a call; an empty one if it failed. Waits for as long as this process may.

        Raises:
            OSError: If the sidecar went away.
        """
        self._socket.sendall(self._line(call, is_quiet=False))
        self._socket.settimeout(None)
        answer = bytearray()
        while not answer.endswith(b"\n") and len(answer) < _MAX_ANSWER_BYTES:
            piece = self._socket.recv(65_536)
            if not piece:
                break
            answer += piece
        return object_field(decode_object(bytes(answer)), "answer")

    def _line(self, call: Call, *, is_quiet: bool) -> bytes:
        said = {"token": self._token, "method": call.method, "request": call.request, "quiet": is_quiet}
        return json.dumps(said).encode() + b"\n"


def _read_private(path: Path) -> bytes:
    """Return the content of a small file that is ours alone; nothing if it is not, or not there."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return b""
    try:
        found = os.fstat(descriptor)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
        return os.read(descriptor, _MAX_ENDPOINT_BYTES) if is_ours else b""
    finally:
        os.close(descriptor)
