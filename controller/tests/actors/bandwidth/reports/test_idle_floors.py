"""The cost of thousands of idle floors: their rows are made, encoded and written once."""

import json

import pytest
from tests.support.actors.bandwidth import MB, bandwidth_policy, flow_row, node_load, report_of

from sluice_actors.bandwidth.allocator import Allocator
from sluice_actors.bandwidth.loads import node_loads
from sluice_actors.bandwidth.objectives import Objectives
from sluice_actors.bandwidth.reports import idle_floors, report
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages.bandwidth import GET, PUT
from sluice_core.messages.bandwidth_report import BandwidthReport, CachedJson, IdleFlowReport
from sluice_core.messages.policies import ALL, TENANT, Change, Target

EVERYBODY = Target(TENANT, ALL)
MANY = 200


def divided(*promises):
    allocator = Allocator()
    allocator.objectives.replace(promises)
    return allocator


def floors(each=0.1, **more):
    return [bandwidth_policy(f"I{number}", get_bw=each, **more) for number in range(MANY)]


def second(allocator, number, *rows, **more):
    """The report of a second, as the API shows it."""
    return report_of(told(allocator, number, *rows, **more))


def told(allocator, number, *rows, carries=100.0, servers=1):
    """The round of a second in which ``rows`` moved through a proxy, with ``servers`` object servers."""
    for node, side in (("p1", PROXY), *((f"s{one}", STORAGE_NODE) for one in range(servers))):
        capacity = {side: {GET: carries * MB, PUT: carries * MB}}
        told = rows if side == PROXY else ()
        allocator.feed(node_load(node, number, *told, sides=(side,), capacity=capacity), 100.0 + number)
    return allocator.allocate(100.2 + number)


def written(made):
    """The bytes of the report and of the idle floors beside it."""
    picture, promises = made.reports
    return picture.encode(), promises.encode()


def idle(picture):
    return {one["account"]: one for one in picture.flows if not one["active"]}


@pytest.fixture
def work(monkeypatch):
    """The work of a round: rows made for idle floors, objectives looked up, characters of JSON written."""
    done = {"rows": 0, "looked": 0, "json": 0}

    def counted(of, name, what, weight=lambda made: 1):
        before = getattr(of, name)

        def after(*args, **kwargs):
            made = before(*args, **kwargs)
            done[what] += weight(made)
            return made

        monkeypatch.setattr(of, name, after)

    counted(idle_floors, "_new_row", "rows")
    counted(Objectives, "policy_index", "looked")
    counted(Objectives, "for_flow", "looked")
    counted(json, "dumps", "json", len)
    return done


def test_a_second_costs_the_same_however_many_are_idle(work):
    def cost(*promises):
        allocator = divided(bandwidth_policy("T", get_bw=1), *promises)
        _, before = written(told(allocator, 1, flow_row("T", 1)))
        work.update(rows=0, looked=0, json=0)
        made = told(allocator, 2, flow_row("T", 1))
        picture, after = written(made)
        assert after is before
        assert len(after) > 150 * len(promises)
        assert len(idle(report_of(made))) == len(promises)
        return {**work, "picture": len(picture)}

    few, many = cost(), cost(*floors())
    assert (many["rows"], many["looked"]) == (0, few["looked"])
    assert many["json"] < few["json"] + 100
    assert many["picture"] < few["picture"] + 100


def test_what_is_lacking_of_idle_floors_costs_nothing_while_it_stays_the_same(work):
    allocator = divided(*floors(each=1.0))
    first = told(allocator, 1)
    assert written(first)
    work.update(rows=0, looked=0, json=0)
    then = told(allocator, 2)
    assert written(then)[1] is written(first)[1]
    assert report_of(then).lacking == {f"I{number}": {"get_bw": pytest.approx(0.5 * MB)} for number in range(MANY)}
    assert (work["rows"], work["looked"], report_of(then).lacking is report_of(first).lacking) == (0, 0, True)
    assert work["json"] < 3000


def test_flows_that_begin_and_end_leave_the_rows_of_others_as_they_are(work):
    allocator = divided(*floors())
    first, then = told(allocator, 1), told(allocator, 2, flow_row("I7", 1))
    assert written(then)[1] is written(first)[1]
    before, picture = idle(report_of(first)), report_of(then)
    (active,) = (one for one in picture.flows if one["active"])
    assert (active["account"], active["floor"]) == ("I7", 0.1 * MB)
    assert idle(picture).keys() == before.keys() - {"I7"}
    assert all(one is before[account] for account, one in idle(picture).items())
    for number in range(3, 13):
        picture = second(allocator, number)
    assert idle(picture) == before
    assert work["rows"] == MANY


def test_rows_follow_what_the_cluster_lacks():
    allocator = divided(*floors(each=1.0))
    for number, (carries, short) in enumerate([(300, 0.0), (100, 0.5), (50, 0.75), (199, 0.0), (300, 0.0)], 1):
        picture = second(allocator, number, carries=carries)
        for one in idle(picture).values():
            assert (one["short"], one["met"]) == (pytest.approx(short * MB), pytest.approx((1 - short) * MB))
        assert sum(picture.infeasible.values()) == pytest.approx(short * MANY * MB)


