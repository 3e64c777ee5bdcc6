"""Every page that Horizon has registered for us: what it does in the browser, and to whom it is open.

The list of pages comes from Horizon, so that a new panel is walked without a line here; ``pages.PARAMETERS`` say what
parameters of URLs are, and ``answers.well`` what the API answers.
"""

import pytest
from tests.support.browser.browser import NARROW, WIDE
from tests.support.browser.pages import registered_pages

#: User → the dashboard that is theirs.
USERS = {"admin": "sluice", "alice": "sluice_project"}


@pytest.fixture(scope="module")
def pages(horizon_alone):
    return registered_pages(horizon_alone[0])


def shown(pages, dashboard):
    """Those that are HTML."""
    return [
        one for one in pages if one.kind in ("PageView", "ActionView") and one.name.startswith(f"horizon:{dashboard}:")
    ]


def test_every_page_is_one_of_the_kinds_that_know_what_to_do_without_the_api(pages):
    assert [one.name for one in pages if one.kind == "other"] == []
    assert {one.name for one in pages} >= {"horizon:sluice:overview:index", "horizon:sluice_project:overview:index"}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("theme", ["default", "material"])
def test_pages_are_shown_without_a_fault(fake_dashboard, pages, user, theme):
    fake_dashboard.login(user)
    fake_dashboard.choose_theme(theme)
    faults = {}
    for page in shown(pages, USERS[user]):
        for size in (WIDE, NARROW):
            faults |= look_at(fake_dashboard, page, size, theme)
    assert faults == {}


def look_at(dashboard, page, size, theme):
    """What is wrong with a page, by its name and width."""
    dashboard.page.set_viewport_size(size)
    dashboard.findings.clear()
    dashboard.open(page.url())
    dashboard.page.wait_for_load_state("networkidle")
    name = f"{page.name.removeprefix('horizon:')} {theme} {size['width']}"
    dashboard.picture(name)
    wide = dashboard.page.evaluate("document.documentElement.scrollWidth")
    found = [*dashboard.findings.faults, *dashboard.violations()]
    if wide > size["width"]:
        found.append(f"{wide} pixels wide")
    return {name: found} if found else {}


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
            silent.append(f"{page.name}: says nothing")
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
