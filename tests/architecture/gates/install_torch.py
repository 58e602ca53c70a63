"""Installs a CPU build of torch, and refuses a CUDA build of several gigabytes before it is downloaded.

Runs before anything else is installed, so it knows the standard library and pip only. Its arguments go to pip, such as
the index that has the CPU builds.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from pip._vendor.packaging.requirements import Requirement

TORCH: Final = "torch==2.13.0"
_CUDA_NAME: Final = re.compile(r"^(nvidia|cuda|triton)\b")
_ADVICE: Final = f"""\
pip would take a CUDA build of {TORCH} here, several gigabytes that no test uses, so nothing was installed.
PyTorch's "Get started" page names the index that has the CPU builds (choose: Stable, Linux, Pip, Python, CPU). Then

    make setup TORCH_ARGS="--index-url <that index>"
"""


def main(arguments: Sequence[str]) -> int:
    """Install torch unless this version is there already, and return the exit status."""
    if _installed() == TORCH.partition("==")[2]:
        return 0
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *arguments]
    plan = subprocess.run([*pip, "--dry-run", "--report", "-", TORCH], stdout=subprocess.PIPE, check=False)
    if plan.returncode != 0:
        return plan.returncode
    requirements = [
        text for item in json.loads(plan.stdout)["install"] for text in item["metadata"].get("requires_dist", [])
    ]
    if cuda := cuda_requirements(requirements):
        sys.stderr.write(f"{_ADVICE}It would need: {', '.join(cuda)}\n")
        return 1
    # The pure Python packages that torch needs are in requirements-dev.lock with their hashes, hence --no-deps above.
    return subprocess.run([*pip, TORCH], check=False).returncode


def cuda_requirements(requirements: Iterable[str]) -> list[str]:
    """Return the names of those requirements that only a CUDA build has on this machine."""
    parsed = [Requirement(text) for text in requirements]
    return [
        item.name
        for item in parsed
        if _CUDA_NAME.match(item.name) and (item.marker is None or item.marker.evaluate({"extra": ""}))
    ]


def _installed() -> str:
    """Return the public version of the torch that is installed, or nothing."""
    try:
        return importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
