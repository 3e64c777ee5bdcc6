"""Functions that are called each second, beside other work."""

import time
from types import SimpleNamespace

import pytest
from swift.common.concurrency import Event, Timeout, hubs, sleep

from sluice_middleware.swift import green

PATIENCE = 10.0


@pytest.fixture
def hub():
    """A hub of its own, as each server process of Swift has; calls of each second end with it."""
    before = hubs.get_hub()
    hubs.use_hub("poll")
    yield hubs.get_hub()
    hubs._threadlocal.hub = before


@pytest.fixture
def fast(monkeypatch):
    """A clock on which a second takes a tenth of one."""
    begin = time.time()
    clock = SimpleNamespace(time=lambda: begin + 10 * (time.time() - begin))
    monkeypatch.setattr(green, "time", clock)
    monkeypatch.setattr(green, "sleep", lambda seconds: sleep(seconds / 10))


class Counter:
    """Records the times of its calls, up to a number; ``also`` runs in each call."""

    def __init__(self, enough, also=lambda: None):
        self.calls = []
        self._enough = enough
        self._event = Event()
        self._also = also

    def __call__(self):
        self.calls.append(time.time())
        if len(self.calls) == self._enough:
            self._event.send()
        self._also()

    def wait(self):
        with Timeout(PATIENCE):
            self._event.wait()


def test_a_function_is_called_just_after_each_second(hub):
    counter = Counter(2)
    green.each_second(counter)
    counter.wait()
    first, second = counter.calls
    assert int(second) - int(first) == 1


def test_functions_run_concurrently_and_never_overlap_themselves(hub, fast):
    slow = Counter(1, lambda: sleep(PATIENCE))
    quick = Counter(3)
    green.each_second(slow)
    green.each_second(quick)
    quick.wait()
    assert len(slow.calls) == 1


def test_a_failing_function_is_called_again(hub, fast, capsys):
    def fail():
        raise ValueError("broken")

    broken = Counter(2, fail)
    other = Counter(2)
    green.each_second(broken)
    green.each_second(other)
    broken.wait()
    other.wait()
    assert "broken" in capsys.readouterr().err


def test_all_functions_share_one_timer(hub, fast):
    before = hub.get_timers_count()
    counters = [Counter(1) for _ in range(5)]
    for counter in counters:
        green.each_second(counter)
    sleep(0)
    assert hub.get_timers_count() == before + 1
    for counter in counters:
        counter.wait()


def test_each_hub_has_its_own_timer(hub, fast):
    first = Counter(1)
    green.each_second(first)
    hubs.use_hub("poll")
    second = Counter(1)
    green.each_second(second)
    second.wait()
    assert first.calls == []
