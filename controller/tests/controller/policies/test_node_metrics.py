"""Sentences over metrics of nodes in the API."""

import time

from sluice_core.messages.nodes import NodeReport


def checked(api, text):
    (found,) = api.post("/policies/check", {"policy": text}, format="json").json()["policies"]
    return found


def test_a_node_that_is_not_there_is_warned_of_and_one_that_is_is_not(api, backend):
    backend.store.report(NodeReport("node-1", "h", 1, at=time.time()))
    text = "FOR CLUSTER WHEN NODE_CPU AT {} > 80% DO SET replication WITH max_bw=5MBps TRANSIENT"
    assert checked(api, text.format("node-1"))["warnings"] == []
    (warning,) = checked(api, text.format("node1"))["warnings"]
    assert (warning["near_miss"], warning["severity"]) == ("node-1", "warning")


def test_a_policy_over_slow_metrics_shows_what_its_actor_observed_a_window_ago(api, create, backend):
    made = create("FOR TENANT AUTH_a WHEN STORED > 1GB AND NODE_CPU AT n1 > 80% DO SET noop")
    values = {"STORED": 5.0, "NODE_CPU AT n1": None}
    backend.store.observe({made["id"]: {"window": int(time.time()) - 100, "values": values, "members": {}}})
    assert api.get(f"/policies/{made['id']}").json()["observed"]["values"] == values
    (kind,) = api.get("/effective?target=AUTH_a/c").json()["kinds"]
    (one,) = kind["overridden"]
    assert (one["reason"], one["observed"]) == ("no_value", values)
