"""Where the sidecar listens: a Unix socket in a folder of ours, or a loopback port.

gRPC takes over a socket path in use, and deletes at its end whatever lies there by then. So it binds a name that only
this run has, the *anchor*; clients use a second link to the same socket, which can be put back if somebody removes it.
"""

import os
import secrets
import sys
from pathlib import Path
from typing import Final, Protocol

import grpc.aio

from sidecar.client.endpoint import DataFolder
from sidecar.client.trusted_files import storage_error
from sidecar.errors import SidecarStartError

_SOCKET_NAME: Final = "sock"
_LOOPBACK: Final = "127.0.0.1"


class Listener(Protocol):
    """A place where clients reach the server."""

    @property
    def address(self) -> str:
        """As gRPC takes it."""
        ...

    def is_reachable(self) -> bool:
        """Return whether the address still leads to this server."""
        ...

    def restore(self) -> bool:
        """Make the address lead here again; return whether that was possible."""
        ...

    def close(self) -> None:
        """Remove what leads here, and nothing that leads elsewhere."""
        ...


class LoopbackListener:
    """A port of 127.0.0.1 that the system chose. Needs no watch: a bound port cannot be taken away."""

    def __init__(self, folder: DataFolder, server: grpc.aio.Server) -> None:
        port = server.add_insecure_port(f"{_LOOPBACK}:0")
        if not port:
            raise SidecarStartError(str(folder.home), f"no port of {_LOOPBACK} can be bound")
        self.address = f"{_LOOPBACK}:{port}"

    def is_reachable(self) -> bool:
        """See `Listener.is_reachable`."""
        return True

    def restore(self) -> bool:
        """See `Listener.restore`."""
        return True

    def close(self) -> None:
        """See `Listener.close`: the port goes with the server."""


class SocketListener:
    """A Unix socket, mode 0600, in a 0700 folder."""

    def __init__(self, folder: DataFolder, server: grpc.aio.Server) -> None:
        socket_folder = folder.prepare_socket_folder()
        self._path = socket_folder / _SOCKET_NAME
        self._anchor = socket_folder / f"{_SOCKET_NAME}.{secrets.token_hex(4)}"
        # We hold the lock on the data folder, so whatever lies here is a dead run's.
        for stale in socket_folder.glob(f"{_SOCKET_NAME}*"):
            stale.unlink()
        try:
            server.add_insecure_port(f"unix:{self._anchor}")
        except RuntimeError as error:
            raise SidecarStartError(str(folder.home), f"the socket {self._anchor} cannot be bound") from error
        self._identity = _identity(self._anchor)
        self.address = f"unix:{self._path}"
        try:
            self._anchor.chmod(0o600)
            self._link()
        except OSError as error:
            raise storage_error(self._path, error) from error

    def is_reachable(self) -> bool:
        """See `Listener.is_reachable`."""
        return _identity(self._path) == self._identity

    def restore(self) -> bool:
        """See `Listener.restore`; impossible once the anchor is gone too."""
        if _identity(self._anchor) != self._identity:
            return False
        try:
            self._link()
        except OSError:
            return False
        return self.is_reachable()

    def close(self) -> None:
        """See `Listener.close`."""
        for path in (self._path, self._anchor):
            if _identity(path) == self._identity:
                path.unlink(missing_ok=True)

    def _link(self) -> None:
        """Put the path in place in one step, so that it never leads to nothing."""
        fresh = self._path.with_name(f"{_SOCKET_NAME}.new")
        fresh.unlink(missing_ok=True)
        os.link(self._anchor, fresh, follow_symlinks=False)
        fresh.replace(self._path)


def open_listener(folder: DataFolder, server: grpc.aio.Server, *, transport: str) -> Listener:
    """Bind the server.

    Args:
        folder: The data folder, locked by us.
        server: Not started yet.
        transport: `unix`, `tcp`, or `auto`: a socket where gRPC can bind one.

    Raises:
        SidecarStartError: The address cannot be bound.
        UntrustedPathError: The folder of the socket is not ours alone.
        StorageError: The folder of the socket cannot be made.
    """
    if transport == "tcp" or (transport == "auto" and sys.platform == "win32"):
        return LoopbackListener(folder, server)
    return SocketListener(folder, server)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
