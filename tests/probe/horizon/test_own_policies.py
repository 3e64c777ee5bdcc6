"""A member manages the policies of its project in the dashboard of a live cluster, and sees what is forbidden."""

import pytest

OWN = "FOR CONTAINER acme/own-papers DO SET noop"
OTHER = "FOR CONTAINER acme/own-papers DO SET compression"


@pytest.fixture
def panel(dashboard):
    dashboard.login("alice")
    dashboard.open("/sluice_project/policies/")
    yield dashboard
    with dashboard.client("ada") as client:
        for one in list(client.policies(text="own-papers")):
            client.delete_policy(one["id"])


def field(panel):
    return panel.page.get_by_label("Policy", exact=True)


def press(panel, action, confirm=""):
    """Press the button of an action, and confirm it on its page."""
    panel.page.get_by_role("link", name=action, exact=True).first.click()
    if confirm:
        panel.page.get_by_role("button", name=confirm, exact=True).click()


def state(panel, word):
    panel.page.locator("#section-state", has_text=word).wait_for()


def test_a_policy_is_written_changed_switched_deleted_and_brought_back(panel):
    press(panel, "Write a policy")
    field(panel).fill(OWN)
    panel.page.locator("#policy-problems", has_text="No errors.").wait_for()
    panel.page.get_by_role("button", name="Save").click()
    state(panel, "enforced 1/1")
    press(panel, "Change")
    field(panel).fill(OTHER)
    panel.page.get_by_role("button", name="Save").click()
    panel.page.locator("[data-sentence]", has_text="compression").wait_for()
    press(panel, "Disable", "Disable")
    state(panel, "disabled")
    press(panel, "Enable", "Enable")
    state(panel, "active")
    press(panel, "Delete", "Delete")
    panel.page.get_by_text("The policy is deleted.").wait_for()
    assert panel.page.get_by_role("link", name=OTHER).count() == 0
    press(panel, "Roll back the last change", "Roll back")
    panel.page.get_by_role("link", name=OTHER).wait_for()
    assert panel.findings.faults == []


@pytest.mark.parametrize(
    "text", ["FOR CONTAINER acme/own-papers DO SET caching", "FOR CONTAINER umbrella/own-papers DO SET noop"]
)
def test_what_takes_an_administrator_is_said_before_it_is_saved_and_refused(panel, text):
    press(panel, "Write a policy")
    field(panel).fill(text)
    panel.page.locator("#policy-problems", has_text="is not allowed to `alice@acme`").wait_for()
    panel.page.get_by_role("button", name="Save").click()
    panel.page.locator(".alert-danger", has_text="`sluice:policies:create` is not allowed").wait_for()
    assert field(panel).input_value() == text
