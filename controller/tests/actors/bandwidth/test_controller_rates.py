"""A global controller's rates instead of Sluice's own allocation; Crystal's algorithm 1 on a simulated cluster."""

import importlib.util
import math
from pathlib import Path

import pytest
from tests.support.actors.bandwidth import MB, Cluster, bandwidth_policy, report_of, shares_of

from sluice_actors.bandwidth.methods.method_allocator import ControllerRateTable
from sluice_actors.controllers.observation import BandwidthView
from sluice_core.control import Observation
from sluice_core.describe import PROXY
from sluice_core.messages.bandwidth import GET, ControllerRates, Rate

EXAMPLE = Path(__file__).resolve().parents[4] / "docs" / "examples" / "bandwidth_differentiation.py"
EVERYWHERE = {"p1": math.inf, "p2": math.inf}


def cluster(**asks):
    made = Cluster({"p1": 45.0, "p2": 45.0}, dict.fromkeys(("s1", "s2", "s3"), 60.0), asks)
    made.set_policies(
        bandwidth_policy("T1", get_bw=30), bandwidth_policy("T2", get_bw=20), bandwidth_policy("T3", get_bw=10)
    )
    return made


def answer(*rows, controller="c", term=1, at=0.0, valid=3.0, methods=(GET,)):
    return ControllerRates(controller, term, at, valid, methods, rows)


def near(**expected):
    return pytest.approx(expected, rel=0.02)


@pytest.fixture(scope="module")
def algorithm():
    spec = importlib.util.spec_from_file_location("bandwidth_differentiation", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BandwidthDifferentiation()


def play(made, algorithm, seconds):
    """Each second the controller gets the report, and its rates hold in the next round, as in a live cluster."""
    moved = {}
    for _ in range(seconds):
        moved = made.run(1)
        view = BandwidthView.from_report(report_of(made.last))
        rates = tuple(algorithm.compute_assignments(view.add_to(Observation(made.now))))
        made.allocator.controller_rates.feed(answer(*rates, at=made.now), made.now)
    return moved


def test_rates_replace_floors_and_flows_without_one_are_free():
    made = cluster(T1=dict(EVERYWHERE), T2=dict(EVERYWHERE))
    made.run(3)
    rows = (Rate("p1", "T1", GET, 3 * MB), Rate("p2", "T1", GET, 2 * MB), Rate("p1", "nobody", GET, 1.0))
    made.allocator.controller_rates.feed(answer(*rows, valid=30.0), made.now)
    moved = made.run(3)
    assert moved["T1"] == pytest.approx(5)
    assert moved["T2"] == pytest.approx(85, rel=0.02)
    report = report_of(made.last)
    assert report.controllers == {GET: "c"}
    flows = {one["account"]: one for one in report.flows if one["active"]}
    assert flows["T1"]["share"] == 5 * MB
    assert flows["T1"]["short"] == 25 * MB
    assert (flows["T2"]["share"], flows["T2"]["short"]) == (-1.0, 0.0)


def test_a_rate_is_never_so_small_that_clients_hang_up():
    made = cluster(T1=dict(EVERYWHERE))
    made.run(1)
    made.allocator.controller_rates.feed(answer(Rate("p1", "T1", GET, 0.0)), made.now)
    made.run(1)
    (share,) = [one for one in shares_of(made.last)["p1"].rows if one.side == PROXY]
    assert share.rate == share.ceiling == 4096


def test_rates_that_are_not_renewed_end_and_floors_hold_again():
    made = cluster(T1=dict(EVERYWHERE), T2=dict(EVERYWHERE))
    made.run(2)
    made.allocator.controller_rates.feed(answer(Rate("p1", "T1", GET, MB), Rate("p2", "T1", GET, MB)), made.now)
    assert made.run(2)["T1"] == pytest.approx(2)
    assert made.run(5) == near(T1=50, T2=40)
    assert report_of(made.last).controllers == {}


def test_the_newest_answer_of_the_newest_owner_holds():
    table = ControllerRateTable()
    table.feed(answer(term=2, at=5.0), 0.0)
    for older in (answer(term=1, at=9.0), answer(term=2, at=4.0)):
        table.feed(older, 0.0)
        assert table.current(GET, 1.0) == answer(term=2, at=5.0)
    assert table.current("PUT", 1.0) is None
    table.feed(answer(controller="b"), 0.0)
    assert table.current(GET, 1.0).controller == "b"
    assert table.current(GET, 3.0) is None


def test_algorithm_1_keeps_promises_and_shares_what_is_spare(algorithm):
    made = cluster(T1=dict(EVERYWHERE), T2=dict(EVERYWHERE), T3=dict(EVERYWHERE))
    assert play(made, algorithm, 8) == near(T1=40, T2=30, T3=20)
    assert report_of(made.last).controllers == {GET: "c"}


def test_algorithm_1_moves_a_floor_to_where_there_is_room(algorithm):
    made = cluster(T1=dict(EVERYWHERE), T2={"p1": math.inf})
    made.set_policies(bandwidth_policy("T1", get_bw=45), bandwidth_policy("T2", get_bw=40))
    moved = play(made, algorithm, 12)
    assert moved["T1"] >= 44
    assert moved["T2"] >= 39


def test_algorithm_1_is_short():
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(lines) < 80
