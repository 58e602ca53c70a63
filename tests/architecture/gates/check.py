"""Runs every check, also after one has failed, and sums up. `make check` is this.

Adding a check is one line in `STEPS`. Quick ones come first; the tests come last so that their closing line is near
the summary.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
_BIN: Final = Path(sys.executable).parent
_PYTHON: Final = sys.executable
_RELEASE_TAGS: Final = "v[0-9]*"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step comes to: a command to run, or why there is nothing to run."""

    command: Sequence[str] = ()
    skipped_because: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One check.

    Attributes:
        name: What is typed to run it alone and shown in the summary.
        plan: Called when its turn comes.
    """

    name: str
    plan: Callable[[], Plan]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended."""

    name: str
    verdict: str
    duration_s: float


def _always(*command: str) -> Callable[[], Plan]:
    """Return a plan that runs this command."""
    return lambda: Plan(command)


def _tool(name: str) -> str:
    """Return the path of a program of this environment, whatever PATH says."""
    return str(_BIN / name)


def _buf_lint() -> Plan:
    """Lint the contract, which buf refuses to do for a folder without proto files."""
    if not any((ROOT / "proto").rglob("*.proto")):
        return Plan(skipped_because="there are no proto files")
    return Plan((_tool("buf"), "lint", "proto"))


def _buf_breaking() -> Plan:
    """Compare the contract with the last release's."""
    git = ("git", "tag", "--list", _RELEASE_TAGS, "--sort=-version:refname", "--merged", "HEAD")
    tags = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if tags.returncode != 0:
        return Plan(skipped_because=f"git does not tell the releases: {tags.stderr.strip()}")
    if not tags.stdout:
        return Plan(skipped_because="nothing is released yet: no tag v* leads here")
    return Plan((_tool("buf"), "breaking", "proto", "--against", f".git#tag={tags.stdout.split()[0]},subdir=proto"))


STEPS: Final = (
    Step("ruff-format", _always(_tool("ruff"), "format", "--check")),
    Step("ruff", _always(_tool("ruff"), "check")),
    Step("lint-imports", _always(_tool("lint-imports"))),
    Step("buf-lint", _buf_lint),
    Step("buf-breaking", _buf_breaking),
    Step("proto-freshness", _always(_PYTHON, "-m", "tests.architecture.gates.generate_api", "--check")),
    Step("mypy", _always(_tool("mypy"))),
    Step("extension", _always(_PYTHON, "-m", "tests.architecture.gates.vscode_extension")),
    Step("browser", _always(_PYTHON, "-m", "tests.architecture.gates.install_browser")),
    Step("pytest", _always(_PYTHON, "-m", "pytest", "-q", "-rfEs", "-n", "3", "--dist", "worksteal")),
)


def main(arguments: Sequence[str]) -> int:
    """Run the named steps, or all, and return 0 only if none failed."""
    known = [step.name for step in STEPS]
    if unknown := [name for name in arguments if name not in known]:
        sys.stderr.write(f"no step named {', '.join(unknown)}; there are {', '.join(known)}\n")
        return 2
    outcomes = [_run(step) for step in STEPS if not arguments or step.name in arguments]
    _say("\n=== summary")
    for outcome in outcomes:
        _say(f"{outcome.verdict:<8}{outcome.name:<17}{outcome.duration_s:6.1f} s")
    failed = [outcome.name for outcome in outcomes if outcome.verdict == "FAILED"]
    _say(f"FAILED: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def _run(step: Step) -> Outcome:
    """Run one step with its output passed through."""
    started = time.monotonic()
    plan = step.plan()
    if plan.skipped_because:
        _say(f"\n=== {step.name}: skipped, {plan.skipped_because}")
        return Outcome(step.name, "skipped", 0.0)
    _say(f"\n=== {step.name}: {' '.join(Path(part).name if part.startswith('/') else part for part in plan.command)}")
    status = subprocess.run(plan.command, cwd=ROOT, check=False).returncode
    return Outcome(step.name, "FAILED" if status else "ok", time.monotonic() - started)


def _say(text: str) -> None:
    """Print a line at once, so that it stands before what the next command prints."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
