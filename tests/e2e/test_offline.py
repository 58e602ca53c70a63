"""Without a network the sidecar starts, stores and recalls by meaning."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, sys
from pathlib import Path
from sidecar.api.v1 import admin_service_pb2 as admin
from sidecar.api.v1 import memory_service_pb2 as pb
from sidecar.client import Sidecar, stop
home = Path(sys.argv[1])
with Sidecar.connect(home) as sidecar:
    sidecar.remember(pb.RememberRequest(content="The ferry leaves at noon."))
    sidecar.wait_for_index(admin.WaitForIndexRequest())
    answer = sidecar.recall(pb.RecallRequest(query="when does the boat depart"))
    print(json.dumps([len(answer.memories), len(answer.degraded)]))
stop(home)
"""


def test_no_network_namespace(tmp_path: Path) -> None:
    """Not even a loopback interface that is up: ready and recalling, by meaning."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("unshare is not installed")
    isolated = [unshare, "--net"]
    if subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
        isolated = [unshare, "--user", "--map-root-user", "--net"]
        if subprocess.run([*isolated, "true"], check=False, capture_output=True).returncode:
            pytest.skip("network namespaces are not permitted here")
    command = [*isolated, sys.executable, "-c", SCRIPT, str(tmp_path / "home")]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=90)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [1, 0]


def test_no_connection_is_even_tried(tmp_path: Path) -> None:
    """Start, embed and recall connect to our socket alone."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    command = [strace, "-f", "-qq", "-e", "trace=connect", "-o", str(trace), sys.executable, "-c", SCRIPT]
    run = subprocess.run([*command, str(tmp_path / "home")], check=False, capture_output=True, text=True, timeout=110)
    if "ptrace" in run.stderr:
        pytest.skip("tracing is not permitted here")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [1, 0]
    assert [line for line in trace.read_text().splitlines() if "connect(" in line and "AF_UNIX" not in line] == []
