"""The bridge before MCP's own inspector: it lists every tool, and finds nothing that a strict client would refuse."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sidecar.client import stop
from sidecar.errors import SidecarNotRunningError
from tests.e2e.test_mcp_bridge import CORE
from tests.e2e.test_mcp_tools import REST
from tests.lab.client_run import ClientNotInstalledError, find_client

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
LEAST_NODE = (22, 19)


@pytest.fixture
def inspector() -> Path:
    """Return the inspector's program; skip without it, or without a Node that it runs on beside it."""
    try:
        program, node = find_client("mcp-inspector"), find_client("node")
    except ClientNotInstalledError as error:
        pytest.skip(str(error))
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(map(int, told.lstrip("v").split(".")[:2])) < LEAST_NODE:
        pytest.skip(f"the inspector needs Node 22.19 or newer, and {node} is {told}; `make lab` installs one")
    return program


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(("flags", "names"), [((), CORE), (("--tools", "all"), [*CORE, *REST])], ids=["core", "all"])
def test_strict_listing_has_no_finding(
    inspector: Path, tmp_path: Path, era: str, flags: tuple[str, ...], names: list[str]
) -> None:
    """Exit 6 would be a schema that some client refuses, and with it every tool; a warning would be on stderr."""
    home = tmp_path / "home"
    found = subprocess.run(
        [
            inspector,
            *("--cli", sys.executable, "-m", "sidecar", "mcp", *flags),
            *("--method", "tools/list", "--strict", "--protocol-era", era, "--cwd", ROOT),
        ],
        env={
            "PATH": os.pathsep.join((str(inspector.parent), os.environ["PATH"])),
            "HOME": str(tmp_path),
            "SIDECAR_HOME": str(home),
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    # The bridge may have started one by then, behind the greeting.
    with suppress(SidecarNotRunningError):
        stop(home, force=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert [tool["name"] for tool in json.loads(found.stdout)["tools"]] == names
