"""The lock files pin and hash everything but torch, and agree with pyproject.toml and with each other."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Final

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.gates.install_torch import TORCH, cuda_requirements
from tests.architecture.sources import ROOT

PLAIN: Final = "requirements.lock"
DEV: Final = "requirements-dev.lock"
_UNLOCKED: Final = frozenset({"torch"})
_CUDA: Final = re.compile(r"^(nvidia|cuda|triton)\b")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned package of a lock; a package with several has one for each range of Python versions."""

    name: str
    version: str
    marker: Marker | None
    hash_count: int


@cache
def _pins(lock: str) -> tuple[Pin, ...]:
    """Return the pins of a lock file."""
    entries = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pins = []
    for entry in filter(None, entries):
        requirement = Requirement(entry.partition(" --hash=")[0])
        version = str(requirement.specifier).removeprefix("==")
        pins.append(
            Pin(canonicalize_name(requirement.name), version, requirement.marker, entry.count("--hash=sha256:"))
        )
    return tuple(pins)


def _wanted(lock: str) -> list[Requirement]:
    """Return the requirements in pyproject.toml that a lock is made from."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    texts = list(pyproject["project"]["dependencies"])
    if lock == DEV:
        texts += pyproject["project"]["optional-dependencies"]["sentence-transformers"]
        texts += pyproject["dependency-groups"]["dev"]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("lock", [PLAIN, DEV])
def test_lock_satisfies_pyproject(lock: str) -> None:
    """After a change of pyproject.toml somebody has to run `make lock`."""
    versions = {pin.name: pin.version for pin in _pins(lock)}
    stale = [
        str(wanted)
        for wanted in _wanted(lock)
        if (name := canonicalize_name(wanted.name)) not in _UNLOCKED
        and (name not in versions or not wanted.specifier.contains(versions[name], prereleases=True))
    ]
    assert not stale, f"run `make lock`: {lock} does not satisfy {', '.join(stale)}"


@pytest.mark.parametrize("lock", [PLAIN, DEV])
def test_every_pin_has_hashes(lock: str) -> None:
    """A hash makes sure that everyone installs the bytes that were tested."""
    assert not [pin.name for pin in _pins(lock) if pin.hash_count == 0 or not pin.version]


@pytest.mark.parametrize("lock", [PLAIN, DEV])
def test_lock_names_no_address(lock: str) -> None:
    """Where packages come from is the user's choice, so a lock must not say it."""
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


def test_both_locks_agree() -> None:
    """What the tests ran with is what a user gets."""
    assert {(pin.name, pin.version) for pin in _pins(PLAIN)} <= {(pin.name, pin.version) for pin in _pins(DEV)}


def test_no_lock_pulls_a_cuda_build() -> None:
    """Several gigabytes of CUDA libraries must never come in by the way."""
    heavy = [pin.name for lock in (PLAIN, DEV) for pin in _pins(lock) if pin.name == "torch" or _CUDA.match(pin.name)]
    assert not heavy, f"see `make lock` in the Makefile: {', '.join(heavy)}"


def test_plain_lock_is_light() -> None:
    """A plain install serves recall by meaning without torch and what comes with it."""
    names = {pin.name for pin in _pins(PLAIN)}
    assert not names & {"torch", "transformers", "sentence-transformers", "scipy", "scikit-learn"}


def test_torch_is_the_version_that_pyproject_asks_for() -> None:
    """The set-up installs torch by itself, before the lock, and must not install another version."""
    assert Requirement(TORCH) in _wanted(DEV)


def test_cuda_build_is_told_from_cpu_build() -> None:
    """The set-up stops before it downloads gigabytes, and only then."""
    cpu = ["filelock", "sympy>=1.13.3", "opt-einsum>=3.3; extra == 'opt-einsum'"]
    cuda = [*cpu, "nvidia-cublas==13.1.1; sys_platform != 'other'", "triton==3.7.1"]
    assert cuda_requirements(cpu) == []
    assert cuda_requirements(cuda) == ["nvidia-cublas", "triton"]
    assert cuda_requirements(["triton==3.7.1; sys_platform == 'other'"]) == []
