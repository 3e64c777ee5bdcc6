"""Real threads beside Swift's green ones, and the resources that they leave."""

import gc
import os
import sys
import threading
import time
import weakref
from types import FunctionType

import pytest
from swift.common.concurrency import Timeout, hubs

from sluice_core.process.logs import current_request, log_fields
from sluice_middleware.swift import green

PATIENCE = 10.0


@pytest.fixture
def uncollected():
    """Only objects without references are freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Started:
    """``function`` in a real thread; its result is ``outcome``."""

    def __init__(self, function):
        self._begun = threading.Event()
        self._function = function
        green.start_thread(self._run)

    def _run(self):
        self._place = f"/proc/self/task/{threading.get_native_id()}"
        self._begun.set()
        self.outcome = self._function()

    @property
    def place(self):
        """A path that exists until the thread has ended, and its resources were freed."""
        assert self._begun.wait(PATIENCE)
        return self._place


def in_thread(function):
    started = Started(function)
    while os.access(started.place, os.F_OK):
        time.sleep(0.001)
    return started.outcome


def with_a_time_out():
    """A use of a time-out, as Swift's around its locks."""
    with Timeout(PATIENCE):
        return weakref.ref(hubs.get_hub())


def test_a_hub_created_in_a_thread_ends_with_the_thread(uncollected):
    here = hubs.get_hub()
    assert in_thread(with_a_time_out)() is None
    assert hubs.get_hub() is here


def test_a_thread_has_its_name_in_proc(uncollected):
    def name():
        with open(f"/proc/self/task/{threading.get_native_id()}/comm", encoding="ascii") as file:
            return file.read().strip()

    assert in_thread(name) == green.IO_THREAD


def test_a_thread_without_a_hub_gets_none_by_ending(uncollected, monkeypatch):
    made = []
    monkeypatch.setattr(hubs, "use_hub", made.append)
    assert in_thread(lambda: 7) == 7
    assert made == []


def test_an_ended_thread_imports_nothing_in_foreign_code(uncollected, monkeypatch):
    """A namedtuple's code has no builtins; greenlet frees objects in any running code, and would import there."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    gate = threading.Lock()
    gate.acquire()
    started = Started(lambda: (with_a_time_out(), gate.acquire()))
    names = {"go_on": gate.release, "exists": os.access, "place": started.place, "sleep": time.sleep}
    FunctionType(until_it_ended.__code__, {"__builtins__": {}, **names})()
    assert [one.exc_value for one in unraisable] == []


def until_it_ended():
    """Call nothing that has builtins of its own."""
    go_on()  # noqa: F821 -- given above
    while exists(place, 0):  # noqa: F821
        sleep(0.001)  # noqa: F821
    for _ in (1, 2, 3):
        sleep(0)  # noqa: F821


@pytest.mark.parametrize(
    "call",
    [
        lambda: green.map_concurrently(lambda _: current_request(), [1, 2], 2)[1],
        lambda: green.start_green(current_request).wait(),
        lambda: green.run_in_thread(current_request),
        lambda: green.start_in_thread(current_request).wait(),
    ],
    ids=["map", "green", "thread", "green and thread"],
)
def test_a_call_logs_with_the_fields_of_the_one_that_starts_it(call):
    with log_fields(request="r1"):
        assert call() == "r1"
    assert call() == ""
