"""Takes the dashboard's third-party files from their npm packages, verbatim, and writes down what they are.

`make web` runs it. Nothing of it is needed at run time or for an install: the files are committed, and a test compares
them with the manifest without a network. Which packages, in which versions, is said in `PACKAGES` and nowhere else.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
VENDOR: Final = ROOT / "sidecar/web/static/vendor"
MANIFEST: Final = VENDOR / "manifest.json"
_PREFIX: Final = "package/"


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """What is taken from one package.

    Attributes:
        name: Also the name of its folder, dots left out.
        licence: As SPDX names it.
        files: Paths inside the package; each is stored under its last part.
    """

    name: str
    version: str
    licence: str
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        """Where its files lie, below `vendor`."""
        return self.name.partition(".")[0]


PACKAGES: Final = (
    NpmPackage("htmx.org", "4.0.1", "0BSD", ("dist/htmx.min.js", "LICENSE")),
    NpmPackage("uplot", "1.6.32", "MIT", ("dist/uPlot.iife.min.js", "dist/uPlot.min.css", "LICENSE")),
    NpmPackage("cytoscape", "3.35.0", "MIT", ("dist/cytoscape.min.js", "LICENSE")),
)


def main(arguments: Sequence[str]) -> int:
    """Fetch everything anew and return the exit status."""
    if arguments:
        sys.stderr.write("usage: python -m tests.architecture.gates.vendor_web\n")
        return 2
    if shutil.which("npm") is None:
        sys.stderr.write("npm is not on PATH; install Node.js, or leave the committed files as they are\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        entries = [_take(package, Path(folder)) for package in PACKAGES]
    MANIFEST.write_text(json.dumps({"packages": entries}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{sum(len(package.files) for package in PACKAGES)} files in {VENDOR.relative_to(ROOT)}\n")
    return 0


def integrity(content: bytes) -> str:
    """Return the hash of a file as npm and browsers write it."""
    return f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"


def _take(package: NpmPackage, folder: Path) -> Mapping[str, object]:
    """Store the files of one package and return its entry in the manifest."""
    command = ["npm", "pack", "--json", "--pack-destination", str(folder), f"{package.name}@{package.version}"]
    outcome = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    packed = json.loads(outcome.stdout)[0]
    archive = folder / packed["filename"]
    target = VENDOR / package.folder
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    files = {}
    with tarfile.open(archive) as tar:
        for path in package.files:
            member = tar.extractfile(f"{_PREFIX}{path}")
            if member is None:
                raise FileNotFoundError(f"{package.name}@{package.version} has no file {path}")
            content = member.read()
            name = Path(path).name
            (target / name).write_bytes(content)
            files[f"{package.folder}/{name}"] = {"from": path, "integrity": integrity(content)}
    return {
        "package": package.name,
        "version": package.version,
        "licence": package.licence,
        "integrity": integrity(archive.read_bytes()),
        "files": files,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
