"""Bandwidth objectives on a live cluster of two proxies and three object servers with an agent each."""

import contextlib
import itertools
import threading
import time
from pathlib import Path

import pytest
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.bandwidth_observer import CLOSE, Heard, means, settled
from tests.support.cluster.load import ENDLESS
from tests.support.cluster.rewrites import rewrite

from sluice_aio.base.layout import OBJECT_DEVICES
from sluice_aio.base.setup import GOLD
from sluice_client import Client, ClientError

MB = 1_000_000
TENANTS = ("AUTH_t1", "AUTH_t2", "AUTH_t3")
#: Low enough for a busy machine.
GET, PUT = 12 * MB, 4.5 * MB
CAPACITY = Capacity(get=GET, put=PUT)
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "bandwidth_differentiation.py"


pytestmark = pytest.mark.alone


@pytest.fixture(scope="module", params=["proxy", pytest.param("storage_node", marks=pytest.mark.probe)])
def stage(request, tmp_path_factory):
    terms = Terms(side=request.param, capacity=CAPACITY, sizes=(250_000,), fallocate=False)
    with Stage(tmp_path_factory.mktemp("s"), terms) as found:
        for name in TENANTS:
            found.fill(name)
        yield found


@pytest.fixture
def promised(stage):
    """Creates policies, and deletes them afterwards."""
    made = []

    def say(sentence):
        place = "PROXY" if stage.terms.side == "proxy" else "STORAGE_NODE"
        made.append(stage.say(f"{sentence} ON {place}"))
        return made[-1]

    yield say
    for policy in made:
        with contextlib.suppress(ClientError):
            stage.client.delete_policy(policy)


def many(stage, connections):
    """More clients where they use another server with each request, so that one waits at each."""
    return connections if stage.terms.side == "proxy" else 3 * connections


