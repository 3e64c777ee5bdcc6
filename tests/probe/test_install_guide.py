"""A cluster of several hosts, installed by docs/install word for word.

Given Keystone, Cinder, Horizon and a Swift of one proxy and two storage nodes, Sluice serves when the pages were
followed; a third storage node joins, Redis gets replicas, all is upgraded, a node is lost, and Sluice is taken out
again.  The tests run in this order, on the same hosts.
"""

import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.hosts.lab import Lab
from tests.support.install import wheelhouse
from tests.support.install.guide import Guide
from tests.support.install.openstack import OpenStack, environments

STORAGE = ("storage1", "storage2")
CONTROLLERS = ("controller", "controller2", "controller3")
PASSWORDS = ("REDIS_PASS", "RABBIT_PASS", "SLUICE_PASS", "CODE_PASS")
NEW_VERSION = wheelhouse.later_version()
DETACH_DEVICES = """\
for volume in /run/sluice/konnector/*/; do
    losetup --list --noheadings --output NAME,BACK-FILE | awk -v volume="$volume" 'index($2, volume) == 1 {print $1}'
done | xargs --no-run-if-empty losetup --detach
"""
DAEMONS = {
    "controller": ("sluice-api", "sluice-actors"),
    "proxy1": (
        "sluice-agent",
        "sluice-motifs",
        "sluice-rewriter",
        "sluice-konnector",
        "sluice-sandbox",
        "sluice-motif-fs@data",
    ),
    "storage1": ("sluice-agent", "sluice-object-replicator", "sluice-object-reconstructor", "sluice-sandbox"),
}


@pytest.fixture(scope="module")
def openstack(tmp_path_factory):
    """The hosts before Sluice is installed."""
    folder = tmp_path_factory.mktemp("lab")
    wheelhouse.link_third_parties(folder / "wheelhouse")
    wheelhouse.add_sluice(folder / "wheelhouse")
    with Lab(folder, shown=environments()) as lab:
        made = OpenStack(lab)

        def add_swift():
            made.add_proxy(STORAGE)
            for name in (*STORAGE, "storage3"):
                made.add_storage(name)

        with ThreadPoolExecutor() as pool:
            newer = pool.submit(wheelhouse.add_sluice, folder / "newer", NEW_VERSION)
            for added in [pool.submit(made.add_controller), pool.submit(add_swift)]:
                added.result()
        made.newer_wheel = newer.result()
        yield made
        # the kernel's, so that they outlive a host: there are some when a test about volumes has failed
        made.hosts["proxy1"].run("sh", "-c", DETACH_DEVICES)


@pytest.fixture(scope="module")
def guide(openstack):
    roles = {
        "controller": ["controller"],
        "replica": CONTROLLERS[1:],
        "sentinel": CONTROLLERS,
        "horizon": ["controller"],
        "proxy": ["proxy1"],
        "storage": STORAGE,
        "volumes": ["proxy1"],
        "files": ["proxy1"],
    }
    written = {word: secrets.token_hex(8) for word in PASSWORDS} | {"NEW_VERSION": NEW_VERSION}
    followed = Guide(openstack.hosts, roles, written)
    yield followed
    for place, seconds in followed.done:
        print(f"{seconds:6.1f} s  {place}")


def test_a_controller_is_installed(guide):
    guide.follow("controller")


def test_a_proxy_node_is_installed(guide):
    guide.follow("proxy")


@pytest.mark.parametrize("name", STORAGE)
def test_a_storage_node_is_installed(guide, name):
    guide.follow("storage", storage=[name])


def test_the_first_policies_compress_what_is_uploaded(guide):
    guide.follow("verify")


@pytest.mark.parametrize("page", ["prometheus", "motif-file-system", "volumes", "horizon"])
def test_further_pages_can_be_followed(guide, page):
    guide.follow(page)


def test_the_reconstructor_brings_back_what_a_disk_has_lost(openstack):
    storage = openstack.hosts["storage1"]
    fragments = "find /srv/node/sdb1/objects-1 -name '*.data'"
    (fragment,) = storage.run("sh", "-c", fragments).split()
    storage.run("rm", "-rf", "/srv/node/sdb1/objects-1")
    back = f"until {fragments} | grep --quiet '#'; do sleep 0.5; done 2> /dev/null; {fragments}"
    assert storage.run("timeout", "90", "sh", "-c", back).split() == [fragment]


def test_a_storage_node_joins(guide):
    guide.follow("storage", storage=["storage3"])
    guide.follow("add-node")
    guide.roles["storage"] = [*STORAGE, "storage3"]


def test_redis_gets_replicas_and_sentinels(guide, openstack):
    for name in CONTROLLERS[1:]:
        openstack.add_host(name)
    guide.follow("sentinel")


def test_uploaded_filters_run_in_jails(guide):
    guide.follow("isolated")


def test_the_cluster_is_upgraded_in_the_promised_order(guide, openstack):
    shutil.copy(openstack.newer_wheel, openstack.wheelhouse)
    guide.follow("upgrade")


def test_a_node_is_lost_and_replaced(guide, openstack):
    openstack.cut_power("storage2")
    guide.roles["storage"] = ["storage1", "storage3"]
    guide.follow("lose-node")


def test_no_daemon_had_to_be_started_again(openstack):
    """Each runs, and has neither failed nor missed its watchdog since a command last started it."""
    for name, units in DAEMONS.items():
        for unit in units:
            assert openstack.hosts[name].run("systemctl", "is-active", unit).strip() == "active", unit
            assert openstack.hosts[name].run("systemctl", "show", unit).strip() == "NRestarts=0", unit


def test_sluice_is_removed_and_stock_swift_has_every_byte(guide):
    guide.follow("remove")
