"""An administrator logs in and sees the state of a live cluster; a member sees its own.

Tests docs/admin/dashboard.md.
"""

from tests.support.browser.browser import NARROW

POLICY = "FOR CONTAINER acme/logs DO SET noop"


def test_an_administrator_sees_the_live_numbers_of_the_cluster(dashboard, horizon_cluster, eventually):
    page = dashboard.page
    dashboard.login("ada")
    assert page.url == f"{dashboard.url}/sluice/"
    state = page.locator("#section-state")
    assert "Message broker: well" in state.inner_text()
    assert "1 of 1 well" in state.inner_text()
    before = policies_shown(page)
    with dashboard.client("ada") as client:
        created = client.create_policy(POLICY, wait=10)
        try:
            eventually(lambda: shows_one_more(page, before), 20.0)
        finally:
            client.delete_policy(created["id"])
    assert dashboard.violations() == []
    dashboard.picture("overview")
    page.set_viewport_size(NARROW)
    dashboard.picture("overview-narrow")
    assert dashboard.findings.faults == []


def policies_shown(page):
    return int(page.locator("#section-state li", has_text="Policies").locator(".sluice-figure").inner_text())


def shows_one_more(page, before):
    page.wait_for_timeout(200)  # to handle the browser's events meanwhile
    return policies_shown(page) == before + 1


def test_a_member_is_refused_the_administrators_pages_and_sees_its_own(dashboard):
    dashboard.login("alice")
    assert dashboard.page.url == f"{dashboard.url}/sluice_project/"
    assert "Software-defined storage" not in dashboard.page.locator("#sidebar-accordion").inner_text()
    assert dashboard.open("/sluice/").status == 403
