"""The panel *Bandwidth*: what is missing in words, plots of tenants, nodes and devices, objectives set and unset.

The tests define the API's responses, except in the journey at the end, on a live cluster.
"""

import json
from urllib.parse import unquote

import pytest
from tests.support.browser.answers import flow
from tests.support.browser.bandwidth_answers import measured, objective
from tests.support.browser.browser import NARROW
from tests.support.browser.fake_api import error_body
from tests.support.cluster.steady_requests import Steadily

from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp, swift_client

#: Milliseconds until measured values are drawn.
DRAWN = 40_000


@pytest.fixture
def panel(fake_dashboard):
    """The panel of administrators."""
    fake_dashboard.login("admin")
    return fake_dashboard


def asked(fake_api, call):
    return [one for one in fake_api.requests if f"{one.method} {one.path}".startswith(call)]


def drawn(panel, path, **query):
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return panel.page.request.get(f"{panel.url}/sluice/bandwidth/plots/{path}?{words}").json()


def test_what_is_missing_of_floors_is_said_in_words(panel, fake_api):
    short = flow("AUTH_x", label="acme", floor=30e6, met=22e6, short=8e6, measured=21e6, policies=["p1"])
    fake_api.say("GET /bw/flows", measured(flows=[short, flow("AUTH_y", container="logs", ceiling=5e6, floor=0.0)]))
    fake_api.say(
        "GET /bw/slo",
        {"slos": [objective(infeasible={"shortfall": 8e6}), objective(name="max_put_bw")], "next_marker": None},
    )
    panel.open("/sluice/bandwidth/")
    page = panel.page
    words = page.locator(".sluice-shortfalls").inner_text()
    assert "acme is promised 30 MB/s of downloads under the storage policy gold." in words
    assert "8 MB/s are missing. 21 MB/s are moved." in words
    assert "nothing is used" not in words  # the flow's row has shown it already
    assert "Downloads, at least" in page.locator(".sluice-objectives").inner_text()
    panel.picture("bandwidth")
    assert panel.violations() == []
    page.set_viewport_size(NARROW)
    panel.picture("bandwidth-narrow")
    assert panel.findings.faults == []


def test_while_nobody_measures_it_is_not_said_that_floors_are_met(panel, fake_api):
    fake_api.say("GET /bw/flows", {**measured(flows=[]), "stale": True})
    panel.open("/sluice/bandwidth/")
    panel.page.get_by_text("it is not known whether floors are met").wait_for()
    assert panel.page.get_by_text("All floors are met.").count() == 0


def test_a_tenants_plot_has_what_is_measured_its_share_floor_and_ceiling(panel, fake_api):
    panel.open("/sluice/bandwidth/")
    panel.page.locator(".sluice-flows").get_by_role("link", name="acme").click()
    panel.page.locator(".sluice-plot canvas").nth(1).wait_for()
    panel.picture("bandwidth-tenant")
    assert panel.violations() == []
    plot = drawn(panel, "tenants/GET/AUTH_x/")
    assert [one["label"] for one in plot["series"]] == ["measured", "share", "floor", "ceiling"]
    fake_api.say("GET /metrics/GET_BW_CEILING/history", error_body(404, "no series"), 404)
    assert [one["label"] for one in drawn(panel, "tenants/GET/AUTH_x/")["series"]] == ["measured", "share", "floor"]
    assert panel.findings.faults == []


def test_a_device_is_stacked_by_tenants_below_the_capacity_of_its_node(panel, fake_api):
    panel.open("/sluice/bandwidth/nodes/")
    panel.picture("bandwidth-nodes")
    panel.page.locator(".sluice-devices").get_by_role("link", name="sdb1").click()
    panel.page.locator(".sluice-plot canvas").first.wait_for()
    panel.picture("bandwidth-device")
    assert panel.violations() == []
    plot = drawn(panel, "devices/node1/sdb1/GET/")
    assert ([one["label"] for one in plot["series"]], plot["stacked"]) == (["acme", "AUTH_y"], True)
    assert [one["value"] for one in plot["thresholds"]] == [100e6]
    assert panel.findings.faults == []


def test_a_storage_node_is_stacked_by_devices_and_a_proxy_by_tenants(panel, fake_api):
    panel.open("/sluice/bandwidth/nodes/node1/")
    panel.page.locator(".sluice-plot canvas").nth(3).wait_for()
    panel.picture("bandwidth-node")
    assert panel.violations() == []
    assert [one["label"] for one in drawn(panel, "nodes/node1/storage_node/GET/")["series"]] == ["sdb1", "sdc1"]
    assert [one["label"] for one in drawn(panel, "nodes/node1/proxy/GET/")["series"]] == ["acme", "AUTH_y"]


def test_of_many_tenants_the_rest_is_drawn_as_all_others(panel, fake_api):
    names = [f"AUTH_{number}" for number in range(9)]
    series = {"series": [{"target": f"node1/sdb1/{name}"} for name in names], "next_marker": None}
    fake_api.say("GET /metrics/history", series)
    fake_api.say("GET /bw/parts", measured(parts=[]))
    plot = drawn(panel, "devices/node1/sdb1/GET/")
    assert [one["label"] for one in plot["series"]] == [*names[:7], "all others"]


