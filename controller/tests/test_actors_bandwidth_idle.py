"""What thousands of promises cost of which nothing moves: they are made, shown and encoded once."""

import json

import pytest

from sluice_actors import bandwidth_loads, bandwidth_picture
from sluice_actors.bandwidth_divider import Divider
from sluice_actors.bandwidth_objectives import Objectives
from sluice_actors.testing_bandwidth import MB, load, promise, row
from sluice_core.bandwidth import GET, PUT, Picture, Standing
from sluice_core.describe import PROXY, STORAGE_NODE
from sluice_core.messages import ALL, TENANT, Change, Target

EVERYBODY = Target(TENANT, ALL)
MANY = 200


def divided(*promises):
    divider = Divider()
    divider.objectives.replace(promises)
    return divider


def floors(each=0.1, **more):
    return [promise(f"I{number}", get_bw=each, **more) for number in range(MANY)]


def second(divider, number, *rows, carries=100.0, servers=1):
    """The picture of a second in which ``rows`` moved through a proxy, beside so many object servers."""
    for node, side in (("p1", PROXY), *((f"s{one}", STORAGE_NODE) for one in range(servers))):
        capacity = {side: {GET: carries * MB, PUT: carries * MB}}
        told = rows if side == PROXY else ()
        divider.feed(load(node, number, *told, sides=(side,), capacity=capacity), 100.0 + number)
    return divider.round(100.2 + number).picture


def idle(picture):
    return {one["account"]: one for one in picture.flows if not one["active"]}


@pytest.fixture
def work(monkeypatch):
    """What is done: rows made of idle ones, objectives looked at, characters of JSON written."""
    done = {"rows": 0, "looked": 0, "json": 0}

    def counted(of, name, what, weight=lambda made: 1):
        before = getattr(of, name)

        def after(*args, **kwargs):
            made = before(*args, **kwargs)
            done[what] += weight(made)
            return made

        monkeypatch.setattr(of, name, after)

    counted(bandwidth_picture, "_idle", "rows")
    counted(Objectives, "index_of", "looked")
    counted(Objectives, "promise", "looked")
    counted(json, "dumps", "json", len)
    return done


def test_a_second_costs_the_same_however_many_are_idle(work):
    def cost(*promises):
        divider = divided(promise("T", get_bw=1), *promises)
        second(divider, 1, row("T", 1)).encode()
        work.update(rows=0, looked=0, json=0)
        assert len(second(divider, 2, row("T", 1)).encode()) > 200 * len(promises)
        return dict(work)

    few, many = cost(), cost(*floors())
    assert (many["rows"], many["looked"]) == (0, few["looked"])
    assert many["json"] < few["json"] + 100


def test_what_is_lacking_of_idle_floors_costs_nothing_while_it_stays_the_same(work):
    divider = divided(*floors(each=1.0))
    first = second(divider, 1)
    assert first.encode()
    work.update(rows=0, looked=0, json=0)
    then = second(divider, 2)
    assert then.encode()
    assert then.lacking == {f"I{number}": {"get_bw": pytest.approx(0.5 * MB)} for number in range(MANY)}
    assert (work["rows"], work["looked"], then.lacking is first.lacking) == (0, 0, True)
    assert work["json"] < 3000


def test_who_begins_and_ends_leaves_the_others_rows_as_they_are(work):
    divider = divided(*floors())
    before = idle(second(divider, 1))
    picture = second(divider, 2, row("I7", 1))
    (active,) = (one for one in picture.flows if one["active"])
    assert (active["account"], active["floor"]) == ("I7", 0.1 * MB)
    assert idle(picture).keys() == before.keys() - {"I7"}
    assert all(one is before[account] for account, one in idle(picture).items())
    for number in range(3, 13):
        picture = second(divider, number)
    assert idle(picture) == before
    assert work["rows"] == MANY


