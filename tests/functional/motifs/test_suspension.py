"""Contraction stops while a proxy of some node does not support motifs, or does not report, and then resumes."""

import re

import pytest
from tests.support.cluster.motifs import FIRST, concat, put

from sluice_aio.cluster.components import SECOND_NODE
from sluice_client import ApiError

#: Seconds for an agent, its proxy's workers and the reports of both; a silent agent is detected after fifteen.
LIMIT = 40.0


@pytest.fixture
def second_node(cluster, leases, store):
    """A node whose proxy uses no motif daemon, with the configuration file that says so."""
    conf = cluster.layout.swift_dir / "proxy2.conf"
    known = conf.read_text(encoding="utf-8")
    lines = [line for line in known.splitlines() if not line.startswith("motif_socket")]
    assert len(lines) == len(known.splitlines()) - 1
    conf.write_text("\n".join(lines), encoding="utf-8")
    cluster.add(SECOND_NODE)
    try:
        yield conf, known
    finally:
        conf.write_text(known, encoding="utf-8")
        for name in ("proxy2", "agent2"):
            cluster.remove(name)
        store.forget_node(cluster.layout.second_node().node)


@pytest.fixture
def suspended(swift, api, eventually):
    """Try to contract an object; return why it is not contracted, empty when it is."""
    eventually(api.motif_templates)
    put(swift, "su-spended")
    put(swift, "su-spended/source", FIRST)
    put(swift, "su-spended/o", FIRST, x_object_motif=concat("su-spended/source"))

    def contract():
        try:
            return api.act_on_motif("AUTH_test", "su-spended", "o", "contract")
        except ApiError as error:
            return {"outcome": str(error)}

    def reason():
        api.act_on_motif("AUTH_test", "su-spended", "o", "expand")
        # the space may have its lease
        outcome = eventually(lambda: (found := contract())["outcome"] not in ("busy", "changed") and found, LIMIT)
        return "" if outcome.get("contracted") else outcome["outcome"]

    return reason


def test_a_proxy_worker_that_does_not_know_motifs_suspends_contraction_before_its_first_request(
    cluster, swift, api, second_node, suspended, eventually
):
    conf, known = second_node
    node = cluster.layout.second_node().node
    reason = eventually(suspended, LIMIT)
    named = re.search(rf"node `{re.escape(node)}` is waiting for motifs in proxy workers ([0-9, ]+)", reason)
    assert named, reason
    assert {int(pid) for pid in named[1].split(",")} <= {one.pid for one in cluster.workers("proxy2")}
    why = api.motif("AUTH_test", "su-spended", "o", why=True)
    assert not why["contractible"]
    assert node in why["reasons"][0]
    assert swift.request("GET", "su-spended/o").body == FIRST

    sentence = "FOR CONTAINER AUTH_test/su-spended DO SET elasticity WITH target_size=0"
    policy = api.create_policy(sentence)["id"]
    try:
        space = eventually(
            lambda: next((one for one in api.spaces() if one["name"] == "AUTH_test/su-spended"), None), LIMIT
        )
        space = eventually(
            lambda: (found := api.space("AUTH_test/su-spended"))["state"] == "suspended" and found, LIMIT
        )
        assert f"node `{node}`" in space["reason"]
        assert not api.motif("AUTH_test", "su-spended", "o")["contracted"]

        conf.write_text(known, encoding="utf-8")
        cluster.restart("proxy2")
        eventually(lambda: api.motif("AUTH_test", "su-spended", "o")["contracted"], LIMIT)
    finally:
        api.delete_policy(policy)
    eventually(lambda: not suspended(), LIMIT)


@pytest.mark.probe
def test_an_agent_that_falls_silent_suspends_contraction_until_it_is_back(
    cluster, store, second_node, suspended, eventually
):
    conf, known = second_node
    conf.write_text(known, encoding="utf-8")
    cluster.restart("proxy2")
    eventually(lambda: not suspended(), LIMIT)
    cluster.kill("agent2")
    reason = eventually(suspended, LIMIT)
    assert f"node `{cluster.layout.second_node().node}` has not reported for" in reason
    cluster.restart("agent2")
    eventually(lambda: not suspended(), LIMIT)
