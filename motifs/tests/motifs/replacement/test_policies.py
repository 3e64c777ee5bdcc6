"""Every replacement policy against the contract suite, beside a model of lists that are searched."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from sluice_core.errors import CallerError
from sluice_motifs.replacement.clock import Clock
from sluice_motifs.replacement.fifo import Fifo
from sluice_motifs.replacement.lfu import Lfu
from sluice_motifs.replacement.lru import Lru
from sluice_motifs.replacement.random import RandomReplacement
from sluice_motifs.replacement.registry import BUILT_IN, create_policy
from sluice_motifs.replacement.s4lru import S4Lru
from sluice_motifs.testing.replacement_suite import ReplacementContract


class FifoModel:
    def __init__(self):
        self.slots = []

    def insert(self, slot):
        self.slots.append(slot)

    def touch(self, slot):
        pass

    def remove(self, slot):
        self.slots.remove(slot)

    def evict(self, slot):
        self.remove(slot)

    def order(self):
        return list(self.slots)


class LruModel(FifoModel):
    def touch(self, slot):
        self.slots.remove(slot)
        self.slots.append(slot)


class ClockModel(FifoModel):
    """The textbook's search: ``slots`` starts at the hand."""

    def __init__(self):
        super().__init__()
        self.opened = set()

    def touch(self, slot):
        self.opened.add(slot)

    def remove(self, slot):
        super().remove(slot)
        self.opened.discard(slot)

    def evict(self, slot):
        while self.slots[0] != slot or slot in self.opened:
            self.opened.discard(self.slots[0])
            self.slots.append(self.slots.pop(0))
        self.slots.pop(0)

    def order(self):
        """Evict all slots of a copy, one after the other."""
        copy = ClockModel()
        copy.slots, copy.opened = list(self.slots), set(self.opened)
        found = []
        while copy.slots:
            while (slot := copy.slots[0]) in copy.opened:
                copy.opened.discard(slot)
                copy.slots.append(copy.slots.pop(0))
            found.append(copy.slots.pop(0))
        return found


class LfuModel(FifoModel):
    """``slots`` in the order of the last change of a counter; halving keeps the order of victims."""

    def __init__(self):
        super().__init__()
        self.counter = {}
        self.opens = 0

    def insert(self, slot):
        self.slots.append(slot)
        self.counter[slot] = 1

    def touch(self, slot):
        self.slots.remove(slot)
        self.slots.append(slot)
        self.counter[slot] = min(self.counter[slot] + 1, 255)
        self.opens += 1
        if self.opens >= max(8 * len(self.slots), 255):
            self.opens = 0
            self.slots = self.order()
            self.counter = {slot: max(1, count // 2) for slot, count in self.counter.items()}

    def order(self):
        return sorted(self.slots, key=lambda slot: self.counter[slot])


class S4LruModel(FifoModel):
    def __init__(self):
        self.lists = [[], [], [], []]

    def insert(self, slot):
        self.lists[0].append(slot)
        self.cut()

    def touch(self, slot):
        (segment,) = [number for number, one in enumerate(self.lists) if slot in one]
        self.lists[segment].remove(slot)
        self.lists[min(segment + 1, 3)].append(slot)
        self.cut()

    def remove(self, slot):
        self.lists = [[one for one in slots if one != slot] for slots in self.lists]

    def order(self):
        return [slot for slots in self.lists for slot in slots]

    def cut(self):
        most = max(1, len(self.order()) // 4)
        for segment in (3, 2, 1):
            surplus = max(0, len(self.lists[segment]) - most)
            self.lists[segment - 1] += self.lists[segment][:surplus]
            del self.lists[segment][:surplus]


class RandomModel(FifoModel):
    def __init__(self):
        super().__init__()
        self.draws = random.Random(7)

    def insert(self, slot):
        self.slots.append(slot)
        place = self.draws.randrange(len(self.slots))
        self.slots[-1], self.slots[place] = self.slots[place], slot

    def remove(self, slot):
        place, last = self.slots.index(slot), self.slots.pop()
        if place < len(self.slots):
            self.slots[place] = last

    def order(self):
        return self.slots[::-1]


class TestFifo(ReplacementContract):
    policy = Fifo
    model = FifoModel


class TestLru(ReplacementContract):
    policy = Lru
    model = LruModel


class TestClock(ReplacementContract):
    policy = Clock
    model = ClockModel


class TestLfu(ReplacementContract):
    policy = Lfu
    model = LfuModel


class TestS4Lru(ReplacementContract):
    policy = S4Lru
    model = S4LruModel


class TestRandom(ReplacementContract):
    policy = staticmethod(lambda: RandomReplacement(seed=7))
    model = RandomModel


def test_second_chances_outlive_a_look_at_the_victims():
    clock = Clock()
    for slot in range(4):
        clock.insert(slot)
    clock.touch(0)
    clock.touch(2)
    assert list(clock.victims()) == [1, 3, 0, 2]  # all skipped
    clock.evict(1)  # the hand passes 0, which has had its chance, and not 2
    clock.insert(4)
    assert list(clock.victims()) == [3, 0, 4, 2]


def test_what_was_popular_once_becomes_the_least_frequent_by_ageing():
    lfu = Lfu()
    for slot in range(10):
        lfu.insert(slot)
    for _ in range(60):
        lfu.touch(0)
    for _ in range(50):
        for slot in range(1, 10):
            lfu.touch(slot)
    assert next(lfu.victims()) == 0


def test_every_slot_is_equally_often_the_first_random_victim():
    first = Counter()
    for seed in range(2000):
        policy = RandomReplacement(seed)
        for slot in range(6):
            policy.insert(slot)
        policy.remove(5)
        policy.evict(next(policy.victims()))
        first[next(policy.victims())] += 1
    assert set(first) == set(range(5))
    assert all(300 < count < 500 for count in first.values())  # 400 ± 5.6 standard deviations


@pytest.mark.parametrize("policy", BUILT_IN, ids=lambda one: one.keyword)
def test_a_policy_is_made_by_the_keyword_of_a_sentence(policy):
    assert type(create_policy(policy.keyword)) is policy


def test_an_unknown_policy_is_refused_with_its_near_miss():
    with pytest.raises(CallerError, match="policy `lruu`, did you mean `lru`, expected one of lru, lfu"):
        create_policy("lruu")
