"""Requests that arrive during a call share the next one."""

import threading

import pytest

from sluice_motifs_swift.objects.shared_calls import GroupedCalls

MOST = 4
GATHERS = 0.05


class Gate:
    """Calls that end one by one, when the test lets them."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.calls = []

    def __call__(self, requests):
        self.calls.append(list(requests))
        self.begun.release()
        assert self.let.acquire(timeout=10)
        if "bad" in requests:
            raise ValueError("no answer")
        return [None if one == "other" else one.upper() for one in requests]


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def calls(gate, pauses):
    def begin(work):
        threading.Thread(target=work, daemon=True).start()

    return GroupedCalls(gate, MOST, GATHERS, begin, pauses.append, clock=lambda: 7.0)


def start(calls, request, found):
    thread = threading.Thread(target=lambda: found.append(calls(request)))
    thread.start()
    return thread


def ask_behind_a_first(gate, calls, requests, groups):
    """Responses to ``requests`` that arrive during another call."""
    first, found = [], []
    threads = [start(calls, "first", first)]
    assert gate.begun.acquire(timeout=10)
    for number, request in enumerate(requests, 1):
        threads.append(start(calls, request, found))
        while len(calls._waiting) < number:
            pass  # it arrives in a moment
    for _ in range(1 + groups):
        gate.let.release()
    for thread in threads:
        thread.join(10)
    assert first == ["FIRST"]
    return found


def test_who_comes_alone_waits_for_nobody(gate, calls, pauses):
    gate.let.release()
    assert calls("a") == "A"
    assert gate.calls == [["a"]]
    assert pauses == []


def test_who_comes_during_a_call_goes_with_all_who_wait(gate, calls):
    assert sorted(ask_behind_a_first(gate, calls, ["a", "b", "c"], 1)) == ["A", "B", "C"]
    assert gate.calls == [["first"], ["a", "b", "c"]]


def test_a_call_of_several_leaves_time_for_more_to_come(gate, calls, pauses):
    ask_behind_a_first(gate, calls, [f"r{number}" for number in range(2 * MOST)], 2)
    assert pauses[0] == pytest.approx(GATHERS)  # the second one's thread may be about to pause


def test_a_call_is_for_a_bounded_number(gate, calls):
    requests = [f"r{number}" for number in range(MOST + 2)]
    ask_behind_a_first(gate, calls, requests, 2)
    assert gate.calls == [["first"], requests[:MOST], requests[MOST:]]


def test_what_a_call_leaves_out_has_no_answer(gate, calls):
    assert sorted(ask_behind_a_first(gate, calls, ["a", "other"], 1), key=str) == ["A", None]


def test_a_call_that_fails_leaves_all_out_and_the_next_is_made(gate, calls, caplog):
    assert ask_behind_a_first(gate, calls, ["a", "bad"], 1) == [None, None]
    assert "a call for 2 requests failed" in caplog.text
    gate.let.release()
    assert calls("b") == "B"
