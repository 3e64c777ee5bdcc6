"""The state machine of one policy, by tables and against an oracle that keeps all windows."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_actors.policies.state_machine import Rules, StateMachine
from sluice_core.errors import DecodeError
from sluice_dsl.plan import PERSISTENT, TRANSIENT

BIG = ["size", ">", 100]
DOC = ["type", ["pdf"]]
BOTH = frozenset({PERSISTENT, TRANSIENT})


def outputs(windows, sustained=0.0, transient=2, life=TRANSIENT):
    """The values in force after each window; windows are (number, residual)."""
    machine, rules = StateMachine(), Rules(sustained, transient, BOTH)
    found = []
    for number, residual in windows:
        machine.step(rules, number, 1.0, residual)
        found.append(machine.in_force(life))
    return found


def numbered(*residuals):
    return list(enumerate(residuals, 100))


T, F = True, False


@pytest.mark.parametrize(
    ("title", "windows", "options", "expected"),
    [
        ("a true window sets at once", numbered(F, T), {}, [F, T]),
        ("one false window does not take back", numbered(T, F, T, F, T), {}, [T, T, T, T, T]),
        ("two false windows take back", numbered(T, F, F, T), {}, [T, T, F, T]),
        ("three with the option at three", numbered(T, F, F, F), {"transient": 3}, [T, T, T, F]),
        ("one with the option at one", numbered(T, F, T), {"transient": 1}, [T, F, T]),
        ("persistent stays for ever", numbered(T, F, F, F, F), {"life": PERSISTENT}, [T] * 5),
        ("persistent never triggered", numbered(F, F), {"life": PERSISTENT}, [F, F]),
        ("persistent grows by what held once", numbered(BIG, F, DOC), {"life": PERSISTENT},
         [BIG, BIG, ["or", BIG, DOC]]),
        ("mixed: each residual leaves by itself", numbered(BIG, DOC, DOC, F, F), {},
         [BIG, ["or", BIG, DOC], DOC, DOC, F]),
        ("mixed: alternating residuals do not flap", numbered(BIG, DOC, BIG, DOC), {},
         [BIG, ["or", BIG, DOC], ["or", BIG, DOC], ["or", BIG, DOC]]),
        ("sustained waits for all windows", numbered(T, T, T), {"sustained": 3.0}, [F, F, T]),
        ("sustained rounds up to whole windows", numbered(T, T, T), {"sustained": 2.2}, [F, F, T]),
        ("sustained begins again after a false window", numbered(T, T, F, T, T, T), {"sustained": 3.0},
         [F, F, F, F, F, T]),
        ("sustained needs what held in all windows", numbered(BIG, T, DOC), {"sustained": 3.0},
         [F, F, ["and", BIG, DOC]]),
        ("sustained and transient", numbered(T, T, F, F), {"sustained": 2.0}, [F, T, T, F]),
        ("a gap is no false window", [(100, T), (101, F), (109, T), (110, F)], {}, [T, T, T, T]),
        ("two false windows around a gap take back", [(100, T), (101, F), (109, F)], {}, [T, T, F]),
        ("a gap is no true window", [(100, T), (101, T), (103, T), (104, T), (105, T)], {"sustained": 3.0},
         [F, F, F, F, T]),
        ("a gap in a full count does not end it", [(100, T), (101, T), (103, T), (104, F), (105, F)],
         {"sustained": 2.0}, [F, T, T, T, F]),
        ("the same window again changes nothing", [(100, T), (101, F), (101, F)], {}, [T, T, T]),
        ("a clock set back goes on", [(100, T), (50, F), (51, F)], {}, [T, T, F]),
    ],
)  # fmt: skip
def test_what_is_in_force_after_each_window(title, windows, options, expected):
    assert outputs(windows, **options) == expected


def holds(predicate, truth):
    """Truth of a predicate whose leaves are independently true or false."""
    if isinstance(predicate, bool):
        return predicate
    word, *rest = predicate
    if word == "and":
        return all(holds(part, truth) for part in rest)
    if word == "or":
        return any(holds(part, truth) for part in rest)
    return truth[json.dumps(predicate)]


LEAVES = [BIG, DOC]


def table(predicate):
    names = [json.dumps(leaf) for leaf in LEAVES]
    cases = product((False, True), repeat=len(names))
    return [holds(predicate, dict(zip(names, case, strict=True))) for case in cases]


class Oracle:
    """Keeps every window and computes from the definition; predicates are their truth tables."""

    def __init__(self, needed, transient):
        self.needed, self.transient = needed, transient
        self.windows, self.counted = [], []

    def step(self, number, residual):
        self.windows.append((number, residual))
        self.counted.append(self._count(len(self.windows) - 1))

    def _count(self, last):
        first = last - self.needed + 1
        if first < 0:
            return None
        run = self.windows[first : last + 1]
        if any(residual is False for _, residual in run):
            return None
        for at in range(first + 1, last + 1):
            if self.windows[at][0] != self.windows[at - 1][0] + 1 and self.counted[at - 1] is None:
                return None
        return [all(column) for column in zip(*(table(residual) for _, residual in run), strict=True)]

    def _any(self, tables):
        tables = [one for one in tables if one is not None]
        return [any(column) for column in zip(*tables, strict=True)] if tables else table(False)

    def in_force(self, life):
        return self._any(self.counted if life == PERSISTENT else self.counted[-self.transient :])


RESIDUALS = st.sampled_from([True, False, False, BIG, DOC, ["and", BIG, DOC], ["or", BIG, DOC]])
HISTORY = st.lists(st.tuples(st.sampled_from([1, 1, 1, 1, 2, 5]), RESIDUALS), max_size=25)


@settings(deadline=None)
@given(HISTORY, st.integers(1, 4), st.integers(1, 3), st.integers(0, 25))
def test_the_machine_agrees_with_one_that_keeps_all_windows(history, needed, transient, restart):
    rules = Rules(float(needed), transient, BOTH)
    machine, oracle, number = StateMachine(), Oracle(needed, transient), 1000
    for count, (step, residual) in enumerate(history):
        number += step
        if count == restart:
            machine = StateMachine.from_data(json.loads(json.dumps(machine.to_data())))
        machine.step(rules, number, 1.0, residual)
        oracle.step(number, residual)
        for life in (TRANSIENT, PERSISTENT):
            assert table(machine.in_force(life)) == oracle.in_force(life)


@settings(deadline=None)
@given(HISTORY, RESIDUALS, st.integers(1, 4), st.integers(1, 3))
def test_a_settled_machine_stays_as_it_is(history, last, needed, transient):
    rules = Rules(float(needed), transient, BOTH)
    machine, number = StateMachine(), 1000
    for step, residual in history:
        number += step
        machine.step(rules, number, 1.0, residual)
    steps = 0
    while machine.step(rules, number := number + 1, 1.0, last):
        steps += 1
        assert steps <= needed + transient
    settled = (machine.streak, machine.recent, machine.kept)
    for step in (1, 1, 7, 1):
        number += step
        machine.step(rules, number, 1.0, last)
        assert (machine.streak, machine.recent, machine.kept) == settled


def test_a_long_sustained_condition_is_stored_run_length_encoded():
    machine, rules = StateMachine(), Rules(3600.0, 2, BOTH)
    for number in range(3600):
        assert machine.in_force(TRANSIENT) is False
        machine.step(rules, number, 1.0, True)
    assert machine.in_force(TRANSIENT) is True
    assert len(json.dumps(machine.to_data())) < 100


@pytest.mark.parametrize(
    "data", [{}, {"window": 1, "streak": [], "recent": ["x"], "kept": False},
             {"window": 1, "streak": [[True]], "recent": [], "kept": False},
             {"window": 1, "streak": [], "recent": [], "kept": None}],
)  # fmt: skip
def test_an_invalid_state_is_refused(data):
    with pytest.raises(DecodeError, match="not the state of a policy's machine"):
        StateMachine.from_data(data)


@pytest.mark.parametrize(
    ("sustained", "period", "windows"), [(0, 1, 1), (1, 1, 1), (10, 1, 10), (1.1, 0.1, 11), (7, 5, 2)]
)
def test_sustained_in_windows(sustained, period, windows):
    assert Rules(sustained).needed(period) == windows
