"""Every page that Horizon has registered for Sluice: its behaviour in the browser, and its users.

The list of pages comes from Horizon, so that a new panel is tested without a line here; ``pages.PARAMETERS`` has the
parameters of URLs, and ``answers.well`` the API's responses.
"""

import re

import pytest
from tests.support.browser.browser import NARROW, WIDE
from tests.support.browser.dashboard import Dashboard
from tests.support.browser.horizon_server import HorizonServer
from tests.support.browser.pages import registered_pages

SCRIPT = """<img src=x onerror="window.ran=1"><script>window.ran=1</script>'"{$ 7*191 $}{{ 7*191 }}"""
PRODUCT = "1337"
#: Fields of responses whose text other users choose; a panel adds its own.
CHOSEN = frozenset(
    {
        "account",
        "condition",
        "container",
        "created_by",
        "detail",
        "help",
        "label",
        "message",
        "node",
        "path",
        "policy",
        "reason",
    }
    | {"software", "source", "storage", "storage_policy", "subject", "target", "term", "text"}
)
#: As those of policies in ``answers.py``.
IDENTIFIER = re.compile(r"p\d+")
LONGER_THAN_A_SECTION = 6_000
#: A page of Horizon's that every user has.
STOCK = "/settings/"
#: User → the dashboard of that user.
USERS = {"admin": "sluice", "alice": "sluice_project"}


@pytest.fixture(scope="module")
def pages(horizon_alone):
    return registered_pages(horizon_alone[0])


def shown(pages, dashboard):
    """The pages that are HTML."""
    return [
        one for one in pages if one.kind in ("PageView", "ActionView") and one.name.startswith(f"horizon:{dashboard}:")
    ]


def test_every_page_is_one_of_the_kinds_that_know_what_to_do_without_the_api(pages):
    assert [one.name for one in pages if one.kind == "other"] == []
    assert {one.name for one in pages} >= {"horizon:sluice:overview:index", "horizon:sluice_project:overview:index"}


@pytest.mark.parametrize("user", USERS)
def test_pages_are_shown_without_a_fault(fake_dashboard, pages, user):
    assert faults_of_pages(fake_dashboard, shown(pages, USERS[user]), user, "default") == {}


@pytest.mark.parametrize("user", USERS)
def test_pages_are_shown_without_a_fault_in_the_material_theme(material_dashboard, pages, user):
    assert faults_of_pages(material_dashboard, shown(pages, USERS[user]), user, "material") == {}


@pytest.fixture(scope="module")
def material(horizon_alone, tmp_path_factory):
    with HorizonServer(tmp_path_factory.mktemp("material"), horizon_alone[0], theme="material") as server:
        yield server


@pytest.fixture
def material_dashboard(horizon_alone, fake_api, material, chromium, pictures):
    """A new tab on another Horizon; its cookies are those of all ports of 127.0.0.1, so it is closed at the end."""
    tab = Dashboard(chromium, horizon_alone[0], pictures, material.layout.url("horizon"))
    yield tab
    tab.page.close()


def faults_of_pages(dashboard, pages, user, theme):
    """The faults by page, theme and width, except those that a page of Horizon's own has, too."""
    dashboard.login(user)
    dashboard.findings.clear()
    dashboard.open(STOCK)
    dashboard.page.wait_for_load_state("networkidle")
    stock = set(dashboard.findings.faults)
    faults = {}
    for page in pages:
        for size in (WIDE, NARROW):
            name = f"{page.name.removeprefix('horizon:')} {theme} {size['width']}"
            found = [one for one in look_at(dashboard, page, size, name) if one not in stock]
            faults |= {name: found} if found else {}
    return faults


def look_at(dashboard, page, size, name):
    """The faults of a page; its picture has this name."""
    dashboard.page.set_viewport_size(size)
    dashboard.findings.clear()
    dashboard.open(page.url())
    dashboard.page.wait_for_load_state("networkidle")
    dashboard.picture(name)
    wide = dashboard.page.evaluate("document.documentElement.scrollWidth")
    found = [*dashboard.findings.faults, *dashboard.violations()]
    if wide > size["width"]:
        found.append(f"{wide} pixels wide")
    return found


def test_pages_without_an_api_say_so_and_show_no_traceback(fake_dashboard, fake_api, pages):
    fake_dashboard.login("admin")
    fake_api.away = True
    silent = []
    for page in shown(pages, "sluice"):
        response = fake_dashboard.open(page.url())
        text = fake_dashboard.page.locator("body").inner_text()
        if response.status not in (200, 503) or "Traceback" in text:
            silent.append(f"{page.name}: {response.status}")
        elif page.kind == "PageView" and "Sluice does not answer" not in text:
            silent.append(f"{page.name}: says {text}")
    assert silent == []


def test_every_form_refuses_a_post_without_the_token_against_forgery(fake_dashboard, fake_api, pages):
    fake_dashboard.login("admin")
    accepted = []
    for page in pages:
        response = fake_dashboard.page.request.post(fake_dashboard.url + page.url(), max_redirects=0)
        # Horizon's answer to a forged request is its login page
        if response.status != 302 or "csrf_failure=" not in response.headers["location"]:
            accepted.append(f"{page.name}: {response.status}")
    assert accepted == []
    assert [one for one in fake_api.requests if one.method != "GET"] == []


@pytest.mark.parametrize("user", USERS)
def test_script_in_whatever_tenants_name_is_shown_as_text(fake_dashboard, fake_api, pages, user):
    fake_dashboard.login(user)
    fake_api.alter = with_script
    ran = {}
    for page in shown(pages, USERS[user]):
        fake_dashboard.findings.clear()
        response = fake_dashboard.open(page.url())
        if page.kind == "PageView":
            fake_dashboard.page.wait_for_timeout(LONGER_THAN_A_SECTION)
        text = fake_dashboard.page.locator("body").inner_text()
        wrong = list(fake_dashboard.findings.faults)
        if response.status != 200:
            wrong.append(f"status {response.status}")
        if fake_dashboard.page.evaluate("window.ran") or PRODUCT in text:
            wrong.append("ran")
        if wrong:
            ran[page.name] = wrong
    assert ran == {}


def with_script(body):
    """A response with script in every text that tenants, or other users without rights, choose."""
    if isinstance(body, dict):
        return {
            name: f"{value}{SCRIPT}" if name in CHOSEN and is_text(value) else with_script(value)
            for name, value in body.items()
        }
    return [with_script(one) for one in body] if isinstance(body, list | tuple) else body


def is_text(value):
    """Whether the field is text: the API creates identifiers itself; some have a field name of texts elsewhere."""
    return isinstance(value, str) and not IDENTIFIER.fullmatch(value)


def test_who_is_not_logged_in_sees_no_page(horizon_alone, pages, chromium):
    layout, _ = horizon_alone
    chromium.clear_cookies()
    opened = []
    for page in pages:
        for url in page.urls():
            response = chromium.request.get(layout.url("horizon") + url, max_redirects=0)
            if response.status != 302 or "/auth/login/" not in response.headers["location"]:
                opened.append(f"{url}: {response.status}")
    assert opened == []
