"""Volumes in the dashboard of a cluster with Cinder and a konnector, as an administrator and a member use them."""

import re

import pytest
from tests.support.block.volumes import volume_cluster
from tests.support.browser.browser import NARROW, WIDE
from tests.support.browser.dashboard import Dashboard

SCRIPT = '<img src=x onerror="document.title=666">{{ 7*191 }}'
#: Milliseconds for Cinder and the konnector.
PATIENT = 60_000


@pytest.fixture(scope="module")
def volumes_cluster():
    with volume_cluster({"horizon"}) as running:
        yield running


@pytest.fixture
def tab(volumes_cluster, chromium, pictures):
    made = Dashboard(chromium, volumes_cluster.layout, pictures)
    yield made
    assert made.findings.exceptions == []
    made.page.close()


@pytest.fixture(scope="module")
def gold(volumes_cluster, chromium, pictures, eventually):
    """A tier that an administrator has created in the dashboard."""
    made = Dashboard(chromium, volumes_cluster.layout, pictures)
    with made.client("admin") as client:
        eventually(lambda: list(client.pools()), 30)
    made.login("admin")
    made.open("/sluice/volumes/tiers/")
    made.page.get_by_role("link", name="Create tier").click()
    made.page.get_by_label("Name").fill("gold")
    made.page.get_by_label("Bandwidth").fill("many")
    made.page.get_by_label("Fabric").select_option("nbd")
    press(made.page, "Create tier")
    refused = made.page.locator("#id_bandwidth_error")
    assert "many" in refused.inner_text()
    assert made.page.get_by_label("Name").input_value() == "gold"
    made.page.get_by_label("Bandwidth").fill("100MBps")
    press(made.page, "Create tier")
    made.page.locator("tr", has_text="100 MB/s, nbd").wait_for()
    made.picture("volumes-tiers")
    yield "gold"
    made.page.close()


def press(page, name):
    page.locator(".sluice").get_by_role("button", name=name, exact=True).click()
    page.wait_for_load_state()


def follow(page, name):
    page.locator(".sluice").get_by_role("link", name=name, exact=True).click()
    page.wait_for_load_state()


def look_at(tab, name):
    """Pictures of a page in both widths, and Axe's findings."""
    assert tab.violations() == []
    tab.picture(name)
    tab.page.set_viewport_size(NARROW)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    tab.picture(f"{name}-narrow")
    tab.page.set_viewport_size(WIDE)


def create(tab, name):
    """Create a volume by demand; return its page."""
    tab.open("/sluice_project/volumes/")
    follow(tab.page, "Create volume")
    tab.page.get_by_label("Name").fill(name)
    tab.page.get_by_label("Size in GiB").fill("1")
    tab.page.get_by_label("Bandwidth").fill("50MBps")
    press(tab.page, "Find the tier")
    assert "The cheapest tier that meets this is gold" in tab.page.locator(".alert-info").inner_text()
    press(tab.page, "Create volume")
    tab.page.locator("#section-volumes").get_by_role("link", name=name).click(timeout=PATIENT)
    status(tab).get_by_text("available").wait_for(timeout=PATIENT)


def status(tab):
    return tab.page.locator("#section-state dl")


def nothing_under_way(tab):
    heading = tab.page.locator("#section-state h2", has_text="Operations under way")
    heading.locator("+ p").wait_for(timeout=PATIENT)


def test_a_member_makes_attaches_extends_and_deletes_a_volume(tab, volumes_cluster, gold):
    page = tab.page
    tab.login("alice")
    create(tab, "data1")
    look_at(tab, "volume-available")

    follow(page, "Attach")
    page.get_by_label("Node").fill(volumes_cluster.layout.node)
    press(page, "Attach")
    status(tab).get_by_text(f"node {volumes_cluster.layout.node}", exact=True).wait_for(timeout=PATIENT)
    nothing_under_way(tab)
    device = re.search(r"/dev/loop\d+", page.locator("#section-state table").inner_text())[0]

    follow(page, "Extend")
    page.get_by_label("New size in GiB").fill("1")
    press(page, "Extend")
    assert "expected more than the 1 GiB" in page.locator("#id_size_error").inner_text()
    page.get_by_label("New size in GiB").fill("2")
    press(page, "Extend")
    status(tab).get_by_text("2 GiB", exact=True).wait_for(timeout=PATIENT)
    nothing_under_way(tab)

    follow(page, "Create snapshot")
    page.get_by_label("Name").fill("monday")
    press(page, "Create snapshot")
    page.locator("#section-snapshots").get_by_text("monday").wait_for(timeout=PATIENT)
    nothing_under_way(tab)

    with open(device, "rb"):
        follow(page, "Detach")
        press(page, "Detach")
        assert device in page.locator(".alert-danger").inner_text()
    press(page, "Detach")
    status(tab).get_by_text("available").wait_for(timeout=PATIENT)
    nothing_under_way(tab)
    look_at(tab, "volume")

    follow(page, "Delete snapshot monday")
    press(page, "Delete")
    page.locator("#section-snapshots").get_by_text("None.").wait_for(timeout=PATIENT)
    nothing_under_way(tab)
    follow(page, "Delete")
    press(page, "Delete")
    page.locator("#section-volumes").get_by_text("data1").wait_for(state="hidden", timeout=PATIENT)
    look_at(tab, "volumes")


def test_only_the_owner_and_administrators_see_a_volume_whatever_it_is_called(tab, gold):
    tab.login("alice")
    create(tab, SCRIPT)
    path = tab.page.url.removeprefix(tab.url)
    assert SCRIPT in tab.page.locator("#section-state h2").first.inner_text()
    assert "666" not in tab.page.title()

    tab.login("ulf")
    assert tab.open(path).status in (403, 404)
    tab.open("/sluice_project/volumes/")
    assert tab.page.locator("#section-volumes tbody tr").count() == 0

    tab.login("rita")
    tab.open(path)
    assert tab.page.locator("#section-state").get_by_role("link").all_inner_texts() == []

    tab.login("admin")
    tab.open("/sluice/volumes/")
    tab.page.locator("#section-volumes").get_by_text(SCRIPT).click()
    tab.page.get_by_role("link", name="Where it lies").click()
    assert "@nbd" in tab.page.locator("#section-found").inner_text()
    look_at(tab, "locality-volume")
    tab.login("alice")
    tab.open(path)
    follow(tab.page, "Delete")
    press(tab.page, "Delete")
    nothing = tab.page.locator("#section-volumes").get_by_text("There are no volumes.")
    nothing.wait_for(timeout=PATIENT)


def test_an_administrator_measures_a_pool_and_sees_how_far_it_is(tab, volumes_cluster, gold):
    tab.login("admin")
    tab.open("/sluice/volumes/pools/")
    look_at(tab, "volumes-pools")
    tab.page.get_by_role("link", name=re.compile("nbd#slow")).click()
    follow(tab.page, "Measure")
    tab.page.get_by_label("Node").fill(volumes_cluster.layout.node)
    tab.page.get_by_label("Seconds for each").fill("1")
    press(tab.page, "Measure")
    tab.page.locator("progress").wait_for()
    tab.picture("volumes-pool-measured")
    tab.page.locator("dl").get_by_text(re.compile("reads .*B/s and")).wait_for(timeout=2 * PATIENT)
    look_at(tab, "volumes-pool")
