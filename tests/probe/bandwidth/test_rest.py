"""``/bw`` on a live cluster: IOStack's table and overview, and its values compared with each object server's rates."""

import contextlib
import http.client
import json
import statistics
import time
from datetime import datetime
from urllib.parse import quote, urlencode

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.cluster.bandwidth_cluster import Capacity, Stage, Terms
from tests.support.cluster.bandwidth_observer import CLOSE, Heard, first_good, means, settled

from sluice_aio.base.layout import OBJECT_DEVICES
from sluice_aio.base.setup import EC21, GOLD
from sluice_core.describe import STORAGE_NODE

pytestmark = pytest.mark.alone

MB = 1_000_000
#: Low enough for a busy machine; of three object servers together.
GET = 6 * MB
SERVERS = len(OBJECT_DEVICES)
SIZE, OBJECTS = 250_000, 4
#: Clients use another server with each request, and one must wait at each.
CONNECTIONS = 32
#: Of objects in fragments no byte is sent before a whole segment was read.
FEW = 8
TENANT, OTHER = "AUTH_t1", "AUTH_t2"
#: A name with non-ASCII letters, a blank, and a letter outside the first plane.
ABROAD = "AUTH_Ünï \N{CJK UNIFIED IDEOGRAPH-6771}\N{GRINNING FACE}"
CRATE = "Büchër \N{BLACK STAR}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    terms = Terms(side=STORAGE_NODE, capacity=Capacity(get=GET, put=None), sizes=(SIZE,), objects=OBJECTS)
    with Stage(tmp_path_factory.mktemp("s"), terms) as found:
        for name in (TENANT, OTHER):
            found.fill(name)
        found.fill(ABROAD, CRATE)
        yield found


@pytest.fixture(autouse=True)
def _cleared(stage):
    yield
    stage.client.clear_bandwidth(wait=10)


@pytest.fixture
def loads(stage):
    """Starts clients, which stop with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda account, count=CONNECTIONS, **more: stack.enter_context(stage.load(account, count, **more))


def close(expected):
    return pytest.approx(expected, rel=CLOSE)


def ask(stage, path, read=json.loads):
    """The response to a GET of the API: status, headers, and the decoded JSON."""
    connection = http.client.HTTPConnection(stage.cluster.api_url.removeprefix("http://"), timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"X-Auth-Token": stage.cluster.token})
        answer = connection.getresponse()
        return answer.status, answer.headers, read(answer.read())


def lines(table, account):
    """Server → the only line of ``account``'s downloads from its one device; filling it may not have ended yet."""
    found = {}
    for server, devices in table.items():
        for device in devices.values():
            for line in device.values():
                if (line["account"], line["method"]) == (account, "GET"):
                    assert server not in found
                    found[server] = line
    return found


def await_table(stage, account, path="/bw/osinfo"):
    """The table as soon as each object server has a line for ``account`` with a rate and an object."""
    end = time.monotonic() + 20
    while True:
        _, _, table = ask(stage, path)
        found = lines(table, account)
        if len(found) == SERVERS and all(line["objects"] for line in found.values()):
            return table
        assert time.monotonic() < end, table
        time.sleep(0.2)


def flows(stage, **wanted):
    return ask(stage, f"/bw/flows?{urlencode(wanted)}")[2]["flows"]


def scraped(stage, **wanted):
    """The series that Prometheus would read: the labels and the value of each, by its name."""
    status, _, text = ask(stage, f"/bw/metrics?{urlencode(wanted)}", bytes.decode)
    assert status == 200, text
    families = text_string_to_metric_families(text)
    return {one.name: [(sample.labels, sample.value) for sample in one.samples] for one in families}


def servers(stage):
    """``ip:port`` of each object server → its device."""
    return {f"127.0.0.1:{stage.cluster.layout.ports[name]}": device for name, device in OBJECT_DEVICES.items()}


def is_rate(value):
    return type(value) in (int, float) and value >= 0


def test_osinfo_has_the_shape_that_iostack_has_and_the_method(stage, loads):
    stage.client.set_bandwidth(TENANT, "1MBps", wait=10)
    loads(TENANT)
    loads(OTHER)
    await_table(stage, OTHER)
    table = await_table(stage, TENANT)
    assert {server: list(devices) for server, devices in table.items()} == {
        server: [device] for server, device in servers(stage).items()
    }
    for devices in table.values():
        for device in devices.values():
            assert list(device) == [str(number) for number in range(len(device))]
            for line in device.values():
                assert set(line) == {"account", "identifier", "method", "needed_BW", "policy", "objects"}
    downloads = [lines(table, account) for account in (TENANT, OTHER)]
    assert [set(found) for found in downloads] == [set(servers(stage))] * 2
    for found in downloads:
        for line in found.values():
            assert (line["identifier"], line["policy"]) == ("object", GOLD)
            assert line["needed_BW"] == (1.0 if line["account"] == TENANT else 0.0)
            for one in line["objects"]:
                assert set(one) == {"oid", "oid_calculated_BW", "range"}
                assert one["oid"] in {f"/{line['account']}/c/{SIZE}-{number}" for number in range(OBJECTS)}
                assert is_rate(one["oid_calculated_BW"])
                assert one["range"] == "0-end"


