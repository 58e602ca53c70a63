"""Who imports whom, beyond what .importlinter can say, and proof that each of its contracts bites."""

import ast
import configparser
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.sources import PRODUCT, ROOT, Module, modules

_CONTRACTS: Final = ROOT / ".importlinter"
_OPEN_TO_PLUGINS: Final = ("sidecar.api", "sidecar.client", "sidecar.domain", "sidecar.errors")
# Stemming is a pure function of a word, and a rule of ours what counts as the same word.
_PURE_LIBRARIES: Final = frozenset({"snowballstemmer"})
_OF_THE_DASHBOARD: Final = ("jinja2", "starlette", "uvicorn", "sidecar.web.app")
_HEAVY: Final = ("apsw", "faiss", "mcp", "numpy", "onnxruntime", "sqlite3", "tokenizers", "torch")

# (contract, file, an import that it forbids)
_ILLEGAL: Final = (
    ("layers", "sidecar/domain/x.py", "import sidecar.use_cases.y"),
    ("layers", "sidecar/adapters/x.py", "import sidecar.rpc.y"),
    ("layers", "sidecar/unheard_of.py", ""),
    ("domain-is-pure", "sidecar/domain/x.py", "import time"),
    ("libraries-stay-in-adapters", "sidecar/use_cases/x.py", "import faiss"),
    ("grpc-stays-at-the-edge", "sidecar/use_cases/x.py", "import grpc"),
    ("web-libraries-stay-in-web", "sidecar/adapters/x.py", "import starlette"),
    ("client-is-thin", "sidecar/domain/x.py", "import numpy"),
    ("no-system-sqlite", "sidecar/adapters/x.py", "import sqlite3"),
    ("plugins-are-clients", "client_plugins/x.py", "import sidecar.adapters.y"),
    ("commands-start-plugins", "sidecar/use_cases/x.py", "import client_plugins"),
)


def _contract_ids() -> set[str]:
    """Return the ids of the contracts in force."""
    parser = configparser.ConfigParser()
    parser.read(_CONTRACTS, encoding="utf-8")
    return {name.rpartition(":")[2] for name in parser.sections() if ":contract:" in name}


def _imported(module: Module) -> Iterator[str]:
    """Yield the dotted names that a module imports, wherever in it."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from sidecar import rpc` imports sidecar.rpc, so the names count too.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _has_content(package: Path) -> bool:
    """Tell whether a package is more than its docstring."""
    files = [path for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py"]
    return bool(files)


@pytest.fixture
def skeleton(tmp_path: Path) -> Path:
    """Return a folder with an empty package for each one of ours, where illegal imports can be tried."""
    for top in PRODUCT:
        (tmp_path / top).mkdir()
        (tmp_path / top / "__init__.py").touch()
    layers = "testing cli server rpc adapters client use_cases ports domain errors api"
    for name in layers.split():
        (tmp_path / "sidecar" / name).mkdir()
        (tmp_path / "sidecar" / name / "__init__.py").touch()
    for name in ("use_cases", "rpc", "adapters"):
        (tmp_path / "sidecar" / name / "y.py").touch()
    (tmp_path / "sidecar/client/__init__.py").write_text("import sidecar.domain\n", encoding="utf-8")
    # As if the rest of the package used the domain's module that the client-is-thin case makes heavy.
    (tmp_path / "sidecar/domain/__init__.py").write_text("from sidecar.domain import x\n", encoding="utf-8")
    (tmp_path / "sidecar/domain/x.py").touch()
    return tmp_path


def _broken(folder: Path, contract: str) -> bool:
    """Tell whether the contract is broken by the packages in a folder."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(_CONTRACTS), "--no-cache"]
    outcome = subprocess.run(
        [*command, "--contract", contract], cwd=folder, capture_output=True, text=True, check=False
    )
    counts = {0: "1 kept, 0 broken", 1: "0 kept, 1 broken"}
    assert counts.get(outcome.returncode, "?") in outcome.stdout, outcome.stdout + outcome.stderr
    return outcome.returncode == 1


@pytest.mark.parametrize(("contract", "path", "statement"), _ILLEGAL)
def test_contract_refuses_what_it_is_for(skeleton: Path, contract: str, path: str, statement: str) -> None:
    """A contract with a slip in it would keep saying yes."""
    (skeleton / path).write_text(f"{statement}\n", encoding="utf-8")
    assert _broken(skeleton, contract)


def test_allowed_imports_break_no_contract(skeleton: Path) -> None:
    """The illegal imports above are refused for themselves, not because the skeleton is broken anyway."""
    (skeleton / "sidecar/adapters/x.py").write_text("import faiss, apsw\nimport sidecar.ports\n", encoding="utf-8")
    (skeleton / "sidecar/rpc/x.py").write_text("import grpc\nimport sidecar.use_cases.y\n", encoding="utf-8")
    (skeleton / "client_plugins/x.py").write_text("import sidecar.client\nimport sidecar.errors\n", encoding="utf-8")
    assert not [contract for contract in sorted(_contract_ids()) if _broken(skeleton, contract)]


def test_every_contract_is_shown_to_bite() -> None:
    """Whoever adds a contract also shows an import that it refuses."""
    assert _contract_ids() == {contract for contract, _, _ in _ILLEGAL}


def test_plugins_use_only_what_is_open_to_them() -> None:
    """A package added to `sidecar` later is closed to plugins until it is opened on purpose."""
    closed = [
        f"{module.path} imports {name}"
        for module in modules("client_plugins")
        for name in _imported(module)
        if name.partition(".")[0] == "sidecar" and not f"{name}.".startswith(tuple(f"{p}." for p in _OPEN_TO_PLUGINS))
    ]
    assert not closed, "\n".join(closed)


def test_domain_knows_no_framework() -> None:
    """Rules that depend on no package can be read, tested and moved anywhere."""
    foreign = [
        f"{module.path} imports {name}"
        for module in modules("sidecar")
        if module.path.is_relative_to("sidecar/domain")
        for name in _imported(module)
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "sidecar", *_PURE_LIBRARIES}
    ]
    assert not foreign, "\n".join(foreign)


@pytest.mark.skipif(not _has_content(Path("sidecar/client")), reason="sidecar.client is still empty")
def test_importing_the_client_loads_no_engine() -> None:
    """A hook or a bridge starts in milliseconds only if the client pulls in nothing heavy, by whatever way."""
    code = f"import sys, sidecar.client; print(*sorted(set({_HEAVY!r}) & set(sys.modules)))"
    outcome = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == []


@pytest.mark.parametrize("module", ["sidecar.server.compose", "sidecar.server.command", "sidecar.cli.app"])
def test_nothing_of_the_dashboard_is_imported_before_somebody_opens_it(module: str) -> None:
    """Its libraries take a tenth of a second and some megabytes, which every start would pay."""
    code = f"import sys, {module}; print(*sorted(set({_OF_THE_DASHBOARD!r}) & set(sys.modules)))"
    outcome = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.split() == []
