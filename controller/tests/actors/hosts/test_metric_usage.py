"""The batches that a host receives: those of the metrics that any host of the team uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_actors.hosts.cluster_services import MetricUsage, MetricUsageExchange
from sluice_actors.testing import Clock

#: The messages of a host at commit a8b6352a: its own use, and the values that it wants or pushes.
USES = b"u\x83\xa1v\x01\xa4host\xa2h1\xa7metrics\x91\xa8PUTS_SEC"
WANTS = (
    b"w\x88\xa1v\x01\xa4host\xa2h1\xa6metric\xa8PUTS_SEC\xa7session\xa1s\xa6number\x00"
    b"\xa4more\x81\xa6tenant\x91\xa1a\xa4less\x80\xa3all\x90"
)


class Team:
    """Hosts that exchange messages directly."""

    def __init__(self, *names):
        self.clock = Clock(1000.0)
        self.bound = {}
        self.hosts = {name: self.host(name) for name in names}

    def host(self, name):
        def send(routing_key, body):
            for host in list(self.hosts.values()):
                host.receive(routing_key, body)

        return MetricUsageExchange(name, send, lambda metrics: self.bound.update({name: metrics}), self.clock)

    def tick(self, seconds=1.0, alone=False):
        self.clock.now += seconds
        for host in self.hosts.values():
            host.tick(alone)


def test_a_host_receives_the_batches_of_metrics_that_others_use():
    team = Team("a", "b")
    team.hosts["a"].set_used("PUTS_SEC", True)
    team.hosts["b"].set_used("GETS_SEC", True)
    team.tick()
    assert team.bound == {"a": {"PUTS_SEC", "GETS_SEC"}, "b": {"PUTS_SEC", "GETS_SEC"}}
    assert team.hosts["b"].report() == {"used": 1, "kept": 1, "undecodable": 0}


def test_what_nobody_uses_any_more_is_received_no_longer():
    team = Team("a", "b")
    team.hosts["a"].set_used("PUTS_SEC", True)
    team.tick()
    team.hosts["a"].set_used("PUTS_SEC", False)
    assert team.bound == {"a": set(), "b": {"PUTS_SEC"}}
    for _ in range(6):
        team.tick()
    assert team.bound == {"a": set(), "b": set()}


def test_a_host_that_is_alone_says_nothing():
    team = Team("a", "b")
    team.hosts["a"].set_used("PUTS_SEC", True)
    team.tick(alone=True)
    assert "b" not in team.bound


def test_what_hosts_of_the_version_before_send_is_read_or_passed_over():
    team = Team("a")
    team.hosts["a"].receive("values.all", USES)
    team.hosts["a"].receive("values.a", WANTS)
    assert team.bound == {"a": {"PUTS_SEC"}}
    assert team.hosts["a"].undecodable == 0
    assert MetricUsage("h1", ("PUTS_SEC",)).encode() == USES[1:]


@pytest.mark.parametrize("body", [b"u no message", b"u" + MetricUsage("h1", (["PUTS_SEC"],)).encode()])
def test_what_cannot_be_read_is_counted_and_logged_once(caplog, body):
    team = Team("a")
    for _ in range(2):
        team.hosts["a"].receive("values.all", body)
    assert team.hosts["a"].report()["undecodable"] == 2
    assert caplog.text.count("values.all") == 1


@given(st.binary(max_size=60), st.sampled_from([b"w", b"v", b"u", b"x", b""]))
def test_no_bytes_end_a_host(noise, letter):
    Team("a").hosts["a"].receive("values.all", letter + noise)


@pytest.mark.parametrize("metrics", [(), ("PUTS_SEC",), ("ä", "B")])
def test_a_message_decodes_to_what_was_encoded(metrics):
    usage = MetricUsage("h1", metrics)
    assert MetricUsage.decode(usage.encode()) == usage
