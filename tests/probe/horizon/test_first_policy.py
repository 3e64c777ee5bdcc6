"""The first journey of a new administrator: a typo corrected, a policy saved, fired under load, deleted."""

import time

from tests.support.cluster.steady_requests import Steadily

from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp, swift_client

TYPO = "FOR TENANT acme WHEN PUT_SEC > 3 DO SET compression TRANSIENT"
#: Seconds that the whole journey may take.
LIMIT = 180
#: Milliseconds between keys, as a user types.
KEY = 40
#: Milliseconds until a policy fires under load, and until measured values are drawn.
FIRES = 40_000


def test_a_new_administrator_is_helped_sees_the_policy_fire_and_takes_it_back(dashboard, horizon_cluster):
    page = dashboard.page
    swift = member_of_acme(horizon_cluster)
    swift.request("PUT", "photos")
    begun = time.monotonic()
    dashboard.login("ada")
    page.locator("#main_content").get_by_role("link", name="Policies").first.click()
    page.get_by_role("link", name="Write a policy").click()
    page.get_by_label("Policy", exact=True).press_sequentially(TYPO, delay=KEY)
    page.get_by_role("button", name="Write PUTS_SEC").wait_for()
    dashboard.picture("journey-1-typo")
    page.get_by_role("button", name="Write PUTS_SEC").click()
    page.locator("#policy-problems", has_text="No errors.").wait_for()
    page.get_by_text("What it means").wait_for()
    dashboard.picture("journey-2-meaning")
    page.get_by_role("button", name="Save").click()
    page.locator("#section-state", has_text="enforced 1/1").wait_for()
    with Steadily(swift, 8, lambda: swift.request("PUT", "photos/one", b"x" * 1000)):
        page.locator(".sluice-firings td", has_text="set").wait_for(timeout=FIRES)
        page.locator("#section-state .sluice-state", has_text="active").wait_for()
        page.get_by_text("Values", exact=True).click()
        wait_for_values_above(page, 3)
        page.locator("[data-plot-marks]", has_text="set").wait_for(timeout=FIRES)
        page.get_by_text("Values", exact=True).click()
        dashboard.picture("journey-3-plot")
        policy = page.url.rstrip("/").partition("?")[0].rstrip("/").rpartition("/")[2]
        page.get_by_role("link", name="Roll back the last change").first.click()
        dashboard.picture("journey-4-roll-back")
        page.get_by_role("button", name="Roll back").click()
        page.get_by_text("The last change is rolled back.").wait_for()
    taken = time.monotonic() - begun
    assert page.locator(f"#policy-{policy}").count() == 0
    assert taken < LIMIT, f"{taken:.0f} s"
    assert dashboard.findings.faults == []


def member_of_acme(cluster):
    """Swift in the account of acme."""
    password, project, _ = seed.PEOPLE["alice"]
    return swift_client(cluster.proxy_url, KeystoneHttp(cluster.keystone_url).login("alice", password, project))


def wait_for_values_above(page, least):
    """Wait until the table of a plot has ten values above ``least``."""
    page.wait_for_function(
        "least => Array.from(document.querySelectorAll('[data-plot-table] td')).filter("
        "cell => parseFloat(cell.textContent) > least).length >= 10",
        arg=least,
        timeout=FIRES,
    )
