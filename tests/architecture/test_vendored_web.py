"""The dashboard's third-party files are those of the packages that the manifest names, unchanged."""

import json
import re
from typing import Any

from tests.architecture.gates.vendor_web import MANIFEST, PACKAGES, VENDOR, integrity
from tests.architecture.sources import ROOT


def _entries() -> dict[str, dict[str, Any]]:
    return {entry["package"]: entry for entry in json.loads(MANIFEST.read_text(encoding="utf-8"))["packages"]}


def test_every_file_has_the_hash_in_the_manifest_and_no_other_is_there() -> None:
    """A script that somebody touched, or that nobody knows the origin of, must not be served."""
    named = {name: told["integrity"] for entry in _entries().values() for name, told in entry["files"].items()}
    there = {path.relative_to(VENDOR).as_posix(): path for path in VENDOR.rglob("*") if path.is_file()}
    assert there.keys() - {MANIFEST.name} == named.keys()
    changed = [name for name, told in named.items() if integrity(there[name].read_bytes()) != told]
    assert not changed, f"run `make web`: {', '.join(changed)}"


def test_the_manifest_is_what_make_web_takes() -> None:
    """Who raises a version also runs `make web`."""
    told = {name: (entry["version"], entry["licence"]) for name, entry in _entries().items()}
    assert told == {package.name: (package.version, package.licence) for package in PACKAGES}


def test_every_package_has_its_licence_beside_it_and_in_the_notice() -> None:
    """The licences ask for it."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    for package in PACKAGES:
        assert (VENDOR / package.folder / "LICENSE").stat().st_size > 0
        assert re.search(rf"{re.escape(package.name)} {re.escape(package.version)}\b", notice), package.name