def test_an_objective_is_set_and_what_is_refused_stands_at_its_field(panel, fake_api):
    refused = error_body(400, "`get_bw`: `30XBps` is no rate, did you mean `30MBps`")
    fake_api.say("PUT /bw/slo/acme/get_bw", refused, 400)
    panel.open("/sluice/bandwidth/")
    page = panel.page
    page.get_by_role("link", name="Set an objective").click()
    page.get_by_label("Tenant").fill("acme")
    page.get_by_label("Rate").fill("30XBps")
    page.get_by_role("button", name="Set").click()
    page.locator("#id_value_error", has_text="is no rate").wait_for()
    assert page.get_by_label("Rate").input_value() == "30XBps"
    panel.picture("bandwidth-refused")
    assert panel.violations() == []
    doubt = {"message": "more than the cluster carries"}
    fake_api.say("PUT /bw/slo/acme/get_bw/gold", {**objective(), "changed": True, "warnings": [doubt]})
    page.get_by_label("Rate").fill("30MBps")
    page.get_by_label("Storage policy").fill("gold")
    page.get_by_role("button", name="Set").click()
    page.get_by_text("The objective is set.; more than the cluster carries").wait_for()
    assert json.loads(asked(fake_api, "PUT /bw/slo/acme/get_bw/gold")[0].body) == {"value": "30MBps"}


def test_the_form_that_changes_an_objective_has_what_it_is_now(panel, fake_api):
    fake_api.say("GET /bw/slo", {"slos": [objective(storage_policy="gold")], "next_marker": None})
    panel.open("/sluice/bandwidth/")
    panel.page.locator(".sluice-objectives").get_by_role("link", name="Change").click()
    fields = ("Tenant", "Rate", "Storage policy")
    assert [panel.page.get_by_label(one).input_value() for one in fields] == ["AUTH_x", "30MBps", "gold"]


def test_an_objective_under_one_storage_policy_is_taken_back_alone(panel, fake_api):
    fake_api.say("GET /bw/slo", {"slos": [objective(storage_policy="gold")], "next_marker": None})
    fake_api.say("DELETE /bw/slo/AUTH_x/get_bw/gold", None, 204)
    panel.open("/sluice/bandwidth/")
    panel.page.locator(".sluice-objectives").get_by_role("link", name="Unset").click()
    assert "under the storage policy gold" in panel.page.locator(".sluice").inner_text()
    panel.page.get_by_role("button", name="Unset").click()
    panel.page.get_by_text("The objective is unset.").wait_for()
    assert len(asked(fake_api, "DELETE /bw/slo/AUTH_x/get_bw/gold")) == 1


def test_who_may_only_read_is_shown_no_button(panel, fake_api):
    allowed = {"bandwidth:flows": True, "slos:list": True, "slos:set": False, "slos:delete": False}
    fake_api.say("GET /permissions", {"permissions": {**allowed, "bandwidth:nodes": False}})
    panel.login("rita")
    panel.open("/sluice_project/bandwidth/")
    panel.page.locator(".sluice-objectives").wait_for()
    assert panel.page.locator(".sluice a.btn").count() == 0


def test_tenants_are_shown_page_by_page(panel, fake_api):
    fake_api.say("GET /bw/flows", {**measured(flows=[flow("AUTH_x")]), "next_marker": "AUTH_x  GET 0"})
    panel.open("/sluice/bandwidth/")
    panel.page.get_by_role("link", name="Next page").click()
    panel.page.get_by_role("link", name="First page").wait_for()
    assert "marker=AUTH_x++GET+0" in panel.page.url
    markers = [unquote(one.path) for one in asked(fake_api, "GET /bw/flows?limit")]
    assert "marker=AUTH_x" in markers[-1]


def test_an_administrator_promises_a_rate_and_sees_the_tenant_get_it(dashboard, horizon_cluster):
    password, project, _ = seed.PEOPLE["alice"]
    keystone = KeystoneHttp(horizon_cluster.keystone_url)
    swift = swift_client(horizon_cluster.proxy_url, keystone.login("alice", password, project))
    swift.request("PUT", "films")
    swift.request("PUT", "films/one", b"x" * 200_000)
    dashboard.login("ada")
    page = dashboard.page
    page.locator("#main_content").get_by_role("link", name="Bandwidth floors").click()
    page.get_by_role("link", name="Set an objective").click()
    page.get_by_label("Tenant").fill("acme")
    page.get_by_label("Rate").fill("30MBps")
    page.get_by_role("button", name="Set").click()
    page.locator(".sluice-objectives", has_text="acme").wait_for()
    with Steadily(swift, 8, lambda: swift.request("GET", "films/one")):
        page.locator(".sluice-flows").get_by_role("link", name="acme").first.click(timeout=DRAWN)
        page.locator(".sluice-plot", has_text="Downloads (GET)").get_by_text("Values", exact=True).click()
        page.wait_for_function(
            "() => Array.from(document.querySelectorAll('[data-plot-table] td')).some("
            "cell => cell.textContent === '30 MB/s')",
            timeout=DRAWN,
        )
        page.locator(".sluice-plot", has_text="Downloads (GET)").get_by_text("Values", exact=True).click()
        dashboard.picture("bandwidth-live-tenant")
        page.get_by_role("link", name="Bandwidth").last.click()
        page.get_by_role("link", name="Nodes and devices").click()
        page.locator(".sluice-nodes").get_by_role("link").first.click(timeout=DRAWN)
        page.locator("[data-plot-table]").first.get_by_text("Values", exact=True).click()
        page.locator("[data-plot-table] th", has_text="acme").first.wait_for(timeout=DRAWN)
        page.locator("[data-plot-table] td", has_text="MB/s").first.wait_for(timeout=DRAWN)
        page.locator("[data-plot-table]").first.get_by_text("Values", exact=True).click()
        dashboard.picture("bandwidth-live-node")
    dashboard.open("/sluice/bandwidth/")
    page.locator(".sluice-objectives").get_by_role("link", name="Unset").click()
    page.get_by_role("button", name="Unset").click()
    page.get_by_text("No tenant has an objective.").wait_for()
    assert dashboard.findings.faults == []
