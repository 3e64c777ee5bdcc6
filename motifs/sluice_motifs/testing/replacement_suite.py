"""The contract suite of replacement policies, and the protocol of the reference models for comparison.

Subclass and name your policy and a model of it, pytest finds the rest::

    class TestMine(ReplacementContract):
        policy = Mine
        model = MineModel

A model gives the same results as its policy in the simplest way, with lists that are searched and without typed arrays.
"""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from typing import ClassVar, Final, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_motifs.replacement.api import ReplacementPolicy

#: Few slots, so that they are reused often; many steps.
_SLOTS: Final = 12
#: Each policy runs the same test, in a class of its own.
_SETTINGS: Final = settings(deadline=None, suppress_health_check=[HealthCheck.differing_executors])
_OPERATIONS: Final = ("insert", "touch", "touch", "remove", "evict", "evict")
Step = tuple[str, int]
STEPS: Final = st.lists(st.tuples(st.sampled_from(_OPERATIONS), st.integers(0, _SLOTS - 1)), max_size=200)
_MANY: Final = 20_000


class ReplacementModel(Protocol):
    """The operations of a policy without its checks; ``order`` is what ``victims`` must yield."""

    def insert(self, slot: int) -> None: ...

    def touch(self, slot: int) -> None: ...

    def remove(self, slot: int) -> None: ...

    def evict(self, slot: int) -> None: ...

    def order(self) -> list[int]: ...


class ReplacementContract:
    """Every rule of ``sluice_motifs.replacement.api``, as tests; a policy with random draws must repeat them in
    ``policy()``."""

    policy: ClassVar[Callable[[], ReplacementPolicy]]
    model: ClassVar[Callable[[], ReplacementModel]]

    def make(self) -> ReplacementPolicy:
        """A new policy."""
        return type(self).policy()

    def filled(self, slots: int) -> ReplacementPolicy:
        """A policy with the slots 0, 1, 2, …, of which each third was opened."""
        policy = self.make()
        for slot in range(slots):
            policy.insert(slot)
        for slot in range(0, slots, 3):
            policy.touch(slot)
        return policy

    @_SETTINGS
    @given(STEPS)
    def test_the_order_is_that_of_the_model(self, steps: list[Step]) -> None:
        self._compare(steps)

    def test_the_order_is_that_of_the_model_after_many_steps(self) -> None:
        draws = random.Random(3)  # noqa: S311  a fixed sequence
        operations = draws.choices(_OPERATIONS, weights=(3, 5, 5, 1, 1, 1), k=3000)
        self._compare([(operation, int(draws.expovariate(0.3)) % _SLOTS) for operation in operations])

    def _compare(self, steps: list[Step]) -> None:
        policy, model = self.make(), type(self).model()
        for operation, number in steps:
            slot = number
            if operation == "evict":  # the caller skips `number` victims
                order = list(policy.victims())
                slot = order[number % len(order)] if order else number
            if (slot in policy) == (operation == "insert"):
                continue
            getattr(policy, operation)(slot)
            getattr(model, operation)(slot)
            assert list(policy.victims()) == model.order()
        assert len(policy) == len(model.order())

    @_SETTINGS
    @given(STEPS, st.sets(st.integers(0, _SLOTS - 1)))
    def test_victims_may_be_evicted_and_skipped_while_they_are_iterated(
        self, steps: list[Step], skipped: set[int]
    ) -> None:
        policy = self.make()
        for operation, slot in steps:
            if (slot in policy) != (operation == "insert"):
                getattr(policy, operation)(slot)
        expected = list(policy.victims())
        victims = []
        for slot in policy.victims():
            victims.append(slot)
            if slot not in skipped:
                policy.evict(slot)
        assert victims == expected
        assert set(policy.victims()) == set(expected) & skipped

    def test_evicting_the_first_victim_leaves_the_order_of_the_others(self) -> None:
        policy = self.filled(50)
        expected = list(policy.victims())
        while expected:
            assert list(policy.victims()) == expected
            policy.evict(expected.pop(0))
        assert len(policy) == 0

    @pytest.mark.parametrize("change", ["insert", "touch", "remove"])
    def test_any_other_change_ends_an_iteration_with_an_error(self, change: str) -> None:
        policy = self.filled(5)
        victims = policy.victims()
        first = next(victims)
        getattr(policy, change)(5 if change == "insert" else first)
        with pytest.raises(RuntimeError, match="was changed while its victims were iterated"):
            next(victims)

    @pytest.mark.parametrize("operation", ["touch", "remove", "evict"])
    def test_a_slot_that_is_not_in_use_is_refused(self, operation: str) -> None:
        policy = self.filled(3)
        policy.remove(1)
        for slot in (1, -1, 1000):
            with pytest.raises(ValueError, match=f"slot `{slot}` is not in use, expected one of 2"):
                getattr(policy, operation)(slot)

    def test_a_slot_that_is_in_use_or_negative_is_not_inserted(self) -> None:
        policy = self.filled(3)
        with pytest.raises(ValueError, match="slot `1` is in use, expected a free one"):
            policy.insert(1)
        with pytest.raises(ValueError, match="slot `-1` is negative"):
            policy.insert(-1)
        assert len(policy) == 3

    def test_it_takes_the_memory_that_it_says(self) -> None:
        tracemalloc.start()
        try:
            policy = self.filled(_MANY)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(policy) == _MANY
        assert used <= 1.25 * policy.slot_bytes * _MANY + 16_384  # arrays grow by an eighth, objects cost something
