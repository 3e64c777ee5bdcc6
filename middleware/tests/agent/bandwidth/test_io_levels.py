"""The I/O levels of flows on a node's disks."""

from dataclasses import replace

import pytest

from sluice_agent.bandwidth.io_levels import SILENCE, IoLevels, encode_update
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, REPLICATION_FLOW, Flow, Share, Shares
from sluice_core.messages.credit import IDLE, MESSAGE_LIMIT, Level, PriorityUpdate, unpack


def flow(account):
    return Flow(account, GET)


def share(account, rate=-1.0, floor=0.0, priority=4):
    return Share(STORAGE_NODE, account, "", GET, 0, rate, floor, 0.0, priority)


def look(levels, rows, **moving):
    """I/O levels by account; each moves (bytes per second, transfers held back)."""
    found = {flow(account): (moved, 1.0, waiting) for account, (moved, waiting) in moving.items()}
    levels.update(Shares("n1", 1, 1, 0.0, tuple(rows)), found)
    return {row.account: row.level for row in levels.updates[STORAGE_NODE].rows}


def test_a_flow_below_its_floor_is_first_and_one_above_is_idle():
    rows = [share("a", floor=100.0), share("b", floor=50.0)]
    assert look(IoLevels(), rows, a=(50, 0), b=(80, 0), c=(10, 0)) == {"a": 0, "b": IDLE, "c": IDLE, "": IDLE}


def test_priorities_apply_while_no_flow_is_below_its_floor():
    rows = [share("a", floor=100.0, priority=1), share("b", priority=7)]
    assert look(IoLevels(), rows, a=(150, 0), b=(80, 0), c=(10, 0)) == {"a": 1, "b": 7}


def test_a_borrowing_flow_is_idle_while_others_wait():
    rows = [share("a", 100.0, floor=50.0), share("b", 100.0, floor=50.0)]
    assert look(IoLevels(), rows, a=(150, 1.0), b=(60, 1.0)) == {"a": IDLE}
    assert look(IoLevels(), rows, a=(150, 1.0), b=(60, 0)) == {}


def test_a_flow_without_transfers_is_not_below_its_floor():
    levels = IoLevels()
    levels.update(Shares("n1", 1, 1, 0.0, (share("a", floor=100.0),)), {flow("b"): (80.0, 1.0, 0.0)})
    assert levels.updates[STORAGE_NODE] == PriorityUpdate((), True)


def test_levels_have_hysteresis():
    levels = IoLevels()
    rows = [share("a", floor=100.0)]
    first = {"a": 0, "": IDLE}
    assert [look(levels, rows, a=(moved, 0)) for moved in (97, 94, 97, 101, 97)] == [{}, first, first, {}, {}]


@pytest.mark.parametrize(
    ("row", "active"),
    [
        (share("a"), False),
        (share("a", floor=1.0), True),
        (share("a", priority=1), True),
        (share("a", 9.0)._replace(ceiling=9.0), True),
        (share("a", floor=1.0)._replace(side=PROXY), False),
    ],
)
def test_a_floor_a_ceiling_or_a_class_of_the_disks_is_an_objective(row, active):
    levels = IoLevels()
    levels.update(Shares("n1", 1, 1, 0.0, (row,)), {})
    assert [levels.updates[side].active for side in (PROXY, STORAGE_NODE)] == [active, active]


def test_copies_are_idle_while_a_flow_is_below_its_floor():
    levels, rows = IoLevels(), [share("a", floor=100.0)]
    assert look(levels, rows, a=(50, 0))[""] == IDLE
    assert look(levels, rows, a=(150, 0)) == {}
    sent = {flow("a"): (50.0, 1.0, 0.0), REPLICATION_FLOW: (90.0, 1.0, 0.0)}
    levels.update(Shares("n1", 1, 1, 0.0, tuple(rows)), sent)
    assert [row.level for row in levels.updates[STORAGE_NODE].rows if row.flow == REPLICATION_FLOW] == [IDLE]


def test_proxies_get_spares_and_no_update_twice():
    levels = IoLevels()
    given = Shares("n1", 1, 1, 0.0, (), {}, {"n2": 0.5})
    assert levels.update(given, {}) == (PROXY,)
    assert levels.updates[PROXY].spares == {"n2": 0.5}
    assert levels.update(given, {}) == ()


def test_spares_end_with_the_shares():
    now = 100.0
    levels = IoLevels(lambda: now)
    given = Shares("n1", 1, 1, 0.0, (), {}, {"n2": 0.5})
    levels.update(given, {})
    now += SILENCE
    assert levels.update(given, {}) == ()
    assert levels.updates[PROXY].spares == {"n2": 0.5}
    now += 1.0
    assert levels.update(given, {}) == (PROXY,)
    assert levels.updates[PROXY].spares is None
    assert levels.update(replace(given, number=2), {}) == (PROXY,)
    assert levels.updates[PROXY].spares == {"n2": 0.5}


def test_updates_are_sent_each_time_while_an_objective_is_in_force():
    levels = IoLevels()
    given = Shares("n1", 1, 1, 0.0, (share("a", floor=1.0),))
    assert [levels.update(given, {}) for _ in range(2)] == [(PROXY, STORAGE_NODE)] * 2
    assert levels.update(None, {}) == (PROXY, STORAGE_NODE)
    assert levels.update(None, {}) == ()


def test_rows_beyond_the_message_limit_are_left_out():
    rows = (Level("first", "", GET, 0, 0), *(Level(f"AUTH_{n:060d}", "", GET, 0, 7) for n in range(3000)))
    spares = {f"node{n:060d}": 0.1 for n in range(3000)}
    raw = encode_update(PriorityUpdate(rows, True, spares, {GET: 5.0}))
    assert len(raw) <= MESSAGE_LIMIT
    found = unpack(raw)
    assert found.rows[0] == rows[0]
    assert found.spares
    assert found.alone == {GET: 5.0}
