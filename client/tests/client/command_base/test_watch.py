"""Watching a policy: the output, the end, and the status; the test takes the part of agents and actors.

Tests docs/cli/index.md.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from sluice_client import ApiError, Client, Retries
from sluice_client.command_base.watch import NotEnforced, Watch
from sluice_core.messages.policies import PolicyState
from sluice_core.store.records import Draft

STATIC = "FOR TENANT AUTH_watch DO SET noop"
DYNAMIC = "FOR TENANT AUTH_watch WHEN PUTS_SEC > 3 DO SET noop"


class Story:
    """Replaces the time between two polls: each pause runs the next step."""

    def __init__(self, *acts):
        self.acts = list(acts)
        self.said, self.pauses = [], []

    def pause(self, seconds):
        self.pauses.append(seconds)
        if self.acts:
            self.acts.pop(0)()

    def watch(self, timeout=None):
        return Watch(self.said.append, timeout, clock=lambda: sum(self.pauses), pause=self.pause)


def nothing():
    pass


def test_a_watch_ends_when_every_node_enforces_the_policy(client, node):
    node("n1")
    node("n2")
    made = client.create_policy(STATIC)
    story = Story(nothing, lambda: node("n1"), nothing, lambda: node("n2"))
    policy = story.watch().until_enforced(client, made["id"])
    assert story.said == ["active, enforced 0/2", "active, enforced 1/2", "active, enforced 2/2"]
    assert policy["enforced"]["nodes"] == 2


def test_pauses_grow_while_nothing_changes_and_begin_anew_when_something_did(client, node):
    node("n1")
    node("n2")
    made = client.create_policy(STATIC)
    story = Story(*[nothing] * 9, lambda: node("n1"), lambda: node("n2"))
    story.watch().until_enforced(client, made["id"])
    assert story.pauses[:9] == sorted(story.pauses[:9])
    assert max(story.pauses) == 3.0
    assert story.pauses[10] == story.pauses[0]


def test_a_watch_waits_for_the_policys_actor(client, node, store):
    node("n1")
    made = client.create_policy(DYNAMIC)
    story = Story(lambda: node("n1"), lambda: store.commit(Draft("actor", states=(PolicyState(made["id"], "active"),))))
    story.watch().until_enforced(client, made["id"])
    assert story.said == ["waiting, enforced 0/1", "waiting, enforced 1/1", "active, enforced 1/1"]


def test_a_failed_policy_ends_the_watch_with_the_reason(client, node, store):
    node("n1")
    made = client.create_policy(DYNAMIC)
    failed = PolicyState(made["id"], "failed", reason="its metric is gone")
    story = Story(lambda: store.commit(Draft("actor", states=(failed,))))
    with pytest.raises(NotEnforced, match="failed: its metric is gone"):
        story.watch().until_enforced(client, made["id"])


def test_a_refusal_ends_the_watch_with_node_and_reason(client, node):
    node("n1")
    node("n2")
    made = client.create_policy(STATIC)
    story = Story(lambda: node("n2", refused={f"{made['id']}.0": "not installed\x1b[31m"}))
    with pytest.raises(NotEnforced) as caught:
        story.watch().until_enforced(client, made["id"])
    assert str(caught.value) == f"policy `{made['id']}` is refused by n2: not installed [31m"


def test_the_end_of_the_time_names_the_nodes_that_were_waited_for(client, node):
    node("n1")
    node("n2", at=time.time() - 3600)
    made = client.create_policy(STATIC)
    story = Story()
    with pytest.raises(NotEnforced, match=r"is not enforced after 7 s: waiting: n1; away: n2$"):
        story.watch(7.0).until_enforced(client, made["id"])
    assert sum(story.pauses) == pytest.approx(7.0)


def test_without_nodes_nothing_is_enforced(client):
    made = client.create_policy(STATIC)
    with pytest.raises(NotEnforced, match="no node has reported"):
        Story().watch(1.0).until_enforced(client, made["id"])


def test_a_deleted_policy_ends_the_watch(client, node):
    node("n1")
    made = client.create_policy(STATIC)
    with pytest.raises(ApiError, match="there is no policy"):
        Story(lambda: client.delete_policy(made["id"])).watch().until_enforced(client, made["id"])


def test_a_controller_that_is_away_for_a_moment_ends_nothing(stub):
    done = {"nodes": 1, "total": 1, "refused": [], "waiting": [], "away": []}
    busy = {"error": {"code": 503, "title": "Service Unavailable", "message": "redis is away", "problems": []}}
    stub.enqueue(503, busy).enqueue(cut=True).enqueue(200, {"id": "p", "state": "active", "enforced": done})
    story = Story()
    with Client(stub.url, retries=Retries(tries=1)) as client:
        assert story.watch().until_enforced(client, "p")["id"] == "p"
    assert story.said[0] == "redis is away"
    assert "cannot be reached" in story.said[1]
    assert story.said[2] == "active, enforced 1/1"


def test_a_controller_that_stays_away_is_the_reason_at_the_end_of_the_time(nobody):
    with Client(nobody, retries=Retries(tries=1)) as client, pytest.raises(NotEnforced, match="cannot be reached"):
        Story().watch(5.0).until_enforced(client, "p")


def test_the_command_says_changes_beside_its_output(sluice, client, node):
    node("n1")
    made = client.create_policy(STATIC)
    node("n1")
    said = sluice("policy", "show", made["id"], "--watch", "-f", "value", "-c", "enforced")
    assert (said.out, said.err) == ("1/1\n", "active, enforced 1/1\n")


def test_the_command_ends_with_one_when_a_node_refuses(sluice, client, node):
    made = client.create_policy(STATIC)
    node("n1", refused={f"{made['id']}.0": "not installed"})
    said = sluice("policy", "show", made["id"], "--watch", status=1)
    assert said.out == ""
    assert said.err.endswith(f"sluice: policy `{made['id']}` is refused by n1: not installed\n")


def test_a_time_without_watching_is_refused(sluice):
    assert "without `--watch`" in sluice("policy", "show", "p", "--timeout", "1", status=1).err


def test_ctrl_c_ends_the_watching_and_nothing_else(api, client, node):
    node("n1")
    made = client.create_policy(STATIC)
    argv = ["--url", api.url, "--token-file", str(api.token), "policy", "show", made["id"], "--watch"]
    # a child ignores the signals that its parent ignores, as in tests that a shell runs in the background
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        watching = subprocess.Popen(
            [sys.executable, "-m", "sluice_client", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with watching:
        try:
            assert watching.stderr.readline() == "active, enforced 0/1\n"
            os.kill(watching.pid, signal.SIGINT)
            out, err = watching.communicate(timeout=30)
        finally:
            watching.kill()
    assert (watching.returncode, out, err) == (130, "", "")
    assert client.policy(made["id"])["state"] == "active"
