"""Readers of one item share views that began after their opens."""

import threading

import pytest

from sluice_motifs_swift.objects.shared_calls import RequestCoalescer


class Gate:
    """Views that end one by one, when the test lets them."""

    def __init__(self):
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.count = 0

    def __call__(self, name):
        self.count += 1
        number = self.count
        self.begun.release()
        assert self.let.acquire(timeout=10)
        if name == "bad":
            raise ValueError(f"look {number}")
        return number


def start(looks, name, found):
    thread = threading.Thread(target=lambda: found.append(looks(name)))
    thread.start()
    return thread


def test_who_comes_while_somebody_looks_shares_the_next_look():
    gate = Gate()
    looks = RequestCoalescer(gate)
    first, later = [], []
    threads = [start(looks, "a", first)]
    assert gate.begun.acquire(timeout=10)
    threads += [start(looks, "a", later) for _ in range(20)]
    while "a" not in looks._waiting:
        pass
    gate.let.release()
    assert gate.begun.acquire(timeout=10), "the next look begins when the first has ended"
    gate.let.release(30)
    for thread in threads:
        thread.join(10)
    assert first == [1]
    assert set(later) <= {2, 3}, "late starters of this test may need one more"
    assert not looks._waiting
    assert not looks._running


def test_items_do_not_wait_for_each_other():
    gate = Gate()
    looks = RequestCoalescer(gate)
    found = []
    threads = [start(looks, name, found) for name in "abc"]
    for _ in threads:
        assert gate.begun.acquire(timeout=10)
    gate.let.release(3)
    for thread in threads:
        thread.join(10)
    assert sorted(found) == [1, 2, 3]


def test_a_look_that_fails_fails_for_those_who_share_it_alone():
    gate = Gate()
    gate.let.release(2)
    looks = RequestCoalescer(gate)
    with pytest.raises(ValueError, match="look 1"):
        looks("bad")
    with pytest.raises(ValueError, match="look 2"):
        looks("bad")
