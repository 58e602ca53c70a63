"""The plugin on the page for authors is whole: it is taken from there, found by its entry point, and checked."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clients" / "adding-a-client.md"
_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", re.DOTALL)
_LINES = re.compile(r"```json\n(.*?)```\n", re.DOTALL)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The files of the page, and the metadata that an installer would write."""
    files = dict(_FILE.findall(PAGE.read_text("utf-8")))
    assert set(files) == {"acme_memory/__init__.py", "pyproject.toml", "test_acme_memory.py"}
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    metadata = tmp_path / "acme_memory-1.0.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-memory\nVersion: 1.0.0\n", encoding="utf-8")
    found = re.search(r'entry-points\."(\S+)"\]\n(\w+) = "(\S+)"', files["pyproject.toml"])
    assert found is not None
    (metadata / "entry_points.txt").write_text(f"[{found[1]}]\n{found[2]} = {found[3]}\n", encoding="utf-8")
    return tmp_path


def _run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=package, env=environment, capture_output=True, text=True, check=False
    )


def test_the_example_passes_the_suite_as_printed(package: Path) -> None:
    """Whoever copies the page begins with something that works."""
    done = _run(package, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "test_acme_memory.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b11 passed\b", done.stdout), done.stdout


def test_the_example_is_found_by_its_entry_point_and_reads_the_lines_of_the_page(package: Path) -> None:
    """An installed plugin needs nothing but its name."""
    (lines,) = _LINES.findall(PAGE.read_text("utf-8"))
    (package / "s1.jsonl").write_text(lines, encoding="utf-8")
    program = (
        "from client_plugins.kit.plugin import select_plugins\n"
        "from sidecar.testing.conformance.folding import SampleFile, found_in, read_file\n"
        "(plugin,) = select_plugins(['acme'])\n"
        "print(found_in(read_file(plugin, SampleFile(('s1.jsonl',), open('s1.jsonl', 'rb').read()))))\n"
    )
    done = _run(package, "-c", program)
    assert done.returncode == 0, done.stderr
    assert (
        "('recall', Shown(state=<ShownState.IDS: 'ids'>, memory_ids=('mem_01J8ZQ4T7N9V2B6K3M5X8C0D1F',)" in done.stdout
    )
    assert "texts=('When do we deploy?', 'On Tuesday.')" in done.stdout
