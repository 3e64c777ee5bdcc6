"""A node refuses an assignment of a policy: that becomes an event, for the API, log collectors and the command.

Tests docs/admin/events.md.
"""

import json
import subprocess
import threading
from dataclasses import replace

import pytest
from tests.support.cluster.command_line import command_line

from sluice_aio.base.swift_http import SwiftHttp
from sluice_core.store.records import Draft
from sluice_core.store.store import Store

#: Seconds within which the event must arrive.
LIMIT = 30.0


@pytest.fixture
def refused(cluster, policies, swift):
    """The id of a policy that all nodes refuse: its filter is not installed, as after a downgrade of the nodes."""
    made = policies("FOR CONTAINER AUTH_test/unseen DO SET noop")["id"]
    swift.request("PUT", "unseen")
    assert swift.request("PUT", "unseen/o", b"a proxy worker is known from its first request on").status == 201
    store = Store(cluster.redis_url)
    (stored,) = (one for one in store.assignments() if one.policy == made)
    store.commit(Draft("test", puts=(replace(stored, keyword="of-tomorrow"),)))
    yield made
    store.close()


def test_a_refusal_is_seen_by_whoever_follows_the_log(cluster, api, policies, tmp_path, refused):
    argv = [*command_line(cluster, tmp_path), "event", "list", "--policy", refused, "--follow", "-f", "jsonl"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as following:
        limit = threading.Timer(LIMIT, following.kill)
        limit.start()
        line = following.stdout.readline()
        limit.cancel()
        following.terminate()
    followed = json.loads(line)
    assert (followed["kind"], followed["severity"], followed["policy"]) == ("refused", "warning", refused)
    assert "filter `of-tomorrow` is not installed in proxy worker" in followed["text"]
    (shown,) = (one for one in api.events(policy=refused, node=followed["node"]))
    assert shown == followed
    assert followed["node"] in [one["node"] for one in api.policy(refused)["enforced"]["refused"]]
    path = f"/events?policy={refused}&severity=warning"
    headers = {"X-Auth-Token": cluster.token, "Accept": "application/x-ndjson"}
    lines = SwiftHttp(cluster.api_url).raw("GET", path, headers).body.decode().splitlines()
    assert followed in [json.loads(line) for line in lines]