def test_rows_follow_the_objectives_and_the_object_servers():
    allocator = divided(bandwidth_policy("A", get_bw=10), bandwidth_policy("B", node_get_bw=2))
    assert {name: one["floor"] / MB for name, one in idle(second(allocator, 1)).items()} == {"A": 10, "B": 2}
    change = Change(2, "h", 0.0, puts=(bandwidth_policy("A", get_bw=20), bandwidth_policy("C", get_bw=5)))
    assert allocator.objectives.apply(change)
    shown = idle(second(allocator, 2, servers=3))
    assert {name: one["floor"] / MB for name, one in shown.items()} == {"A": 20, "B": 6, "C": 5}
    assert allocator.objectives.apply(Change(3, "h", 0.0, drops=("A.0",)))
    assert idle(second(allocator, 3, servers=3)).keys() == {"B", "C"}


def test_under_all_only_new_flows_are_looked_up(work):
    allocator = divided(bandwidth_policy("all", get_bw=0.1, target=EVERYBODY))
    second(allocator, 1, *(flow_row(f"I{number}", 1) for number in range(MANY)))
    for number in range(2, 14):
        picture = second(allocator, number)
    assert idle(picture).keys() == {f"I{number}" for number in range(MANY)}
    work.update(rows=0, looked=0)
    for number in range(14, 16):
        second(allocator, number, flow_row("new", 1))
    assert (work["rows"], work["looked"] < 10) == (1, True)
    for number in range(16, 28):
        picture = second(allocator, number)
    assert len(idle(picture)) == MANY + 1
    assert work["rows"] == 1


def test_forgotten_flows_under_all_are_not_reported(monkeypatch):
    allocator = divided(bandwidth_policy("all", get_bw=1, target=EVERYBODY))
    second(allocator, 1, flow_row("A", 1), flow_row("B", 1))
    for number in range(2, 14):
        picture = second(allocator, number)
    assert idle(picture).keys() == {"A", "B"}
    with monkeypatch.context() as patch:
        patch.setattr(node_loads, "_MAX_OVER", 0)
        for number in range(14, 300):
            picture = second(allocator, number)
            if not picture.flows:
                break
    assert (picture.flows, allocator.loads.flow_index.flows) == ((), [])
    for number in range(300, 312):
        picture = second(allocator, number, *([flow_row("C", 1)] if number == 300 else []))
    assert idle(picture).keys() == {"C"}


def test_active_flows_are_never_omitted_for_idle_ones(monkeypatch):
    monkeypatch.setitem(report.MAX_ROWS, "flows", 6)
    allocator = divided(*floors(), bandwidth_policy("P", put_bw=1))
    picture = second(allocator, 1, *(flow_row(name, 1) for name in "ABC"), flow_row("D", 1, method=PUT))
    assert [one["account"] for one in picture.flows if one["active"]] == list("ABCD")
    assert {(one["account"], one["method"]) for one in picture.flows[4:]} == {("I0", GET), ("P", PUT)}
    assert picture.left_out == {"flows": MANY - 1}


def test_methods_take_turns_where_rows_are_omitted(monkeypatch):
    monkeypatch.setitem(report.MAX_ROWS, "flows", 5)
    allocator = divided(*floors(), *(bandwidth_policy(f"P{number}", put_bw=1) for number in range(2)))
    shown = [(one["account"], one["method"]) for one in second(allocator, 1).flows]
    assert shown == [("I0", GET), ("P0", PUT), ("I1", GET), ("P1", PUT), ("I2", GET)]
    # A flow that becomes active takes a row, and frees none of the omitted ones.
    picture = second(allocator, 2, flow_row("I0", 1), flow_row("I9", 1))
    assert [one["account"] for one in picture.flows] == ["I0", "I9", "P0", "I1", "P1"]
    assert picture.left_out == {"flows": MANY - 3}


ROWS = [{"account": f"AUTH_{number}", "floor": 1.0, "policies": ["\ud800", "ü"]} for number in range(4)]


@pytest.mark.parametrize("stands", [True, False])
def test_a_report_decodes_the_same_whatever_of_it_is_cached(stands):
    missing, kind = {"p": {"get_bw": 5.0}}, CachedJson if stands else dict
    picture = BandwidthReport(1.0, "h", 1, 7, flows=tuple(ROWS), infeasible=kind(p=5.0), lacking=kind(missing))
    for _ in range(2):
        read = BandwidthReport.decode(picture.encode())
        assert read == picture
        assert (read.flows, read.infeasible, read.lacking) == (tuple(ROWS), {"p": 5.0}, missing)


@pytest.mark.parametrize("standing", [(), (0,), (3,), (0, 1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_idle_rows_decode_the_same_whatever_of_them_is_cached(standing, count):
    rows = tuple(CachedJson(one) if number in standing else one for number, one in enumerate(ROWS[:count]))
    promises = IdleFlowReport(rows)
    for _ in range(2):
        read = IdleFlowReport.decode(promises.encode())
        assert read.rows == tuple(ROWS[:count])
        assert read.digest == promises.digest
    assert bool(promises.digest) == bool(count)


def test_different_idle_rows_have_different_digests():
    assert len({IdleFlowReport(tuple(ROWS[:count])).digest for count in range(5)}) == 5
