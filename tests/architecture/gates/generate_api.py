"""Generates sidecar/api/v1 from proto/. With `--check` it writes nothing there and tells what differs."""

import difflib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PROTO: Final = ROOT / "proto"
PACKAGE: Final = Path("sidecar/api/v1")
_GENERATED: Final = "*_pb2*.py*"
_SHOWN_LINES: Final = 40


class GenerationError(Exception):
    """The compiler refused a proto file; it has said why."""


def main(arguments: Sequence[str]) -> int:
    """Generate, or with `--check` compare, and return the exit status."""
    check = list(arguments) == ["--check"]
    if arguments and not check:
        sys.stderr.write(f"unknown arguments {' '.join(arguments)}; only --check is known\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            generate(Path(folder))
        except GenerationError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        fresh = _read(Path(folder) / PACKAGE)
    committed = _read(ROOT / PACKAGE)
    if check:
        return _report(committed, fresh)
    for name in committed.keys() - fresh.keys():
        (ROOT / PACKAGE / name).unlink()
    for name, text in fresh.items():
        (ROOT / PACKAGE / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"generated {len(fresh)} files in {PACKAGE}\n")
    return 0


def generate(target: Path) -> None:
    """Write the modules and stubs of every proto file below `target`, at the path that their imports expect.

    Raises:
        GenerationError: If the compiler refuses a file.
    """
    protos = sorted(str(path.relative_to(PROTO)) for path in (PROTO / PACKAGE).glob("*.proto"))
    if not protos:
        return
    binaries = Path(sys.executable).parent
    command = [
        *(sys.executable, "-m", "grpc_tools.protoc", "-I", str(PROTO), "-I", str(files("grpc_tools") / "_proto")),
        *(f"--plugin={name}={_executable(binaries, name)}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")),
        *(f"--{kind}_out={target}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")),
    ]
    # The plugins report every file they write on stderr; that is of use only when something fails.
    outcome = subprocess.run([*command, *protos], capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise GenerationError(outcome.stderr)


def _executable(folder: Path, name: str) -> Path:
    """Return the path of a script of this environment."""
    windows = folder / f"{name}.exe"
    return windows if windows.exists() else folder / name


def _read(folder: Path) -> dict[str, str]:
    """Return the generated files of a folder by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob(_GENERATED)}


def _report(committed: dict[str, str], fresh: dict[str, str]) -> int:
    """Tell how the committed files differ from fresh ones, and return the exit status."""
    stale = sorted(name for name in committed.keys() | fresh.keys() if committed.get(name) != fresh.get(name))
    if not stale:
        sys.stdout.write(f"{len(fresh)} generated files are what proto/ gives\n")
        return 0
    for name in stale:
        old, new = (text.get(name, "").splitlines() for text in (committed, fresh))
        lines = list(difflib.unified_diff(old, new, f"committed/{name}", f"fresh/{name}", lineterm="", n=1))
        sys.stdout.write("\n".join(lines[:_SHOWN_LINES]) + "\n")
        if len(lines) > _SHOWN_LINES:
            sys.stdout.write(f"... and {len(lines) - _SHOWN_LINES} more lines\n")
    sys.stdout.write(f"not what proto/ gives: {', '.join(stale)}; run `make proto` and commit the result\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