def test_osinfo_and_the_overview_speak_of_megabytes_of_the_last_second(stage, loads):
    stage.client.set_bandwidth(TENANT, "1MBps", wait=10)
    load = loads(TENANT)
    assert settled([load], [GET]) == [close(GET)]
    moved, sums, ages = [], [], []
    for _ in range(5):
        _, headers, table = ask(stage, "/bw/osinfo")
        ages.append(time.time() - datetime.fromisoformat(headers["X-Sluice-Measured-At"]).timestamp())
        found = lines(table, TENANT).values()
        moved.append(sum(one["oid_calculated_BW"] for line in found for one in line["objects"]))
        assert {line["needed_BW"] for line in found} == {1.0}
        sums.append(sum(accounts[TENANT][GOLD] for accounts in ask(stage, "/bw")[2].values()))
        time.sleep(0.7)
    print(f"ages {[round(age, 2) for age in ages]}, moved {moved}, sums {sums}")
    assert statistics.median(sums) * MB == close(GET)
    assert statistics.median(moved) * MB == pytest.approx(GET, rel=0.2)
    assert min(ages) <= 1.5
    assert statistics.median(ages) <= 2
    for path in (f"/bw/accounts/{TENANT}", f"/bw/{TENANT}"):
        assert set(lines(await_table(stage, TENANT, path), TENANT)) == set(servers(stage))
    assert lines(ask(stage, f"/bw/{OTHER}")[2], TENANT) == {}
    load.stop()
    await_nothing(stage, TENANT)


def await_nothing(stage, account):
    end = time.monotonic() + 10
    while lines(ask(stage, "/bw/osinfo")[2], account):
        assert time.monotonic() < end, "what ended is told for ever"
        time.sleep(0.2)


def test_prometheus_reads_what_a_tenant_gets_and_moves_and_where(stage, loads):
    stage.client.set_bandwidth(TENANT, "1MBps", wait=10)
    one, other = loads(TENANT), loads(OTHER)
    expected = [SERVERS * MB + (GET - SERVERS * MB) / 2, (GET - SERVERS * MB) / 2]
    assert settled([one, other], expected) == close(expected)
    flow, parts, ages = [], [], []
    for _ in range(5):
        found = scraped(stage, account=TENANT, method="GET")
        flow.append({labels["what"]: value for labels, value in found["sluice_bandwidth_flow_bytes_per_second"]})
        parts.append(found["sluice_bandwidth_part_bytes_per_second"])
        ages += [value for _, value in found["sluice_bandwidth_picture_age_seconds"]]
        time.sleep(0.7)
    print(f"ages {[round(age, 2) for age in ages]}, flow {flow}")
    assert min(ages) <= 1.5
    assert statistics.median(ages) <= 2
    for what, rate in (("measured", expected[0]), ("share", expected[0]), ("floor", SERVERS * MB)):
        assert statistics.median(second[what] for second in flow) == close(rate)
    for what in ("measured", "share"):
        disks = [on_disks(second, what) for second in parts]
        assert {frozenset(second) for second in disks} == {frozenset(OBJECT_DEVICES.values())}
        assert statistics.median(sum(second.values()) for second in disks) == close(expected[0])
    assert {(labels["container"], labels["storage_policy"]) for labels, _ in parts[-1]} == {("", GOLD)}
    everybodys = scraped(stage)["sluice_bandwidth_flow_bytes_per_second"]
    assert {labels["account"] for labels, _ in everybodys} >= {TENANT, OTHER}


def on_disks(series, what):
    chosen = {"side": STORAGE_NODE, "what": what}
    return {labels["device"]: value for labels, value in series if labels.items() >= chosen.items()}


def gives(part):
    return lambda given: len(given) == SERVERS and min(given.values()) >= part * (1 - CLOSE)


