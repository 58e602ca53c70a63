"""The bench runs from end to end and gives ratios to floors of the same run."""

import json
import subprocess
import sys

import pytest


def run_bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", "bench", *arguments], check=False, capture_output=True, text=True, timeout=170
    )


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_figure_is_there() -> None:
    """On a small store; what the figures are is not this test's business."""
    run = run_bench("--sizes", "200", "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    figures = {figure["name"]: figure for figure in report["figures"]}
    assert {"floor: bare query embedding", "floor: empty RPC", "floor: synced commit"} <= set(figures)
    recall = figures["recall at 200, new query"]
    assert recall["ratio"] == pytest.approx(
        recall["durations"]["p50"] / figures["floor: bare query embedding"]["durations"]["p50"]
    )
    assert all(amount["value"] > 0 for amount in report["amounts"])


@pytest.mark.parametrize("sizes", ["", "ten", "0", "-5", "2000000", "10,,20"])
def test_wrong_sizes_are_refused(sizes: str) -> None:
    """Before anything is measured, with what would be right."""
    run = run_bench("--sizes", sizes)
    assert run.returncode == 2
    assert "expected" in run.stderr
