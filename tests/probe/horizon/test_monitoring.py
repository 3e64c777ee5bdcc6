"""The panel *Monitoring*: nodes beside loads on one time axis, a link to the view, and removed nodes."""

import csv
import io

import pytest
from tests.support.browser.answers import node, say_nodes
from tests.support.browser.fake_api import error_body

INDEX = "/sluice/monitoring/"


@pytest.fixture
def panel(fake_dashboard):
    fake_dashboard.login("admin")
    fake_dashboard.open(INDEX)
    return fake_dashboard


def plot(panel, title):
    return panel.page.locator("figure", has=panel.page.locator("figcaption", has_text=title))


def labels(figure):
    figure.locator(".u-legend .u-series").nth(1).wait_for()
    return figure.locator(".u-legend .u-label").all_inner_texts()[1:]


def show(panel):
    panel.page.get_by_role("button", name="Show").click()
    panel.page.wait_for_load_state()


def test_nodes_and_loads_have_one_time_axis_and_other_metrics_are_chosen(panel):
    assert labels(plot(panel, "Processors")) == ["node1", "node2"]
    assert labels(plot(panel, "Downloads per second")) == ["all together", "AUTH_x"]
    boxes = [figure.locator(".u-over").bounding_box() for figure in panel.page.locator("figure").all()]
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["width"] == boxes[1]["width"]
    panel.page.get_by_label("Metric of nodes").select_option("NODE_NET_OUT")
    panel.page.get_by_label("Node", exact=True).select_option("node2")
    panel.page.get_by_label("Tenants or containers").fill("acme, acme/logs")
    panel.page.get_by_label("The last").select_option("3600")
    show(panel)
    assert labels(plot(panel, "Sent to the network")) == ["node2"]
    assert labels(plot(panel, "Downloads per second")) == ["acme", "acme/logs"]
    assert panel.findings.faults == []
    assert panel.violations() == []
    panel.picture("monitoring")


def test_a_link_shows_the_same_view_at_the_same_time_to_others(panel, fake_api):
    panel.page.get_by_label("Load", exact=True).select_option("GET_BW")
    show(panel)
    panel.page.get_by_role("link", name="Link to this view at this time").click()
    panel.page.get_by_role("link", name="Follow what happens now").wait_for()
    link = panel.page.url
    panel.open(INDEX)
    fake_api.requests.clear()
    panel.page.goto(link)
    labels(plot(panel, "Downloaded bytes"))
    begin, end = (link.partition(f"{name}=")[2].partition("&")[0] for name in ("from", "to"))
    asked = [one.path for one in fake_api.requests if one.path.startswith("/metrics/GET_BW/history")]
    assert asked
    assert all(f"from={begin}" in path and f"to={end}" in path for path in asked)
    panel.page.get_by_label("Load", exact=True).select_option("GETS_SEC")
    show(panel)
    assert f"from={begin}&to={end}" in panel.page.url
    assert panel.violations() == []
    panel.picture("monitoring-fixed")
    panel.page.get_by_role("link", name="Follow what happens now").click()
    panel.page.get_by_label("The last").wait_for()


def test_values_are_downloaded_as_csv_with_gaps(panel):
    with panel.page.expect_download() as download:
        plot(panel, "Processors").get_by_role("link", name="CSV").click()
    rows = list(csv.reader(io.StringIO(download.value.path().read_text())))
    assert rows[0] == ["time", "node1 (percent)", "node2 (percent)"]
    assert len(rows) == 61
    assert any(row[1] == "" for row in rows[1:])


def test_a_target_that_the_api_does_not_know_is_said_at_its_field_and_stays_typed(panel, fake_api):
    fake_api.say("GET /metrics/GETS_SEC/history", error_body(404, "no project `acne`"), 404)
    panel.page.get_by_label("Tenants or containers").fill("acne")
    show(panel)
    panel.page.locator("form [role=alert]", has_text="no project `acne`").wait_for()
    assert panel.page.get_by_label("Tenants or containers").input_value() == "acne"
    assert panel.violations() == []
    panel.picture("monitoring-refused")


def test_a_node_that_is_no_more_is_forgotten(panel, fake_api):
    say_nodes(fake_api, node("node1"), node("node2", state="away", detail="for 12 s"))
    fake_api.say("DELETE /nodes/node2", None, 204)
    panel.page.locator("#section-nodes", has_text="does not report").wait_for()
    panel.page.get_by_role("link", name="Forget node2").click()
    panel.page.get_by_text("Forget the node node2?").wait_for()
    panel.picture("monitoring-forget")
    panel.page.get_by_role("button", name="Forget").click()
    panel.page.get_by_text("The node is forgotten.").wait_for()
    assert [one.path for one in fake_api.requests if one.method == "DELETE"] == ["/nodes/node2"]


def test_the_current_history_is_taken_where_nodes_have_an_older_one(panel, fake_api):
    assert panel.page.get_by_role("link", name="Take the current history").count() == 0
    say_nodes(fake_api, node("node1", state="stale_history", detail="h0"))
    fake_api.say("POST /nodes/adopt", {"history": "h1", "epoch": 7})
    panel.page.get_by_role("link", name="Take the current history").click()
    panel.page.get_by_role("button", name="Take it").click()
    panel.page.get_by_text("All nodes take the current history.").wait_for()
    assert [one.path for one in fake_api.requests if one.method == "POST"] == ["/nodes/adopt"]


def test_who_may_not_change_nodes_is_shown_no_button_for_it(panel, fake_api):
    allowed = {**fake_api.answers["GET /permissions"].body["permissions"], "nodes:forget": False, "nodes:adopt": False}
    fake_api.say("GET /permissions", {"permissions": allowed})
    say_nodes(fake_api, node("node1", state="stale_history"), node("node2", state="away"))
    panel.login("admin")  # with a new token, without cached permissions
    panel.open(INDEX)
    panel.page.locator("#section-nodes", has_text="does not report").wait_for()
    assert panel.page.locator(".sluice").get_by_role("link", name="Forget").count() == 0
    assert panel.page.get_by_role("link", name="Take the current history").count() == 0


def test_a_node_says_what_it_refuses_and_what_does_not_run(panel, fake_api):
    refused = [{"assignment": "p1:0", "policy": "p1", "reason": "no room"}]
    say_nodes(fake_api, node("node1", refused=refused, plugins={"compression": "zstandard is missing"}), node("node2"))
    panel.page.locator("#section-nodes").get_by_role("link", name="node1").click()
    state = panel.page.locator("#section-state")
    state.get_by_text("zstandard is missing").wait_for()
    assert state.get_by_role("link", name="p1").get_attribute("href").endswith("/policies/p1/")
    assert state.get_by_text("no room").is_visible()
    assert labels(plot(panel, "Disks")) == ["Read from disks", "Written to disks"]
    assert panel.findings.faults == []
    panel.picture("node")
