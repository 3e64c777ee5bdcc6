import pytest
from benchmarks.harness.figures import Figure, at_most, table
from benchmarks.harness.pairs import INSTANCES, compare, quantile, rotated
from hypothesis import given
from hypothesis import strategies as st

positive = st.floats(0.001, 1000.0)
cycles = st.lists(st.fixed_dictionaries(dict.fromkeys(INSTANCES, positive)), min_size=1, max_size=20)


def cycle(sluice, plain, twin):
    return {"sluice": sluice, "plain": plain, "twin": twin}


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        ([5.0], 0.99, 5.0),
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        (list(range(1, 101)), 0.9, 90),
        (list(range(1, 101)), 0.99, 99),
        (list(range(1, 31)), 0.99, 30),
        ([1.0, 2.0], 0.0, 1.0),
    ],
)
def test_a_quantile_is_a_value_that_was_measured(values, fraction, expected):
    assert quantile(values, fraction) == expected


def test_the_machine_getting_slower_between_cycles_does_not_change_the_ratio():
    compared = compare([cycle(1.1 * speed, speed, speed) for speed in (1.0, 2.0, 8.0)])
    assert compared.ratio == pytest.approx(1.1)
    assert compared.twins == pytest.approx(1.0)
    assert not compared.in_band()


def test_one_disturbed_block_does_not_change_the_ratio():
    compared = compare([cycle(1.0, 1.0, 1.0)] * 9 + [cycle(50.0, 1.0, 1.0)])
    assert compared.ratio == 1.0


def test_the_band_is_what_two_plain_instances_show():
    compared = compare([cycle(1.04, 1.0, 1.05)] * 5 + [cycle(1.04, 1.05, 1.0)] * 5)
    assert compared.band == pytest.approx(1.05)
    assert compared.in_band()
    assert not compare([cycle(1.2, 1.0, 1.05)] * 5 + [cycle(1.2, 1.05, 1.0)] * 5).in_band()
    assert compared.band_text() == "≤ 1.050 (band)"


@pytest.mark.parametrize(
    ("sluice", "more_is_better", "expected"),
    [(0.5, False, True), (2.0, False, False), (0.5, True, False), (2.0, True, True)],
)
def test_better_than_the_band_is_not_worse(sluice, more_is_better, expected):
    assert compare([cycle(sluice, 1.0, 1.01)]).in_band(more_is_better) is expected


@given(cycles)
def test_swapping_the_two_plain_instances_changes_neither_ratio_nor_band(measured):
    swapped = [cycle(one["sluice"], one["twin"], one["plain"]) for one in measured]
    assert compare(swapped).ratio == pytest.approx(compare(measured).ratio)
    assert compare(swapped).band == pytest.approx(compare(measured).band)


def test_six_cycles_have_six_orders():
    orders = [rotated(number) for number in range(6)]
    assert len(set(orders)) == 6
    for place in range(3):
        assert sorted(order[place] for order in orders) == sorted([*INSTANCES, *INSTANCES])
    assert rotated(6) == orders[0]


def test_a_figure_at_its_limit_is_reached_and_above_it_is_not():
    assert at_most("a", "b", 1.03, 1.03).reached is True
    assert at_most("a", "b", 1.0301, 1.03).reached is False


def test_a_figure_comes_back_from_its_data():
    figure = at_most("name", "what", 1.5, 2.0, "ms", "beside", digits=1, more=[1, 2])
    assert Figure.from_data(figure.to_data()) == figure
    assert (figure.measured, figure.target) == ("1.5 ms", "≤ 2 ms")


def test_the_table_says_yes_no_or_nothing():
    figures = [at_most("a", "b", 1, 2), at_most("c", "d", 3, 2), Figure("e", "f", 4, "4 ms")]
    lines = table(figures).splitlines()
    assert [line.split()[5 if line[0] != "e" else 4] for line in lines[2:]] == ["yes", "NO", "-"]
    assert len({line.index(word) for line, word in zip(lines[2:], ("yes", "NO", "-"), strict=True)}) == 1
