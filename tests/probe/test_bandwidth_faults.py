"""The control plane dies in the middle of transfers: bandwidth stays with the last shares, and finds back."""

import contextlib
import statistics
import time

import pytest

from sluice_aio.bandwidth_stage import Capacity, Stage, Terms

MB = 1_000_000
#: Little enough that a busy machine gives it.
GET = 8 * MB
EXPECTED = {"AUTH_t1": 5 * MB, "AUTH_t2": 3 * MB}
#: As the issue says, of the last assignments.
CLOSE = 0.1
SECONDS = 5
WINDOWS = 5


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with Stage(tmp_path_factory.mktemp("s"), Terms(capacity=Capacity(get=GET, put=GET), sizes=(250_000,))) as found:
        for name in EXPECTED:
            found.fill(name)
        found.say("FOR TENANT AUTH_t1 DO SET bandwidth WITH get_bw=3500kBps")
        found.say("FOR TENANT AUTH_t2 DO SET bandwidth WITH get_bw=1500kBps")
        yield found


@contextlib.contextmanager
def loaded(stage):
    with contextlib.ExitStack() as stack:
        loads = {name: stack.enter_context(stage.load(name, 16)) for name in EXPECTED}
        for name, rate in EXPECTED.items():
            stage.await_share(name, rate=rate)
        yield loads


def means(loads, settle=1, seconds=SECONDS):
    first = int(time.time()) + settle
    for load in loads.values():
        load.await_second(first + seconds)
    return {name: statistics.mean(load.rates(first, first + seconds).values()) for name, load in loads.items()}


def settled(loads, expected):
    """The rates in the first of some windows in which they are as expected, else in the last one."""
    for _ in range(WINDOWS):
        rates = means(loads, settle=2)
        if rates == pytest.approx(expected, rel=CLOSE):
            break
    return rates


@pytest.mark.parametrize("victim", ["agent", "rabbit", "redis", "actors"])
def test_bandwidth_stays_when_somebody_is_killed_and_comes_back(stage, victim):
    with loaded(stage) as loads:
        assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE)
        stage.cluster.kill(victim)
        try:
            assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE), f"without {victim}"
        finally:
            stage.cluster.restart(victim)
        for name, rate in EXPECTED.items():
            stage.await_share(name, rate=rate)
        assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE), f"{victim} is back"
        assert [load.errors() for load in loads.values()] == [(0, "")] * len(loads)


def test_when_all_agents_die_nothing_stalls(stage):
    agents = ("agent", "agent2", "agent-object1", "agent-object2", "agent-object3")
    with loaded(stage) as loads:
        means(loads, settle=2, seconds=1)
        for agent in agents:
            stage.cluster.kill(agent)
        assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE)
        for agent in agents:
            stage.cluster.restart(agent)
        for name, rate in EXPECTED.items():
            stage.await_share(name, rate=rate)
        assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE)


def test_a_proxy_dies_and_joins_and_shares_are_right_again(stage):
    with loaded(stage) as loads:
        stage.cluster.kill("proxy2")
        # the other one carries half of it, which is less than the floors: they are reduced in proportion
        alone = {"AUTH_t1": GET / 2 * 35 / 50, "AUTH_t2": GET / 2 * 15 / 50}
        assert settled(loads, alone) == pytest.approx(alone, rel=CLOSE)
        stage.cluster.restart("proxy2")
        assert settled(loads, EXPECTED) == pytest.approx(EXPECTED, rel=CLOSE)
