"""What every command shares: its data folder, how it answers, and its way to the sidecar."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from sidecar.cli.output import Output

if TYPE_CHECKING:
    from sidecar.client import Sidecar

Serve: TypeAlias = Callable[[Sequence[str]], int]
"""Runs the sidecar in this process until it is told to stop; takes the arguments of `serve`, returns the exit code."""

CLIENT: Final = "cli"

HomeOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--home", envvar="SIDECAR_HOME", help="Data folder.", show_default="the user's own", metavar="PATH"),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Answer with one JSON document.")]


@dataclass(frozen=True)
class Globals:
    """What was said before the name of the command."""

    serve: Serve
    home: Path | None = None
    is_json: bool = False


@dataclass(frozen=True)
class Invocation:
    """One command at work.

    Attributes:
        home: The data folder that was named; without one SIDECAR_HOME, else the user's own.
        output: Where its answer goes.
    """

    home: Path | None
    output: Output

    @classmethod
    def of(cls, context: typer.Context, home: Path | None, *, is_json: bool) -> "Invocation":
        """Return the invocation, options of the command before those that stand ahead of its name."""
        said = context.find_object(Globals)
        assert said is not None
        # Typer resolves SIDECAR_HOME for both places, so that a folder named ahead must win over the variable.
        is_from_variable = home is not None and str(home) == os.environ.get("SIDECAR_HOME")
        chosen = said.home if home is None or (is_from_variable and said.home is not None) else home
        return cls(chosen, Output(is_json=is_json or said.is_json))

    @contextmanager
    def sidecar(self, *, start: bool = True) -> Iterator["Sidecar"]:
        """Connect to the sidecar, started if none runs unless `start` is false.

        Raises:
            UnavailableError: None runs, it could not be started, or it does not answer.
        """
        # gRPC takes 0.1 s to import, which `--help` need not wait for.
        from sidecar.api.v1.memory_pb2 import CallContext  # noqa: PLC0415
        from sidecar.client import Sidecar  # noqa: PLC0415

        context = CallContext(client=CLIENT, project=project_here())
        with self.output.waiting("Waiting for the sidecar …"):
            connected = Sidecar.connect(self.home, start=start, context=context)
        with connected:
            yield connected


def project_here() -> str:
    """Return the project of the working directory; empty for none."""
    from client_plugins.kit.project import project_name  # noqa: PLC0415

    try:
        return project_name(str(Path.cwd()))
    except FileNotFoundError:
        # The working directory was removed; it is no project then.
        return ""
