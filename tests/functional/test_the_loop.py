"""A sentence changes the cluster's behaviour for a tenant's workload, and reverts it."""

import hashlib
import threading

import pika
import pytest

from sluice_aio.cluster.disks import stored_sizes
from sluice_client import ApiError
from sluice_core.connections.exchanges import METRICS_EXCHANGE
from sluice_core.messages.nodes import MetricBatch

TEXT = b"".join(b"%d: a line that compresses\n" % n for n in range(5000))


class Load:
    """PUTs at a steady rate in the background until stopped; records failures."""

    def __init__(self, client, container, rate):
        self._client = client
        self._container = container
        self._pause = 1 / rate
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0
        self.failures = []

    def _run(self):
        while not self._over.wait(self._pause):
            answer = self._client.request("PUT", f"{self._container}/load-{self.count % 50}", TEXT)
            self.count += 1
            if answer.status != 201:
                self.failures.append(answer)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        assert not self.failures


def stored_bytes(cluster, path):
    """Sizes of the files of ``container/object`` on the object servers' disks."""
    container, _, name = path.partition("/")
    return stored_sizes(cluster.device_folders, f"AUTH_test/{container}")[name]


@pytest.fixture
def container(swift):
    swift.request("PUT", "loop")
    return "loop"


def test_a_live_workload_switches_a_filter_on_and_off_again(cluster, api, swift, container, policies, eventually):
    policy = policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression WITH engine=zstd ON PROXY TRANSIENT")
    assert policy["state"] == "waiting"
    swift.request("PUT", "loop/before", TEXT)
    assert set(stored_bytes(cluster, "loop/before")) == {len(TEXT)}
    with Load(swift, container, 12):
        eventually(lambda: enforced(api, policy["id"], "active"))
        swift.request("PUT", "loop/during", TEXT)
        shown = eventually(lambda: (api.policy(policy["id"])["observed"] or {}).get("values"))
        assert shown["PUTS_SEC"] > 3
    sizes = stored_bytes(cluster, "loop/during")
    assert len(sizes) == 3
    assert max(sizes) < len(TEXT) / 2
    eventually(lambda: enforced(api, policy["id"], "waiting"))
    swift.request("PUT", "loop/after", TEXT)
    assert set(stored_bytes(cluster, "loop/after")) == {len(TEXT)}
    for name in ("before", "during", "after"):
        answer = swift.request("GET", f"loop/{name}")
        assert answer.body == TEXT
        assert answer.headers["etag"] == hashlib.md5(TEXT).hexdigest()
    what = [firing["what"] for firing in api.policy(policy["id"])["firings"]]
    assert what[:2] == ["set", "taken_back"]


def enforced(api, policy_id, state):
    shown = api.policy(policy_id)
    return shown["state"] == state and shown["enforced"]["nodes"] == shown["enforced"]["total"]


def test_a_persistent_action_stays_although_the_condition_ends(api, swift, container, policies, eventually):
    policy = policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 3 DO SET compression")
    with Load(swift, container, 12):
        eventually(lambda: enforced(api, policy["id"], "active"))
    window = eventually(lambda: (api.policy(policy["id"])["observed"] or {}).get("window"))
    eventually(lambda: api.policy(policy["id"])["observed"]["window"] >= window + 4)
    assert api.policy(policy["id"])["state"] == "active"


def test_a_policy_for_all_tenants_fires_for_each_member_by_itself(cluster, api, swift, container, policies, eventually):
    policy = policies("FOR ALL TENANTS WHEN PUTS_SEC > 3 DO SET compression TRANSIENT")
    with Load(swift, container, 12):
        eventually(lambda: enforced(api, policy["id"], "active"))
        swift.request("PUT", "loop/member", TEXT)
    assert max(stored_bytes(cluster, "loop/member")) < len(TEXT)


def test_a_mixed_condition_holds_for_some_requests_only(cluster, api, swift, container, policies, eventually):
    policy = policies("FOR TENANT AUTH_test WHEN PUTS_SEC > 3 AND OBJECT_SIZE > 50KB DO SET compression TRANSIENT")
    with Load(swift, container, 12):
        eventually(lambda: enforced(api, policy["id"], "active"))
        swift.request("PUT", "loop/large", TEXT)
        swift.request("PUT", "loop/small", TEXT[:20_000])
    assert max(stored_bytes(cluster, "loop/large")) < len(TEXT)
    assert set(stored_bytes(cluster, "loop/small")) == {20_000}


def test_a_container_policy_replaces_its_tenants(cluster, swift, policies):
    policies("FOR TENANT AUTH_test DO SET compression")
    policies("FOR CONTAINER AUTH_test/exempt DO DELETE compression")
    for name in ("exempt", "other"):
        swift.request("PUT", name)
        swift.request("PUT", f"{name}/o", TEXT)
    assert set(stored_bytes(cluster, "exempt/o")) == {len(TEXT)}
    assert max(stored_bytes(cluster, "other/o")) < len(TEXT)


def test_a_deleted_policy_takes_back_what_it_set(cluster, api, swift, container, eventually):
    created = api.create_policy("FOR TENANT AUTH_test DO SET compression", wait=10)
    api.delete_policy(created["id"])
    head = max(node["epoch"] for node in api.nodes())
    eventually(lambda: all(node["epoch"] > created["epoch"] for node in api.nodes()), 5)
    assert head >= created["epoch"]
    swift.request("PUT", "loop/free", TEXT)
    assert set(stored_bytes(cluster, "loop/free")) == {len(TEXT)}


def test_a_bad_sentence_is_refused_with_all_errors_and_nothing_is_stored(api):
    before = [policy["id"] for policy in api.policies()]
    with pytest.raises(ApiError) as caught:
        api.create_policy("FOR TENANT AUTH_test WHEN PUTS_SECC > 3 DO SET compresion WITH engin=zstd")
    assert caught.value.status == 400
    near = {problem["near_miss"] for problem in caught.value.problems}
    assert {"PUTS_SEC", "compression"} <= near
    assert all("^" in problem["caret"] for problem in caught.value.problems)
    assert [policy["id"] for policy in api.policies()] == before


def test_several_consumers_of_a_metric_each_see_all_of_it(cluster, swift, container, eventually):
    seen = [[], []]
    consumers = [Listener(cluster.amqp_url, "metric.PUTS_SEC.*", rows) for rows in seen]
    for consumer in consumers:
        consumer.start()
    try:
        with Load(swift, container, 10):
            eventually(lambda: all(any(batch.values for batch in rows) for rows in seen))
            eventually(lambda: all(len(rows) >= 4 for rows in seen))
    finally:
        for consumer in consumers:
            consumer.stop()
    windows = [{batch.window: batch for batch in rows} for rows in seen]
    common = sorted(set(windows[0]) & set(windows[1]))
    assert len(common) >= 3
    for window in common:
        assert windows[0][window] == windows[1][window]


class Listener:
    """A consumer with its own queue, as any client may bind one."""

    def __init__(self, url, key, rows):
        self._url, self._key, self._rows = url, key, rows
        self._thread = threading.Thread(target=self._run)
        self._over = threading.Event()

    def start(self):
        self._thread.start()

    def stop(self):
        self._over.set()
        self._thread.join()

    def _run(self):
        connection = pika.BlockingConnection(pika.URLParameters(self._url))
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, METRICS_EXCHANGE, self._key)
        for _, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=0.2):
            if body is not None:
                self._rows.append(MetricBatch.decode(body))
            if self._over.is_set():
                break
        connection.close()