def test_rows_follow_what_the_cluster_lacks():
    divider = divided(*floors(each=1.0))
    for number, (carries, short) in enumerate([(300, 0.0), (100, 0.5), (50, 0.75), (199, 0.0), (300, 0.0)], 1):
        picture = second(divider, number, carries=carries)
        for one in idle(picture).values():
            assert (one["short"], one["met"]) == (pytest.approx(short * MB), pytest.approx((1 - short) * MB))
        assert sum(picture.infeasible.values()) == pytest.approx(short * MANY * MB)


def test_rows_follow_the_objectives_and_the_object_servers():
    divider = divided(promise("A", get_bw=10), promise("B", node_get_bw=2))
    assert {name: one["floor"] / MB for name, one in idle(second(divider, 1)).items()} == {"A": 10, "B": 2}
    change = Change(2, "h", 0.0, puts=(promise("A", get_bw=20), promise("C", get_bw=5)))
    assert divider.objectives.apply(change)
    shown = idle(second(divider, 2, servers=3))
    assert {name: one["floor"] / MB for name, one in shown.items()} == {"A": 20, "B": 6, "C": 5}
    assert divider.objectives.apply(Change(3, "h", 0.0, drops=("A.0",)))
    assert idle(second(divider, 3, servers=3)).keys() == {"B", "C"}


def test_of_everybody_only_who_is_new_is_looked_up(work):
    divider = divided(promise("all", get_bw=0.1, target=EVERYBODY))
    second(divider, 1, *(row(f"I{number}", 1) for number in range(MANY)))
    for number in range(2, 14):
        picture = second(divider, number)
    assert idle(picture).keys() == {f"I{number}" for number in range(MANY)}
    work.update(rows=0, looked=0)
    for number in range(14, 16):
        second(divider, number, row("new", 1))
    assert (work["rows"], work["looked"] < 10) == (0, True)
    for number in range(16, 28):
        picture = second(divider, number)
    assert len(idle(picture)) == MANY + 1
    assert work["rows"] == 1


def test_of_everybody_who_is_forgotten_is_not_shown_any_more(monkeypatch):
    divider = divided(promise("all", get_bw=1, target=EVERYBODY))
    second(divider, 1, row("A", 1), row("B", 1))
    for number in range(2, 14):
        picture = second(divider, number)
    assert idle(picture).keys() == {"A", "B"}
    with monkeypatch.context() as patch:
        patch.setattr(bandwidth_loads, "_OVER", 0)
        for number in range(14, 300):
            picture = second(divider, number)
            if not picture.flows:
                break
    assert (picture.flows, divider.loads.names.flows) == ((), [])
    for number in range(300, 312):
        picture = second(divider, number, *([row("C", 1)] if number == 300 else []))
    assert idle(picture).keys() == {"C"}


def test_who_is_active_is_never_left_out_for_who_is_idle(monkeypatch):
    monkeypatch.setitem(bandwidth_picture.MOST, "flows", 6)
    divider = divided(*floors(), promise("P", put_bw=1))
    picture = second(divider, 1, *(row(name, 1) for name in "ABC"), row("D", 1, method=PUT))
    assert [one["account"] for one in picture.flows if one["active"]] == list("ABCD")
    assert {(one["account"], one["method"]) for one in picture.flows[4:]} == {("I0", GET), ("P", PUT)}
    assert picture.left_out == {"flows": MANY - 1}


ROWS = [{"account": f"AUTH_{number}", "floor": 1.0, "policies": ["\ud800", "ü"]} for number in range(4)]


@pytest.mark.parametrize("standing", [(), (0,), (3,), (0, 1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_picture_reads_the_same_whatever_of_it_stands(standing, count):
    rows = tuple(Standing(one) if number in standing else one for number, one in enumerate(ROWS[:count]))
    missing = {"p": {"get_bw": 5.0}}
    more = {"infeasible": Standing(p=5.0), "lacking": Standing(missing)} if standing else {}
    picture = Picture(1.0, "h", 1, 7, flows=rows, nodes=({"node": "n"},), **more)
    for _ in range(2):
        read = Picture.decode(picture.encode())
        assert read == picture
        assert read.flows == tuple(ROWS[:count])
        assert read.lacking == (missing if standing else {})
