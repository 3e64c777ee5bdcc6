"""Chromium, headless, that connects only to 127.0.0.1, and the faults of pages in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Page, sync_playwright

from sluice_aio.base.ports import HOST

CHROMIUM: Final = "/usr/bin/chromium"
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--proxy-server=direct://",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
)
_REFUSED: Final = "Failed to load resource: the server responded with a status"
#: Widths of the pages, in pixels.
WIDE: Final = {"width": 1280, "height": 900}
NARROW: Final = {"width": 400, "height": 800}
#: Milliseconds for a page to meet a test's expectation.
PATIENCE: Final = 20_000


@dataclass
class Findings:
    """The faults of a page: errors in its console, exceptions, responses from 400 on, and the hosts of its requests."""

    console: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Start to collect."""
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.exceptions.append(str(error)))
        page.on("response", lambda one: self.refused.append(f"{one.status} {one.url}") if one.status >= 400 else None)
        page.on("request", self._note)

    def _note_console(self, message: Any) -> None:
        # for a response from 400 on `refused` has the address, too
        if message.type == "error" and not message.text.startswith(_REFUSED):
            self.console.append(message.text)

    def _note(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss"):
            self.hosts.add(parts.hostname or "")
            self.requests.append(f"{request.method} {parts.path}{'?' if parts.query else ''}{parts.query}")

    def clear(self) -> None:
        """Drop the findings."""
        for kept in (self.console, self.exceptions, self.refused, self.hosts, self.requests):
            kept.clear()

    @property
    def faults(self) -> list[str]:
        """All faults."""
        strangers = [f"asked {host}" for host in sorted(self.hosts - {HOST})]
        return [*self.console, *self.exceptions, *self.refused, *strangers]


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[BrowserContext]:
    """A browser with a new profile in the folder ``profile``.

    It starts without the environment's proxies; ``/usr/bin/chromium`` must be there (``tools/bootstrap everything``).
    """
    with sync_playwright() as started:
        context = started.chromium.launch_persistent_context(
            str(profile),
            executable_path=CHROMIUM,
            headless=True,
            args=list(_FLAGS),
            viewport=WIDE,
            locale="en-GB",
            timezone_id="UTC",
        )
        context.set_default_timeout(PATIENCE)
        try:
            yield context
        finally:
            context.close()
