"""`make screenshots`: fills a sidecar of its own, visits every page that is registered, and keeps small pictures."""

import io
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, Page

from sidecar.client import Sidecar
from sidecar.web.pages import all_pages
from tests.web.browser import DESKTOP_WIDTH, PHONE_WIDTH, Theme, go, launched, visiting
from tests.web.conftest import dated_sidecar
from tests.web.dated_sidecar import set_back
from tests.web.seeding import seed

ROOT: Final = Path(__file__).resolve().parents[2]
PICTURES: Final = ROOT / "docs/pictures"
MAX_BYTES: Final = 150_000
_COLOURS: Final = 256
_SETTLED_MS: Final = 700
_VARIANTS: Final[tuple[tuple[str, Theme, int], ...]] = (
    ("light", "light", DESKTOP_WIDTH),
    ("dark", "dark", DESKTOP_WIDTH),
    ("phone", "light", PHONE_WIDTH),
)


def main(arguments: list[str]) -> int:
    """Take the pictures of the named pages, or of all, and return the exit status.

    `--into FOLDER` puts them there instead of into docs/pictures.
    """
    folder = PICTURES
    if "--into" in arguments:
        place = arguments.index("--into")
        folder = Path(arguments[place + 1])
        arguments = arguments[:place] + arguments[place + 2 :]
    pages = {page.name: page.title for page in all_pages() if not arguments or page.name in arguments}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        with dated_sidecar(home) as sidecar, launched() as browser:
            seed(sidecar, lambda days: set_back(home, days=days))
            for name, title in pages.items():
                _picture(browser, sidecar, folder, name=name, title=title)
    return 0


def _picture(browser: Browser, sidecar: Sidecar, folder: Path, *, name: str, title: str) -> None:
    for variant, theme, width in _VARIANTS:
        height = 780 if width == PHONE_WIDTH else 900
        with visiting(browser, sidecar, theme=theme, width=width, height=height) as page:
            go(page, title)
            page.wait_for_timeout(_SETTLED_MS)
            path = folder / f"{name}-{variant}.png"
            # On a phone the navigation lies over the page, so that only what a screen holds makes a true picture.
            path.write_bytes(small(shot(page, is_whole=width != PHONE_WIDTH)))
            sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")


def shot(page: Page, *, is_whole: bool) -> bytes:
    """Return a picture of the whole page, or of what is seen of it at first."""
    return page.screenshot(full_page=is_whole, animations="disabled", caret="hide")


def small(png: bytes) -> bytes:
    """Return the picture with few colours; a page of ours has few.

    Raises:
        ValueError: It is larger than a repository should hold all the same.
    """
    picture = (
        Image.open(io.BytesIO(png))
        .convert("RGB")
        .quantize(_COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    target = io.BytesIO()
    picture.save(target, format="PNG", optimize=True)
    if target.tell() > MAX_BYTES:
        raise ValueError(f"a picture of {target.tell()} bytes; {MAX_BYTES} are allowed")
    return target.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
