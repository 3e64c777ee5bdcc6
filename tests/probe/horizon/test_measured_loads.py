"""Loads of a live cluster in the panel *Monitoring*: CollectD's beside those of tenants, and only a project's own."""

import pytest
from tests.support.cluster.collectd import CollectdDaemon
from tests.support.cluster.steady_requests import Steadily

from sluice_aio.keystone import seed
from sluice_aio.keystone.http import KeystoneHttp, swift_client

#: Milliseconds until measured values are drawn.
DRAWN = 60_000
ADMINISTRATORS = "/sluice/monitoring/"
PROJECTS = "/sluice_project/monitoring/"


@pytest.fixture
def load(horizon_cluster):
    """Alice reads her container continuously."""
    password, project, _ = seed.PEOPLE["alice"]
    token = KeystoneHttp(horizon_cluster.keystone_url).login("alice", password, project)
    swift = swift_client(horizon_cluster.proxy_url, token)
    swift.request("PUT", "measured")
    swift.request("PUT", "measured/one", b"x" * 1000)
    with Steadily(swift, 5, lambda: swift.request("GET", "measured/one")):
        yield


def wait_for_values(dashboard, title):
    """Wait until the plot with this title has five values above 0."""
    figure = dashboard.page.locator("figure", has=dashboard.page.locator("figcaption", has_text=title))
    figure.locator("summary").click()
    dashboard.page.wait_for_function(
        "table => Array.from(table.querySelectorAll('td')).filter("
        "cell => parseFloat(cell.textContent) > 0).length >= 5",
        arg=figure.locator("[data-plot-table]").element_handle(),
        timeout=DRAWN,
    )
    figure.locator("summary").click()


def drawn(dashboard, url):
    """Label → values of the plot at ``url``."""
    response = dashboard.page.request.get(dashboard.url + url, max_redirects=0)
    assert response.status == 200, response.text()
    return {one["label"]: [value for _, value in one["points"] if value] for one in response.json()["series"]}


def test_the_load_of_a_node_is_drawn_beside_that_of_a_tenant(dashboard, horizon_cluster, load, tmp_path):
    collectd = CollectdDaemon(tmp_path, horizon_cluster.layout.node, horizon_cluster.amqp_url, 1, ("lo",), tied=True)
    collectd.start()
    try:
        dashboard.login("admin")
        dashboard.open(f"{ADMINISTRATORS}?target=acme")
        wait_for_values(dashboard, "Processors")
        wait_for_values(dashboard, "Downloads per second")
        dashboard.picture("monitoring-measured")
        assert dashboard.page.locator("#section-nodes tbody tr").count() == 1
        dashboard.page.locator("#section-nodes tbody a").first.click()
        wait_for_values(dashboard, "Network")
        dashboard.picture("node-measured")
    finally:
        collectd.stop()
    assert dashboard.findings.faults == []


def test_a_project_sees_its_own_metrics_and_no_other_project_does(dashboard, load):
    dashboard.login("alice")
    dashboard.open(f"{PROJECTS}?container=measured&beside=GET_BW")
    wait_for_values(dashboard, "Downloads per second")
    wait_for_values(dashboard, "Downloaded bytes")
    dashboard.picture("monitoring-of-a-project")
    assert dashboard.findings.faults == []
    first = f"{PROJECTS}plots/first/"
    assert drawn(dashboard, f"{first}?container=measured")["measured"]
    dashboard.login("ulf")
    assert drawn(dashboard, f"{first}?container=measured") == {"measured": []}
    assert "measured" not in drawn(dashboard, first)
    refused = {f"{first}?container=../acme/measured": 400, ADMINISTRATORS: 403, f"{ADMINISTRATORS}plots/loads/": 403}
    for url, status in refused.items():
        assert dashboard.page.request.get(dashboard.url + url, max_redirects=0).status == status
