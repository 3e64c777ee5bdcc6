"""Horizon for its users: log in and out, open Sluice's pages, check them with axe."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import BrowserContext, Page
from tests.support.browser.browser import Findings

from sluice_aio.base.layout import Layout
from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp
from sluice_client import Client

AXE: Final = Path(__file__).with_name("axe.min.js")
#: Of the panels, for figures that tests put into a page.
TEMPLATES: Final = Path(__file__).parents[3] / "horizon_plugin" / "sluice_dashboard" / "templates"
#: The parts of a page that are Sluice's.
CONTENT: Final = ".sluice"


def password_of(layout: Layout, user: str) -> str:
    """The password of ``admin``, or of one of ``seed.PEOPLE``."""
    return seed.password(layout, user) if user == seed.ADMIN else seed.PEOPLE[user][0]


def add_to_catalogue(layout: Layout, kind: str) -> None:
    """Add a service of this ``kind`` without a server to Keystone's catalogue: panels check whether it exists."""
    keystone = KeystoneHttp(layout.keystone_url)
    keystone.token = keystone.login(seed.ADMIN, password_of(layout, seed.ADMIN), seed.ADMIN).id
    seed.endpoint(keystone, kind, layout.url("cinder"))


class Dashboard:
    """A tab of ``context`` on the Horizon of the cluster at ``layout``; screenshots go to ``pictures``.

    :param url: of another Horizon before the same Keystone
    """

    def __init__(self, context: BrowserContext, layout: Layout, pictures: Path, url: str = "") -> None:
        self.context = context
        self.layout = layout
        self.url = url or layout.url("horizon")
        self.pictures = pictures
        self.findings = Findings()
        self.page: Page = context.new_page()
        self.findings.watch(self.page)

    def login(self, user: str) -> None:
        """Log in as ``user`` in a browser without a session; ends on the user's first page."""
        self.page.goto("about:blank")  # a response to the last page must not restore its session
        self.context.clear_cookies()
        self.page.goto(f"{self.url}/auth/login/")
        self.page.fill("#id_username", user)
        self.page.fill("#id_password", password_of(self.layout, user))
        self.page.click("#loginBtn")
        self.page.wait_for_url(lambda url: "/auth/" not in url)
        self.page.wait_for_load_state("networkidle")

    def client(self, user: str) -> Client:
        """The API for ``user``, beside the browser."""
        project = user if user == seed.ADMIN else seed.PEOPLE[user][1]
        token = KeystoneHttp(self.layout.keystone_url).login(user, password_of(self.layout, user), project)
        return Client(self.layout.url("api"), token.id)

    def open(self, path: str) -> Any:
        """Open ``path``, as ``/sluice/``; return the response."""
        response = self.page.goto(self.url + path)
        self.page.wait_for_load_state()
        return response

    def violations(self, within: str = CONTENT) -> list[str]:
        """The findings of axe-core ``within`` an element, as ``rule: elements``."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("within => axe.run(within, {resultTypes: ['violations']})", within)
        return [
            f"{one['id']}: {json.dumps([node['html'][:120] for node in one['nodes']])}" for one in found["violations"]
        ]

    def picture(self, name: str) -> Path:
        """A screenshot of the whole page."""
        self.pictures.mkdir(parents=True, exist_ok=True)
        path = self.pictures / f"{re.sub(r'[^a-z0-9-]+', '-', name.lower())}.png"
        self.page.evaluate("scrollTo(0, 0)")  # else sticky elements cover the page
        self.page.screenshot(path=path, full_page=True)
        return path