@contextlib.contextmanager
def loads(stage, *specs):
    """Running clients: ``(account, connections, method)``."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(stage.load(name, many(stage, count), method)) for name, count, method in specs]
        yield found


def close(expected):
    return pytest.approx(expected, rel=CLOSE)


def test_each_tenant_gets_its_floor_and_an_equal_part_of_what_is_spare(stage, promised):
    for name, floor in zip(TENANTS, (4, 2.5, 1), strict=True):
        promised(f"FOR TENANT {name} DO SET bandwidth WITH get_bw={floor}MBps")
    with loads(stage, *((name, 16, "GET") for name in TENANTS)) as found:
        expected = [5.5 * MB, 4 * MB, 2.5 * MB]
        assert settled(found, expected) == close(expected)
        epoch = stage.store.head().epoch
        means(found, settle=0, seconds=2)
        assert stage.store.head().epoch == epoch, "shares must not go through the epoch"
        assert [load.errors() for load in found] == [(0, "")] * 3


def test_downloads_and_uploads_are_shown_stream_by_stream_with_what_their_tenant_asked_for(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=4MBps put_bw=1500kBps")
    with (
        loads(stage, ("AUTH_t1", 16, "GET")),
        stage.load("AUTH_t1", 6, "PUT", sizes=(ENDLESS,)),
    ):
        table = await_streams(stage, "AUTH_t1")
        overview = stage.client.bandwidth_overview()
    assert overview.keys() == table.keys()
    for server, lines in table.items():
        assert {method: line["needed_BW"] for method, line in lines.items()} == {"GET": 4.0, "PUT": 1.5}
        for method, name in (("GET", "/AUTH_t1/c/250000-"), ("PUT", "/AUTH_t1/c/put-")):
            assert all(one["oid"].startswith(name) for one in lines[method]["objects"]), lines[method]
            assert max(one["oid_calculated_BW"] for one in lines[method]["objects"]) > 0
        assert overview[server]["AUTH_t1"][GOLD] > 0


def await_streams(stage, account, limit=20.0):
    """Object server → method → its line of the account, once all servers move objects both ways."""
    end = time.monotonic() + limit
    while True:
        found = {
            server: {line["method"]: line for device in devices.values() for line in device.values()}
            for server, devices in stage.client.bandwidth(account).items()
        }
        streams = [lines.get(method, {}).get("objects") for lines in found.values() for method in ("GET", "PUT")]
        if len(found) == len(OBJECT_DEVICES) and all(streams):
            return found
        assert time.monotonic() < end, found
        time.sleep(0.2)


@pytest.fixture
def rewriting(stage):
    """Objects of a tenant are compressed and made plain again, as fast as a rewriter can, job after job."""
    stage.fill("AUTH_t3", "stored", sizes=(1_000_000,), objects=40)
    stage.cluster.add({"rewriter"})
    over, done = threading.Event(), []

    def work():
        with Client(stage.cluster.api_url, stage.cluster.token) as api:
            for goal in itertools.cycle(("policies", "plain")):
                if over.is_set():
                    return
                done.append(rewrite(api, "AUTH_t3/stored", goal))

    thread = threading.Thread(target=work)
    thread.start()
    yield done
    over.set()
    thread.join()
    stage.cluster.remove("rewriter")


@pytest.mark.probe
def test_floors_hold_beside_rewrites(stage, promised, rewriting):
    for name, floor in zip(TENANTS, (4, 2.5), strict=False):
        promised(f"FOR TENANT {name} DO SET bandwidth WITH get_bw={floor}MBps")
    policy = stage.say("FOR CONTAINER AUTH_t3/stored DO SET compression ON PROXY")
    with loads(stage, *((name, 16, "GET") for name in TENANTS[:2])) as found:
        expected = [6.75 * MB, 5.25 * MB]
        assert settled(found, expected) == close(expected)
        assert [load.errors() for load in found] == [(0, "")] * 2
    stage.client.delete_policy(policy, wait=10)
    assert sum(job["rewritten"] for job in rewriting) > 40, "the same objects more than once"
    assert [job["failed"] for job in rewriting if job["failed"]] == []


@pytest.fixture
def algorithm(stage):
    """Crystal's algorithm 1, running as a global controller in place of Sluice's own allocation."""
    name, code = "bandwidth_differentiation", stage.client.controller_code
    code.upload(name, EXAMPLE.read_bytes())
    code.start(name, wait=20)
    yield name
    code.stop(name, wait=20)
    stage.client.delete_controller(name)


def controllers(stage):
    """Method → the global controller that allocates it, as the API reports."""
    flows = stage.client.collection("/bw/flows")
    list(flows.list())
    return flows.last_page["controllers"]


@pytest.mark.probe
def test_crystals_algorithm_allocates_as_an_uploaded_controller(stage, promised, algorithm):
    for name, floor in zip(TENANTS, (4, 2.5, 1), strict=True):
        promised(f"FOR TENANT {name} DO SET bandwidth WITH get_bw={floor}MBps")
    with loads(stage, *((name, 16, "GET") for name in TENANTS)) as found:
        expected = [5.5 * MB, 4 * MB, 2.5 * MB]
        assert settled(found, expected) == close(expected)
        assert controllers(stage) == {"GET": algorithm}
        epoch = stage.store.head().epoch
        means(found, settle=0, seconds=2)
        assert stage.store.head().epoch == epoch, "rates must not go through the epoch"
        stage.client.controller_code.stop(algorithm, wait=20)
        end = time.monotonic() + 20
        while controllers(stage):
            assert time.monotonic() < end, "its rates hold although it was stopped"
            time.sleep(0.2)
        assert settled(found, expected) == close(expected)
        assert [load.errors() for load in found] == [(0, "")] * 3


@pytest.mark.probe
def test_a_tenant_without_a_promise_shares_what_is_spare(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=6MBps")
    with loads(stage, ("AUTH_t1", 16, "GET"), ("AUTH_t2", 16, "GET")) as found:
        assert settled(found, [9 * MB, 3 * MB]) == close([9 * MB, 3 * MB])


@pytest.mark.probe
def test_what_a_tenant_leaves_unused_goes_to_the_others(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=8MBps")
    with loads(stage, ("AUTH_t1", 16, "GET"), ("AUTH_t2", 16, "GET")) as (first, second):
        means((first, second), seconds=1)
        first.stop()
        assert settled((second,), [GET]) == close([GET])


@pytest.mark.probe
def test_a_ceiling_holds_and_the_others_are_free(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH max_get_bw=2MBps")
    begun = int(time.time())
    with loads(stage, ("AUTH_t1", 8, "GET"), ("AUTH_t2", 8, "GET")) as found:
        assert settled(found[:1], [2 * MB]) == close([2 * MB])
        assert means(found[1:])[0] > GET
        # each node by itself until there are shares, with the quarter of a second in a bucket at the start
        assert max(found[0].rates(begun, begun + 4).values()) < 3 * 1.25 * 2 * MB + MB


@pytest.mark.probe
def test_uploads_have_floors_of_their_own(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH put_bw=1500kBps")
    with (
        stage.load("AUTH_t1", 6, "PUT", sizes=(ENDLESS,)) as first,
        stage.load("AUTH_t2", 6, "PUT", sizes=(ENDLESS,)) as second,
    ):
        assert settled((first, second), [3 * MB, 1.5 * MB]) == close([3 * MB, 1.5 * MB])
        assert [load.errors() for load in (first, second)] == [(0, "")] * 2


@pytest.mark.probe
def test_uploads_that_end_and_begin_again_have_them_too(stage, promised):
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH put_bw=1500kBps")
    expected = [3 * MB, 1.5 * MB]
    with loads(stage, ("AUTH_t1", 6, "PUT"), ("AUTH_t2", 6, "PUT")) as found, Heard(stage.cluster.amqp_url) as heard:
        assert heard.settled(TENANTS[:2], "PUT", expected) == close(expected)
        assert [load.errors() for load in found] == [(0, "")] * 2


@pytest.mark.probe
def test_floors_beyond_the_capacity_are_accepted_flagged_and_reduced(stage, promised):
    policies = [promised(f"FOR TENANT {name} DO SET bandwidth WITH get_bw=12MBps") for name in TENANTS[:2]]
    with loads(stage, ("AUTH_t1", 16, "GET"), ("AUTH_t2", 16, "GET")) as found:
        assert settled(found, [GET / 2, GET / 2]) == close([GET / 2, GET / 2])
        shown = [stage.client.policy(policy)["infeasible"] for policy in policies]
        assert sum(one["shortfall"] for one in shown) == pytest.approx(GET, rel=CLOSE)
        rows = {row["account"]: row for row in stage.flows() if row["method"] == "GET" and row["active"]}
        assert rows["AUTH_t1"]["short"] + rows["AUTH_t2"]["short"] == pytest.approx(GET, rel=CLOSE)


@pytest.mark.probe
def test_a_containers_ceiling_is_its_own_and_its_tenants_bounds_it(stage, promised):
    stage.fill("AUTH_t1", "other")
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH max_get_bw=4MBps")
    promised("FOR CONTAINER AUTH_t1/other DO SET bandwidth WITH max_get_bw=1MBps")
    with (
        loads(stage, ("AUTH_t1", 8, "GET")) as (whole,),
        stage.load("AUTH_t1", many(stage, 8), container="other") as part,
    ):
        assert settled((whole, part), [3 * MB, 1 * MB]) == close([3 * MB, 1 * MB])


@pytest.mark.probe
def test_a_containers_floor_is_its_own_and_its_tenants_is_for_the_others(stage, promised):
    stage.fill("AUTH_t1", "other")
    promised('FOR CONTAINER "AUTH_t1/other" DO SET bandwidth WITH get_bw=6MBps')
    promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=2MBps")
    with (
        loads(stage, ("AUTH_t1", 16, "GET"), ("AUTH_t2", 16, "GET")) as (rest, other),
        stage.load("AUTH_t1", many(stage, 16), container="other") as part,
    ):
        # each tenant has the same part of the spare rate, and each flow of a tenant
        expected = [7 * MB, 3 * MB, 2 * MB]
        assert settled((part, rest, other), expected) == close(expected)
        floors = {(row["account"], row["container"]): row["floor"] for row in stage.flows() if row["active"]}
        assert floors == {("AUTH_t1", "other"): 6 * MB, ("AUTH_t1", ""): 2 * MB, ("AUTH_t2", ""): 0}
        part.stop()
        expected = [7 * MB, 5 * MB]
        assert settled((rest, other), expected) == close(expected)


@pytest.mark.probe
def test_a_change_reaches_transfers_in_flight(stage, promised):
    policy = promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH max_get_bw=1MBps")
    stage.fill("AUTH_t1", "large", sizes=(20 * MB,))
    with stage.load("AUTH_t1", 1, container="large", sizes=(20 * MB,)) as load:
        (rate,) = settled((load,), [MB])
        assert rate == pytest.approx(MB, rel=0.25)
        stage.client.delete_policy(policy)
        (rate,) = means((load,), settle=2, seconds=2)
        assert rate > 5 * MB


@pytest.mark.probe
def test_deleting_the_last_promise_frees_everybody(stage, promised):
    policy = promised("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=1MBps")
    with loads(stage, ("AUTH_t1", 16, "GET"), ("AUTH_t2", 16, "GET")) as found:
        assert sum(means(found)) < GET * 1.1
        stage.client.delete_policy(policy)
        assert sum(means(found)) > GET * 1.3