def test_a_value_is_what_each_object_server_gives_until_it_is_changed_or_cleared(stage, loads):
    one, other = loads(TENANT), loads(OTHER)
    for value, part in (("1500kBps", 1.5 * MB), ("0.5", 0.5 * MB)):
        told = stage.client.set_bandwidth(TENANT, value, wait=10)
        assert told["enforced"]["nodes"] == told["enforced"]["total"]
        floor = SERVERS * part
        expected = [floor + (GET - floor) / 2, (GET - floor) / 2]
        assert settled([one, other], expected) == close(expected)
        with Heard(stage.cluster.amqp_url) as heard:
            given = first_good(lambda: heard.rates(TENANT, "GET", STORAGE_NODE), gives(part))
        assert gives(part)(given), given
    assert stage.client.clear_bandwidth(TENANT, wait=10) == [told["id"]]
    assert sum(means([one, other], settle=2, seconds=2)) > 1.3 * GET
    assert [load.errors() for load in (one, other)] == [(0, "")] * 2


def test_a_value_for_one_storage_policy_leaves_the_others_alone(stage, loads):
    stage.fill(TENANT, "coded", storage_policy=EC21)
    stage.client.set_bandwidth(TENANT, "1MBps", GOLD, wait=10)
    named, coded, other = loads(TENANT), loads(TENANT, FEW, container="coded"), loads(OTHER)
    floor = SERVERS * MB
    spare = (GET - floor) / 2  # of each tenant, however many storage policies it uses

    def good(rates):
        return (sum(rates[:2]), rates[2]) == (close(floor + spare), close(spare)) and rates[0] >= floor * (1 - CLOSE)

    rates = first_good(lambda: means([named, coded, other]), good)
    assert good(rates), rates


def test_names_of_any_letters_are_told_and_promised_like_others(stage, loads):
    told = stage.client.set_bandwidth(ABROAD, "1500kBps", wait=10)
    assert told["enforced"]["nodes"] == told["enforced"]["total"]
    one, other = loads(ABROAD, container=CRATE), loads(OTHER)
    expected = [5.25 * MB, 0.75 * MB]
    assert settled([one, other], expected) == close(expected)
    for path in ("/bw/osinfo", f"/bw/{quote(ABROAD)}"):
        oids = {one["oid"] for line in lines(ask(stage, path)[2], ABROAD).values() for one in line["objects"]}
        assert oids
        assert oids <= {f"/{ABROAD}/{CRATE}/{SIZE}-{number}" for number in range(OBJECTS)}
    (flow,) = [row for row in flows(stage, account=ABROAD) if row["active"]]
    assert flow["floor"] == close(4.5 * MB)
    assert stage.client.clear_bandwidth(ABROAD, wait=10) == [told["id"]]


def test_a_containers_ceiling_holds_whatever_letters_it_has(stage, loads):
    policy = stage.say(f'FOR CONTAINER "{ABROAD}/{CRATE}" DO SET bandwidth WITH max_get_bw=1MBps ON STORAGE_NODE')
    try:
        load = loads(ABROAD, container=CRATE)
        assert settled([load], [MB]) == [close(MB)]
        (flow,) = [row for row in flows(stage, account=ABROAD, container=CRATE) if row["active"]]
        assert flow["policies"] == [policy]
    finally:
        stage.client.delete_policy(policy)


def test_floors_that_nobody_asks_for_are_infeasible_all_the_same(stage):
    floors = {TENANT: 5, OTHER: 7}
    policies = {
        name: stage.say(f"FOR TENANT {name} DO SET bandwidth WITH get_bw={floor}MBps ON STORAGE_NODE")
        for name, floor in floors.items()
    }
    try:
        # half of the sum of the floors is missing, of each its part
        for name, policy in policies.items():
            assert await_shortfall(stage, policy) == close(floors[name] * MB / 2)
        idle = {row["account"]: row for row in flows(stage, method="GET") if row["account"] in floors}
        for name, floor in floors.items():
            assert not idle[name]["active"]
            assert idle[name]["floor"] - idle[name]["met"] == close(floor * MB / 2)
        stage.client.delete_policy(policies.pop(OTHER))
        await_feasible(stage, policies[TENANT])
    finally:
        for policy in policies.values():
            stage.client.delete_policy(policy)


def await_shortfall(stage, policy, limit=15.0):
    end = time.monotonic() + limit
    while not (found := stage.client.policy(policy)["infeasible"]):
        assert time.monotonic() < end, "nothing is said to be infeasible"
        time.sleep(0.1)
    return found["shortfall"]


def await_feasible(stage, policy, limit=15.0):
    end = time.monotonic() + limit
    while stage.client.policy(policy)["infeasible"]:
        assert time.monotonic() < end, "what can be carried is said to be infeasible"
        time.sleep(0.1)
