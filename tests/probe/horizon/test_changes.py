"""The authors of changes in the dashboard, the way back with its plan, and the locality of data."""

import pytest
from tests.support.browser.browser import NARROW, WIDE

FIRST = "FOR CONTAINER acme/kept DO SET noop"
NAME = "<b>ledger<"
SECOND = f"FOR CONTAINER 'acme/{NAME}' DO SET noop"


@pytest.fixture
def ada(dashboard):
    """The API for an administrator, beside the browser, which is logged in as the same user."""
    dashboard.login("ada")
    with dashboard.client("ada") as client:
        yield client


@pytest.fixture
def policies(ada):
    """Two policies, of which tests may delete some."""
    before = {one["id"] for one in ada.policies()}
    try:
        yield [ada.create_policy(one, wait=10) for one in (FIRST, SECOND)]
    finally:
        for one in {one["id"] for one in ada.policies()} - before:
            ada.delete_policy(one, wait=10)


def newest(page):
    return page.locator("#section-changes tbody tr").first


def press(page, name):
    page.locator(".sluice").get_by_role("button", name=name, exact=True).click()
    page.wait_for_load_state()


def test_the_last_change_is_undone_as_its_plan_says(dashboard, ada, policies):
    page = dashboard.page
    dashboard.open("/sluice/changes/")
    assert "ada@acme" in newest(page).inner_text()
    assert policies[1]["id"] in newest(page).inner_text()
    assert dashboard.violations() == []
    dashboard.picture("changes")
    page.set_viewport_size(NARROW)
    dashboard.picture("changes-narrow")
    page.set_viewport_size(WIDE)
    newest(page).get_by_role("link", name="Roll back").click()
    plan = page.locator(".sluice table")
    assert NAME in plan.inner_text()
    assert FIRST not in plan.inner_text()
    assert dashboard.violations() == []
    dashboard.picture("changes-plan")
    press(page, "Roll back")
    assert "1 deleted" in page.locator(".alert-success").inner_text()
    left = {one["id"] for one in ada.policies()}
    assert (policies[0]["id"] in left, policies[1]["id"] in left) == (True, False)
    assert dashboard.findings.faults == []


def test_what_was_changed_after_the_plan_is_shown_before_it_is_rolled_back(dashboard, ada, policies):
    page = dashboard.page
    epoch = next(ada.changes())["epoch"]
    dashboard.open(f"/sluice/changes/{epoch - 1}/rollback/")
    ada.delete_policy(policies[0]["id"], wait=10)
    press(page, "Roll back")
    assert "`If-Match`" in page.locator(".alert-danger").inner_text()
    assert FIRST in page.locator(".sluice table").inner_text()
    assert policies[1]["id"] in {one["id"] for one in ada.policies()}
    press(page, "Roll back")
    assert FIRST in {one["policy"] for one in ada.policies()}


def test_a_change_shows_what_stood_and_what_stands_as_text(dashboard, ada, policies):
    epoch = next(ada.changes())["epoch"]
    dashboard.open(f"/sluice/changes/{epoch}/")
    assert NAME in dashboard.page.locator(".sluice").inner_text()
    assert dashboard.violations() == []
    dashboard.picture("change")
    assert dashboard.open("/sluice/changes/999999/").status == 404


def test_a_filter_that_leaves_nothing_says_so(dashboard, ada, policies):
    dashboard.open("/sluice/changes/")
    dashboard.page.get_by_label("By", exact=True).fill("nobody@nowhere")
    press(dashboard.page, "Filter")
    assert "There is no such change." in dashboard.page.locator("#section-changes").inner_text()


def test_the_devices_of_an_object_are_found_and_what_is_refused_is_said(dashboard, ada):
    page = dashboard.page
    dashboard.open("/sluice/changes/locality/")
    page.get_by_label("Project or account").fill("acme")
    page.get_by_label("Container").fill("logs")
    page.get_by_label("Object", exact=True).last.fill("a/b c.txt")
    press(page, "Find the object")
    found = page.locator("#section-found")
    assert found.locator("tbody tr").count() >= 1
    assert "127.0.0.1:" in found.inner_text()
    assert dashboard.violations() == []
    dashboard.picture("locality")
    page.get_by_label("Project or account").fill("nobody")
    press(page, "Find the object")
    assert "`nobody`" in found.inner_text()
    assert page.get_by_label("Container").input_value() == "logs"
    assert dashboard.findings.faults == []
