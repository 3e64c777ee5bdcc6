"""Filters, metrics and controllers in Horizon, on a live cluster: trial, roll-out, revisions, deployment, rights."""

from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError as TooLate
from tests.support.browser.browser import NARROW, WIDE

from sluice_client import ApiError

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
ROT13 = (EXAMPLES / "rot13.py").read_text()
#: Cannot read objects that it has written itself.
FORGETFUL = ROT13.replace("self.left -= len(data)\n        return", "self.left -= len(data)\n        return b'x' +")
SECOND = ROT13.replace('"rotate letters"', '"rotate letters by thirteen"')


@pytest.fixture
def ada(dashboard):
    dashboard.login("ada")
    dashboard.findings.clear()
    return dashboard


@pytest.fixture
def client(dashboard):
    """The API for an administrator; uploads of tests are deleted afterwards."""
    with dashboard.client("ada") as made:
        yield made
        for target, keyword in (("acme/docs", "compression"), ("acme/docs", "rot13")):
            forget(lambda target=target, keyword=keyword: made.undeploy_filter(target, keyword))
        forget(lambda: made.unregister_filter("rot13", force=True))
        forget(lambda: made.collection("/registry/metrics").delete("DELETES_SEC", force=True))
        forget(lambda: made.delete_controller("spread"))
        forget(lambda: made.collection("/filters/dependencies").delete("words.txt", force=True))


def forget(call):
    try:
        call()
    except ApiError as error:
        if error.status != 404:
            raise


def choose(page, code, name="rot13.py"):
    page.set_input_files("#id_code", {"name": name, "mimeType": "text/x-python", "buffer": code.encode()})


def state(page):
    """The state on the page, without the text for screen readers."""
    return page.locator("#section-state")


def submit(page, url):
    """Press the button of the form, and wait for the next page."""
    page.click("form.sluice-form button[type=submit]")
    try:
        page.wait_for_url(url, timeout=60_000)
    except TooLate:
        raise AssertionError(page.locator(".sluice").inner_text()) from None


def look(dashboard, name):
    """Run Axe, and take pictures at both widths."""
    assert dashboard.violations() == []
    dashboard.picture(name)
    dashboard.page.set_viewport_size(NARROW)
    dashboard.picture(f"{name}-narrow")
    assert dashboard.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    dashboard.page.set_viewport_size(WIDE)


def test_code_that_fails_its_trial_leaves_the_form_as_it_was_and_nothing_of_the_filter(ada, client):
    page = ada.page
    ada.open("/sluice/code/add/filter/")
    page.fill("#id_keyword", "rot13")
    choose(page, FORGETFUL)
    page.click("form.sluice-form button[type=submit]")
    verdict = page.locator("#id_code_error")
    verdict.wait_for()
    assert page.input_value("#id_keyword") == "rot13"
    assert page.evaluate("document.querySelector('#id_code').files[0].name") == "rot13.py"
    assert page.locator("#id_code").get_attribute("aria-invalid") == "true"
    assert page.locator("#sluice-announcer").inner_text().split() == verdict.inner_text().split()
    look(ada, "code-refused")
    with pytest.raises(ApiError, match="there is no"):
        client.filter("rot13")
    choose(page, ROT13)
    submit(page, "**/sluice/code/filters/rot13/")
    page.get_by_text("Revision 1 of rot13 passed its trial").wait_for()


def test_a_filter_is_uploaded_rolled_out_revised_and_rolled_back(ada, client):
    page = ada.page
    client.register_filter({"keyword": "rot13", "environment": "native"})
    client.upload_filter("rot13", ROT13.encode(), wait=20)
    ada.open("/sluice/code/filters/rot13/")
    state(page).get_by_text("1 of 1 nodes have the newest revision").wait_for()
    page.get_by_role("link", name="Upload another revision").click()
    choose(page, SECOND)
    submit(page, "**/filters/rot13/")
    state(page).get_by_text("rotate letters by thirteen").wait_for()
    node = page.get_by_role("region", name="Where it is").get_by_role("row").nth(1)
    node.get_by_text("has it").wait_for()
    assert node.get_by_role("cell").nth(1).inner_text() == "2"
    look(ada, "code-filter")
    page.get_by_role("link", name="Roll back to it 1").click()
    assert "code of revision 1 again" in page.locator("form.sluice-form").inner_text()
    submit(page, "**/filters/rot13/")
    page.locator("#revision-3").wait_for()
    state(page).get_by_text("1 of 1 nodes have the newest revision").wait_for()
    assert client.filter("rot13")["help"] == "rotate letters"
    ada.open("/sluice/code/")
    assert "1 of 1 nodes" in page.locator("#filter-rot13").inner_text()
    look(ada, "code-filters")
    assert ada.findings.faults == []


