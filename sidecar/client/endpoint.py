"""What lies where in the data folder, and how a sidecar says there where it listens. Used by sidecar and clients.

Nothing in these files is proof: only an answer to a handshake is (see `sidecar.client.handshake`).
"""

import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import platformdirs

from sidecar.client.build import Build
from sidecar.client.trusted_files import (
    check_own_purpose,
    ensure_private_folder,
    read_private_file,
    replace_private_file,
)

HOME_VARIABLE: Final = "SIDECAR_HOME"
_APPLICATION: Final = "memory-sidecar"
# The kernel's limit is 107 bytes on Linux and 103 on macOS.
_MAX_SOCKET_PATH_BYTES: Final = 100
# Enough for `sock.` and eight characters.
_SOCKET_NAME_BYTES: Final = 16
_MAX_RUNTIME_BASE_BYTES: Final = 32


def resolve_home(home: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """Return the absolute path of the data folder: the one given, else SIDECAR_HOME, else the user's own."""
    variables = os.environ if environment is None else environment
    chosen = home or variables.get(HOME_VARIABLE) or platformdirs.user_data_path(_APPLICATION, appauthor=False)
    # Not resolved: a link in the place of the folder itself must be seen, and refused, later.
    return Path(os.path.abspath(Path(chosen).expanduser()))  # noqa: PTH100 - Path.absolute() keeps `..`


@dataclass(frozen=True)
class DataFolder:
    """The layout of one data folder. Paths only; nothing is made until `prepare`."""

    home: Path

    @classmethod
    def at(cls, home: Path | str | None = None) -> Self:
        """Return the layout of the folder that `resolve_home` names."""
        return cls(resolve_home(home))

    @property
    def database_path(self) -> Path:
        """The memories."""
        return self.home / "memories.db"

    @property
    def index_folder(self) -> Path:
        """Snapshots of the vector index; can be deleted at any time."""
        return self.home / "index"

    @property
    def settings_path(self) -> Path:
        """The settings file, if the user made one."""
        return self.home / "config.toml"

    @property
    def log_folder(self) -> Path:
        """Logs of the sidecar and its children."""
        return self.home / "logs"

    @property
    def log_path(self) -> Path:
        """The sidecar's own log."""
        return self.log_folder / "sidecar.log"

    @property
    def start_log_path(self) -> Path:
        """What a sidecar that a client started said on stdout and stderr; written anew at each start."""
        return self.log_folder / "start.log"

    @property
    def lock_path(self) -> Path:
        """Locked by the sidecar as long as it lives."""
        return self.home / "sidecar.lock"

    @property
    def start_lock_path(self) -> Path:
        """Locked by a client while it looks again and starts a sidecar."""
        return self.home / "start.lock"

    @property
    def holder_path(self) -> Path:
        """Which process holds the lock; written before anything else."""
        return self.home / "holder.json"

    @property
    def endpoint_path(self) -> Path:
        """Where the sidecar listens, and its token."""
        return self.home / "endpoint.json"

    def prepare(self) -> None:
        """Make the folders that are missing and see to it that all are ours alone.

        Raises:
            UntrustedPathError: One of them is a link, no folder, or another user's, or home serves another purpose.
            StorageError: One of them cannot be made.
        """
        ensure_private_folder(self.home, signs=self._signs)
        ensure_private_folder(self.log_folder)

    def check_purpose(self) -> None:
        """See to it that the folder, which must be there, may be ours alone; nothing is changed.

        Raises:
            UntrustedPathError: It serves another purpose.
            StorageError: It cannot be read.
        """
        check_own_purpose(self.home, signs=self._signs)

    @property
    def _signs(self) -> frozenset[str]:
        own = (self.database_path, self.settings_path, self.lock_path, self.holder_path, self.endpoint_path)
        return frozenset(path.name for path in own)

    def prepare_socket_folder(self) -> Path:
        """Make the folder of the socket and return it: in the data folder, or elsewhere if that path is too long.

        Raises:
            UntrustedPathError: It is a link, no folder, or another user's.
            StorageError: It cannot be made.
        """
        folder = self.home / "run"
        if len(os.fsencode(folder)) + 1 + _SOCKET_NAME_BYTES <= _MAX_SOCKET_PATH_BYTES:
            ensure_private_folder(folder)
            return folder
        # The folder that all data folders of the user share is checked too: it may lie where everybody can write.
        shared = _runtime_base() / f"{_APPLICATION}-{_user_id()}"
        ensure_private_folder(shared)
        folder = shared / hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        ensure_private_folder(folder)
        return folder


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock on a data folder.

    Attributes:
        pid: Its process id.
        started_at: When it was started, seconds since the epoch, as the system tells; a reused pid differs in it.
        instance_id: New at every start.
    """

    pid: int
    started_at: float
    instance_id: str

    def write(self, folder: DataFolder) -> None:
        """Write `holder.json`."""
        replace_private_file(folder.holder_path, _encode(dataclasses.asdict(self)))

    @classmethod
    def read(cls, folder: DataFolder) -> Self | None:
        """Return what `holder.json` says, or nothing if it is missing or makes no sense.

        Raises:
            UntrustedPathError: The file is not ours alone.
        """
        fields = _Fields.read(folder.holder_path)
        if fields is None:
            return None
        try:
            return cls(
                pid=fields.integer("pid"),
                started_at=fields.number("started_at"),
                instance_id=fields.text("instance_id"),
            )
        except _UnreadableError:
            return None


@dataclass(frozen=True)
class Endpoint:
    """Where one sidecar listens.

    Attributes:
        holder: Its process.
        address: As gRPC takes it: `unix:/absolute/path` or `127.0.0.1:port`.
        token: What every call must carry; never shown or logged.
        build: What it is.
        max_message_bytes: Most that one message may have, either way.
    """

    holder: Holder
    address: str
    token: str = field(repr=False)
    build: Build
    max_message_bytes: int

    @property
    def socket_path(self) -> Path | None:
        """Path of the Unix socket; nothing over TCP."""
        scheme, _, path = self.address.partition(":")
        return Path(path) if scheme == "unix" else None

    def write(self, folder: DataFolder) -> None:
        """Write `endpoint.json`."""
        content = {
            **dataclasses.asdict(self.holder),
            "address": self.address,
            "token": self.token,
            "version": self.build.version,
            "protocol": self.build.protocol,
            "max_message_bytes": self.max_message_bytes,
        }
        replace_private_file(folder.endpoint_path, _encode(content))

    @classmethod
    def read(cls, folder: DataFolder) -> Self | None:
        """Return what `endpoint.json` says, or nothing if it is missing, torn or makes no sense.

        Raises:
            UntrustedPathError: The file is not ours alone.
        """
        fields = _Fields.read(folder.endpoint_path)
        if fields is None:
            return None
        try:
            return cls(
                holder=Holder(fields.integer("pid"), fields.number("started_at"), fields.text("instance_id")),
                address=fields.address("address"),
                token=fields.text("token"),
                build=Build(fields.text("version"), fields.integer("protocol")),
                max_message_bytes=fields.integer("max_message_bytes"),
            )
        except _UnreadableError:
            return None


class _UnreadableError(Exception):
    """A file of ours lacks a field or has nonsense in it."""


@dataclass(frozen=True)
class _Fields:
    """The fields of a small JSON file, taken out with their types checked."""

    values: Mapping[str, object]

    @classmethod
    def read(cls, path: Path) -> Self | None:
        content = read_private_file(path)
        if content is None:
            return None
        try:
            values = json.loads(content)
        # A RecursionError comes from thousands of brackets; whoever wrote them, it was not us.
        except (ValueError, RecursionError):
            return None
        return cls(values) if isinstance(values, dict) else None

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise _UnreadableError(name)
        return value

    def integer(self, name: str) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**62:
            raise _UnreadableError(name)
        return value

    def number(self, name: str) -> float:
        value = self.values.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 2**62:
            raise _UnreadableError(name)
        return float(value)

    def address(self, name: str) -> str:
        """Return an address on this machine; a file that sends us elsewhere is not one of ours."""
        value = self.text(name)
        scheme, _, rest = value.partition(":")
        is_socket = scheme == "unix" and rest.startswith("/")
        is_loopback = scheme == "127.0.0.1" and rest.isdecimal() and 0 < int(rest) < 65536
        if not (is_socket or is_loopback):
            raise _UnreadableError(name)
        return value


def _encode(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _runtime_base() -> Path:
    """Return a short folder that holds per-user sockets; it need not be private itself."""
    # platformdirs would warn and guess where the variable is unset, as it often is.
    for candidate in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir()):
        if candidate and len(os.fsencode(candidate)) <= _MAX_RUNTIME_BASE_BYTES and Path(candidate).is_dir():
            return Path(candidate)
    return Path("/tmp")  # noqa: S108 - the folder made in it is checked for owner, kind and mode


def _user_id() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else "user"
