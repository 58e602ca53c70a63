"""Pages for an editor to open: read-only Markdown files in the data folder, gone when the language server ends.

A page of one name replaces the last one, so that no more text of memories lies about than is looked at. What a server
that was killed left behind, the next one removes.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

FOLDER: Final = "views"
_READ_ONLY: Final = 0o400


class Views:
    """The pages of one language server."""

    def __init__(self, home: Callable[[], Path]) -> None:
        """Make nothing yet.

        Args:
            home: Returns the data folder; asked for when there is a page to write.
        """
        self._home = home
        self._folder: Path | None = None

    def write(self, name: str, text: str) -> str:
        """Write a page and return its URI.

        Raises:
            SidecarError: The folder is not ours alone, or cannot be made.
            OSError: The page cannot be written.
        """
        from sidecar.client.trusted_files import replace_private_file  # noqa: PLC0415 - gRPC is for calls only

        path = self._own_folder() / f"{name}.md"
        replace_private_file(path, text.encode("utf-8", "replace"))
        if os.name == "posix":
            # Elsewhere the next page could not take the place of a read-only one.
            path.chmod(_READ_ONLY)
        return path.as_uri()

    def is_own(self, path: str) -> bool:
        """Tell whether a file is a page of a language server, and so no file of a project."""
        return Path(path).is_relative_to(self._home() / FOLDER)

    def clear(self) -> None:
        """Remove every page."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _own_folder(self) -> Path:
        from sidecar.client.trusted_files import ensure_private_folder  # noqa: PLC0415 - as above

        if self._folder is None:
            shared = self._home() / FOLDER
            ensure_private_folder(shared)
            _remove_orphans(shared)
            self._folder = shared / str(os.getpid())
        ensure_private_folder(self._folder)
        return self._folder


def _remove_orphans(shared: Path) -> None:
    for folder in shared.iterdir():
        if folder.name.isdigit() and not psutil.pid_exists(int(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)