def test_a_filter_is_deployed_by_a_form_made_of_its_description_and_taken_back(ada, client):
    page = ada.page
    ada.open("/sluice/code/filters/compression/")
    page.get_by_role("link", name="Deploy to a project").click()
    page.fill("#id_target", "acme/docs")
    page.select_option("#id_param_engine", "zstd")
    page.fill("#id_param_level", "99")
    look(ada, "code-deploy")
    page.click("form.sluice-form button[type=submit]")
    page.locator("#id_param_level_error").wait_for()
    assert page.input_value("#id_target") == "acme/docs"
    page.fill("#id_target", "nobody/docs")
    page.fill("#id_param_level", "3")
    page.click("form.sluice-form button[type=submit]")
    page.locator("#id_target_error").wait_for()
    page.fill("#id_target", "acme/docs")
    submit(page, "**/code/deployments/?target=acme*2Fdocs")
    row = page.get_by_role("row", name="compression")
    assert "engine=zstd" in row.inner_text()
    look(ada, "code-deployments")
    row.get_by_role("link", name="Undeploy").click()
    submit(page, "**/code/deployments/?target=acme*2Fdocs")
    page.get_by_text("Nothing is deployed for just acme/docs").wait_for()
    assert list(client.deployments("acme/docs")) == []


def test_a_metric_is_uploaded_measured_stopped_and_deleted(ada, client):
    page = ada.page
    ada.open("/sluice/code/add/metric/")
    page.fill("#id_name", "DELETES_SEC")
    choose(page, (EXAMPLES / "deletes_sec.py").read_text(), "deletes_sec.py")
    submit(page, "**/metrics/DELETES_SEC/")
    state(page).get_by_text("State: stopped").wait_for()
    page.get_by_role("link", name="Start", exact=True).click()
    submit(page, "**/metrics/DELETES_SEC/")
    state(page).get_by_text("1 of 1 nodes have the newest revision").wait_for()
    look(ada, "code-metric")
    page.get_by_role("link", name="Stop", exact=True).click()
    submit(page, "**/metrics/DELETES_SEC/")
    page.get_by_role("link", name="Delete").click()
    submit(page, "**/code/metrics/")
    page.get_by_role("row", name="PUTS_SEC").first.wait_for()
    assert page.get_by_role("row", name="DELETES_SEC").count() == 0
    look(ada, "code-metrics")
    assert ada.findings.faults == []


def test_a_controller_is_uploaded_started_and_stopped(ada, client):
    page = ada.page
    ada.open("/sluice/code/add/controller/")
    page.fill("#id_name", "spread")
    choose(page, (EXAMPLES / "spread.py").read_text().replace('"NODE_CPU"), 10.0', '"GET_BW"), 1.0'), "spread.py")
    submit(page, "**/controllers/spread/")
    page.get_by_role("link", name="Start", exact=True).click()
    submit(page, "**/controllers/spread/")
    page.get_by_role("region", name="Where it is").get_by_role("row").nth(1).wait_for()
    look(ada, "code-controller")
    page.get_by_role("link", name="Stop", exact=True).click()
    submit(page, "**/controllers/spread/")
    ada.open("/sluice/code/controllers/")
    assert "stopped" in page.locator("#controller-spread").inner_text()
    look(ada, "code-controllers")
    assert ada.findings.faults == []


def test_a_dependency_is_uploaded_and_deleted(ada, client):
    page = ada.page
    ada.open("/sluice/code/add/dependency/")
    page.fill("#id_name", "words.txt")
    page.fill("#id_help", "words that a filter looks for")
    choose(page, "one\ntwo\n", "words.txt")
    submit(page, "**/code/dependencies/")
    page.get_by_role("link", name="words.txt").click()
    page.get_by_text("8 B").wait_for()
    page.get_by_role("link", name="Attach to filters").click()
    page.get_by_role("link", name="Cancel").click()
    look(ada, "code-dependency")
    page.get_by_role("link", name="Delete").click()
    submit(page, "**/code/dependencies/")
    assert page.get_by_role("link", name="words.txt").count() == 0
    assert ada.findings.faults == []


def test_a_member_deploys_self_service_filters_for_its_own_containers_alone(dashboard, client):
    page = dashboard.page
    dashboard.login("alice")
    dashboard.findings.clear()
    dashboard.open("/sluice_project/code/")
    look(dashboard, "project-filters")
    page.get_by_role("link", name="encryption", exact=True).click()
    page.get_by_role("heading", name="Parameters").wait_for()
    assert page.get_by_role("link", name="Deploy").count() == 0
    dashboard.open("/sluice_project/code/filters/compression/")
    page.get_by_role("link", name="Deploy to a container").click()
    assert page.input_value("#id_target") == "acme/"
    page.fill("#id_target", "acme/docs")
    submit(page, "**/sluice_project/code/deployments/?target=acme*2Fdocs")
    assert page.get_by_role("link", name="Undeploy").count() == 1
    assert dashboard.findings.faults == []
    for path in ("", "filters/compression/", "metrics/", "controllers/", "add/filter/", "filters/compression/deploy/"):
        assert dashboard.open(f"/sluice/code/{path}").status == 403
    for foreign in ("umbrella", "umbrella/docs"):
        assert dashboard.open(f"/sluice_project/code/deployments/?target={foreign}").status == 403
        assert "is not allowed" in page.locator(".sluice").inner_text()
    dashboard.login("rita")
    dashboard.open("/sluice_project/code/deployments/?target=acme/docs")
    assert "compression" in page.locator(".sluice").inner_text()
    assert page.get_by_role("link", name="Undeploy").count() == 0
