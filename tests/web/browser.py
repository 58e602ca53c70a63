"""The system's Chromium, driven by Playwright, and what a page must not do in it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, sync_playwright

from sidecar.client import Sidecar
from tests.architecture.gates.install_browser import found

PHONE_WIDTH: Final = 360
DESKTOP_WIDTH: Final = 1280
# What would call home is switched off; the tests have no network.
_FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=Translate,MediaRouter,OptimizationHints",
    "--no-first-run",
)
_REPORTS_CSP: Final = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} refused ${event.blockedURI || event.sample || "inline"}`);
});
"""

Theme = Literal["light", "dark"]


@dataclass
class Faults:
    """What a page did that none may: errors, violations of the content security policy, dialogs, foreign requests."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Take note from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._request(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        # Answers of ours with an error's status are told of by the page itself.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.found.append(f"console: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1:", "data:")):
            self.found.append(f"foreign request: {url}")


@contextmanager
def launched() -> Iterator[Browser]:
    """Give a browser. Without one the test is skipped; in CI, where the set-up installs it, the test fails."""
    program = found()
    if not program:
        told = "no Chromium is on PATH; `python -m tests.architecture.gates.install_browser` installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    flags = [*_FLAGS, "--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [*_FLAGS]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=flags)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(
    browser: Browser,
    sidecar: Sidecar,
    *,
    theme: Theme = "light",
    width: int = DESKTOP_WIDTH,
    height: int = 900,
    faults: Faults | None = None,
) -> Iterator[Page]:
    """Give a page of a fresh browser profile that has followed a link to the dashboard."""
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
    )
    context.add_init_script(_REPORTS_CSP)
    context.set_default_timeout(10_000)
    try:
        page = context.new_page()
        if faults is not None:
            faults.watch(page)
        page.goto(sidecar.open_dashboard().url)
        page.wait_for_selector("nav[aria-label=Pages]")
        yield page
    finally:
        context.close()


def scrolls_sideways(page: Page) -> bool:
    """Tell whether the page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def go(page: Page, title: str) -> None:
    """Follow the navigation to the page with this title."""
    page.get_by_role("navigation", name="Pages").get_by_role("link", name=title).click()
    page.get_by_role("heading", level=1, name=title).wait_for()
