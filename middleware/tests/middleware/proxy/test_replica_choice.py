"""The first object server of a proxy's requests."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from swift.common.ring import Ring, RingBuilder
from swift.common.swob import Request
from swift.proxy.controllers.base import NodeIter
from tests.support.middleware.object_server import Log, swift_conf

from sluice_core.options import OptionError
from sluice_middleware.bandwidth.io_levels import AgentState
from sluice_middleware.proxy import replica_choice
from sluice_middleware.proxy.replica_choice import SLIGHT, Application, find_spare, weighted_order
from sluice_middleware.swift.diskfile_api import POLICIES

DRAWS = 3000


def node(number, region=1, port=6200):
    return {"id": number, "ip": f"10.0.0.{number}", "port": port, "region": region, "zone": number, "device": "sda"}


NODES = [node(1), node(2), node(3)]


@pytest.fixture(scope="module", autouse=True)
def rings(tmp_path_factory):
    """Six servers in two regions, three replicas."""
    folder = tmp_path_factory.mktemp("etc")
    builder = RingBuilder(4, 3, 1)
    for number in range(6):
        one = node(number, region=1 + number % 2)
        builder.add_dev({**one, "weight": 1.0, "replication_ip": one["ip"], "replication_port": one["port"]})
    builder.rebalance(seed=1)
    with swift_conf(folder):
        for name in ("account", "container", *(policy.ring_name for policy in POLICIES)):
            builder.get_ring().save(str(folder / f"{name}.ring.gz"))
        yield folder


@pytest.fixture
def ring(rings):
    return Ring(str(rings), ring_name="object")


@pytest.fixture
def proxy(rings):
    """A proxy with these spares and options."""

    def make(spares, **options):
        conf = {"sluice_agent_socket": "", "swift_dir": str(rings), **options}
        app = Application(conf, Log("proxy-server"))
        app.agent_state = lambda: AgentState(spares=spares)
        return app

    return make


def firsts(order, draws=DRAWS):
    """How often each server came first, by its number."""
    found = Counter(order()[0]["id"] for _ in range(draws))
    return {number: count / draws for number, count in sorted(found.items())}


# -- pure -----------------------------------------------------------------------------------------------


def test_servers_are_drawn_by_the_square_of_their_spare_bandwidth():
    random.seed(1)
    spares = {"10.0.0.1:6200": 0.9, "10.0.0.2:6200": 0.3, "10.0.0.3:6200": 0.3}
    found = firsts(lambda: weighted_order(NODES, spares))
    assert found[1] == pytest.approx(0.81 / 0.99, abs=0.03)
    assert found[2] == pytest.approx(0.09 / 0.99, abs=0.03)


def test_small_differences_change_nothing():
    spares = {"10.0.0.1:6200": 0.5, "10.0.0.2:6200": 0.5 + SLIGHT - 0.01, "10.0.0.3:6200": 0.5}
    assert all(weighted_order(NODES, spares) == NODES for _ in range(100))


def test_a_server_of_which_nothing_is_known_counts_as_the_mean():
    random.seed(2)
    found = firsts(lambda: weighted_order(NODES, {"10.0.0.1:6200": 1.0, "10.0.0.2:6200": 0.0}))
    assert found[3] == pytest.approx(0.25 / 1.2525, abs=0.03)


def test_a_busy_server_is_still_chosen_sometimes():
    random.seed(3)
    found = firsts(lambda: weighted_order(NODES, {"10.0.0.1:6200": 0.0, "10.0.0.2:6200": 0.3, "10.0.0.3:6200": 0.3}))
    assert 0 < found[1] < 0.04


@given(
    st.lists(st.integers(1, 9), unique=True),
    st.dictionaries(st.integers(1, 9), st.floats(0, 1)),
    st.floats(0, 1, exclude_max=True),
)
def test_weighted_order_is_a_permutation(numbers, known, uniform):
    nodes = [node(number) for number in numbers]
    spares = {f"10.0.0.{number}:6200": spare for number, spare in known.items()}
    found = weighted_order(nodes, spares, lambda: uniform)
    assert sorted(one["id"] for one in found) == sorted(numbers)


@pytest.mark.parametrize(
    ("spares", "expected"),
    [
        ({"10.0.0.1:6200": 0.4}, 0.4),
        ({"10.0.0.1:6201": 0.4}, 0.4),
        ({"10.0.0.1:6201": 0.4, "10.0.0.1:6202": 0.6}, None),
        ({"10.0.0.11:6200": 0.4}, None),
        ({"node1": 0.4}, None),
        ({}, None),
    ],
)
def test_a_server_with_a_port_for_each_disk_is_found_by_its_address(spares, expected):
    assert find_spare(NODES[0], spares) == expected


# -- in Swift's proxy ---------------------------------------------------------------------------------


def test_without_spares_the_order_is_swifts(proxy):
    app = proxy({})
    random.seed(7)
    ours = [app.sort_nodes(list(NODES), POLICIES[0]) for _ in range(50)]
    random.seed(7)
    theirs = [super(Application, app).sort_nodes(list(NODES), POLICIES[0]) for _ in range(50)]
    assert ours == theirs


def test_account_and_container_nodes_keep_swifts_order(proxy):
    app = proxy({"10.0.0.1:6200": 1.0, "10.0.0.2:6200": 0.0})
    random.seed(8)
    found = firsts(lambda: app.sort_nodes(list(NODES)))
    assert min(found.values()) > 0.28


def test_the_list_that_was_given_is_sorted_too(proxy):
    app = proxy({"10.0.0.1:6200": 1.0, "10.0.0.2:6200": 0.0})
    given_one = list(NODES)
    assert app.sort_nodes(given_one, POLICIES[0]) is given_one


def test_read_affinity_precedes_spare_bandwidth(proxy):
    app = proxy(
        {"10.0.0.1:6200": 0.1, "10.0.0.2:6200": 0.9, "10.0.0.3:6200": 1.0},
        sorting_method="affinity",
        read_affinity="r1=100",
    )
    nodes = [node(1), node(2), node(3, region=2)]
    random.seed(9)
    orders = Counter(tuple(one["id"] for one in app.sort_nodes(list(nodes), POLICIES[0])) for _ in range(DRAWS))
    assert {order[2] for order in orders} == {3}
    assert orders[2, 1, 3] / DRAWS > 0.95


def test_timing_order_is_unchanged(proxy):
    app = proxy({"10.0.0.1:6200": 0.0, "10.0.0.2:6200": 1.0}, sorting_method="timing")
    for number, seconds in ((1, 0.001), (2, 0.002), (3, 0.003)):
        app.set_node_timing(node(number), seconds)
    assert [one["id"] for one in app.sort_nodes(list(NODES), POLICIES[0])] == [1, 2, 3]


def test_primaries_stay_before_handoffs(proxy, ring):
    primaries = {one["id"] for one in ring.get_part_nodes(3)}
    others = set(range(6)) - primaries
    spares = {f"10.0.0.{number}:6200": 1.0 if number in others else number / 10 for number in range(6)}
    app = proxy(spares)
    request = Request.blank("/v1/a/c/o")
    for _ in range(50):
        found = [one["id"] for one in NodeIter("object", app, ring, 3, app.logger, request, policy=POLICIES[0])]
        assert set(found[:3]) == primaries
        assert set(found[3:]) <= others


def test_a_get_prefers_the_replica_with_spare_bandwidth(proxy, ring):
    random.seed(10)
    idle, *busy = (one["id"] for one in ring.get_part_nodes(3))
    app = proxy({f"10.0.0.{idle}:6200": 0.9, **{f"10.0.0.{number}:6200": 0.1 for number in busy}})
    request = Request.blank("/v1/a/c/o")
    found = firsts(lambda: list(NodeIter("object", app, ring, 3, app.logger, request, policy=POLICIES[0])), 500)
    assert found[idle] > 0.9


def test_an_invalid_sluice_option_stops_the_proxy(proxy):
    with pytest.raises(OptionError, match=r"\[app:proxy-server\]: unknown option `sluice_agent`"):
        proxy({}, sluice_agent="x")


def test_app_factory_reads_the_options_of_each_storage_policy(rings, tmp_path, monkeypatch):
    file = tmp_path / "proxy-server.conf"
    file.write_text("[proxy-server:policy:0]\nsorting_method = affinity\nread_affinity = r1=1\n")
    monkeypatch.setattr("swift.proxy.server.get_logger", lambda *args, **more: Log("proxy-server"))
    general = {"__file__": str(file), "swift_dir": str(rings)}
    app = replica_choice.app_factory(general, __name__="proxy-server", sluice_agent_socket="")
    assert isinstance(app, Application)
    assert app.get_policy_options(POLICIES[0]).sorting_method == "affinity"
    assert app.agent_state().spares == {}


# -- controllers ----------------------------------------------------------------------------------------

_INFO = {"status": 204, "storage_policy": "0"}


@pytest.mark.parametrize("policy", list(POLICIES), ids=lambda policy: policy.policy_type)
def test_cached_methods_equal_those_swift_finds(proxy, policy):
    app = proxy({})
    request = Request.blank("/v1/a/c/o", headers={"X-Backend-Storage-Policy-Index": str(int(policy))})
    request.environ["swift.infocache"] = {"container/a/c": _INFO}
    kind, path = app.get_controller(request)
    plain = app.obj_controller_router[policy]
    assert kind(app, **path).allowed_methods == plain(app, **path).allowed_methods > {"GET", "PUT", "DELETE"}
    assert issubclass(kind, plain)
    assert app.get_controller(request)[0] is kind


@pytest.mark.parametrize("path", ["/v1/a", "/v1/a/c", "/info"])
def test_other_controllers_are_swifts(proxy, path):
    app = proxy({})
    request = Request.blank(path)
    assert app.get_controller(request)[0] is super(Application, app).get_controller(request)[0]
