"""Policies over the usage of containers, free space and the load of nodes, on a live cluster."""

import json
import threading

import pika
import pytest
from tests.support.cluster.daemons import run_daemon

from sluice_core.connections.exchanges import METRICS_EXCHANGE
from sluice_core.metrics.node_metrics import collectd_routing_key

BODY = b"a line that is stored\n" * 5000


class CpuSender:
    """The messages that CollectD of ``node`` would send each second: the CPU load, in percent."""

    def __init__(self, url, node):
        self.percent = 5.0
        self._url = url
        self._key = collectd_routing_key(node)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
            channel = connection.channel()
            while not self._over.wait(0.5):
                channel.basic_publish(METRICS_EXCHANGE, self._key, json.dumps([self._values()]))

    def _values(self):
        return {
            "values": [self.percent], "dsnames": ["value"], "interval": 1.0, "plugin": "cpu", "plugin_instance": "",
            "type": "percent", "type_instance": "active",
        }  # fmt: skip

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


@pytest.mark.probe
def test_a_policy_fires_on_what_a_container_stores_and_is_taken_back(api, swift, policies, eventually):
    swift.request("PUT", "filling")
    made = policies("FOR CONTAINER AUTH_test/filling WHEN STORED > 150kB AND OBJECTS >= 2 DO SET noop TRANSIENT")

    def seen():
        return (api.policy(made["id"])["observed"] or {}).get("values")

    eventually(lambda: seen() == {"STORED": 0, "OBJECTS": 0}, 30)
    swift.request("PUT", "filling/a", BODY)
    eventually(lambda: seen() == {"STORED": len(BODY), "OBJECTS": 1}, 30)
    assert api.policy(made["id"])["state"] == "waiting"
    swift.request("PUT", "filling/b", BODY)
    eventually(lambda: api.policy(made["id"])["state"] == "active", 30)
    # three replicas of the database, one number
    assert seen() == {"STORED": 2 * len(BODY), "OBJECTS": 2}
    swift.request("DELETE", "filling/a")
    eventually(lambda: api.policy(made["id"])["state"] == "waiting", 40)


def test_a_policy_for_all_tenants_fires_on_what_swift_says_they_store(cluster, api, swift, policies, eventually):
    swift.request("PUT", "accounted")
    swift.request("PUT", "accounted/a", BODY)
    made = policies("FOR ALL TENANTS WHEN STORED >= 100kB AND OBJECTS >= 1 DO SET noop TRANSIENT")
    run_daemon(cluster, "container-updater")
    head = swift.request("HEAD", "").headers
    told = {"STORED": int(head["x-account-bytes-used"]), "OBJECTS": int(head["x-account-object-count"])}
    assert told["STORED"] >= len(BODY)

    def seen():
        return (api.policy(made["id"])["observed"] or {}).get("members", {}).get("AUTH_test")

    eventually(lambda: seen() == told, 30)
    eventually(lambda: api.policy(made["id"])["state"] == "active", 30)


def test_a_policy_fires_on_the_load_of_a_node_that_it_names(cluster, api, policies, eventually):
    node = cluster.layout.node
    named = policies(f"FOR TENANT AUTH_test WHEN NODE_CPU AT {node} > 80% DO SET noop TRANSIENT")
    highest = policies("FOR CLUSTER WHEN NODE_CPU > 80% AND NODE_FREE > 0% DO SET noop TRANSIENT")

    def states():
        return {api.policy(made["id"])["state"] for made in (named, highest)}

    with CpuSender(cluster.amqp_url, node) as collectd:
        label = f"NODE_CPU AT {node}"
        eventually(lambda: (api.policy(named["id"])["observed"] or {}).get("values", {}).get(label) == 0.05, 30)
        assert states() == {"waiting"}
        collectd.percent = 95.0
        eventually(lambda: states() == {"active"}, 40)
        collectd.percent = 5.0
        eventually(lambda: states() == {"waiting"}, 40)


def test_a_node_that_is_not_there_is_warned_of(cluster, api):
    text = f"FOR CLUSTER WHEN NODE_CPU AT {cluster.layout.node}x > 80% DO SET noop TRANSIENT"
    (checked,) = api.check_policy(text)
    (warning,) = checked["warnings"]
    assert warning["near_miss"] == cluster.layout.node


def test_free_space_of_nodes_and_storage_policies_has_values(api, policies, eventually):
    made = policies("FOR CLUSTER WHEN NODE_FREE < 0.1% OR STORAGE_POLICY_FREE AT gold < 0.1% DO SET noop TRANSIENT")
    shown = eventually(lambda: (api.policy(made["id"])["observed"] or {}).get("values"), 30)
    assert 0 < shown["NODE_FREE"] <= 1
    assert 0 < shown["STORAGE_POLICY_FREE AT gold"] <= 1
