"""The arithmetic of ``csv_link``: where two measured lines cross."""

import pytest
from benchmarks.filters.csv_link import KEPT, break_even, figures, readings


def found(plain, *seconds):
    return {-1: (plain, 1000.0), **{kept: (one, 10.0 * kept) for kept, one in zip(KEPT, seconds, strict=True)}}


@pytest.mark.parametrize(
    ("seconds", "share"),
    [
        ((1.0, 0.9, 0.8, 0.6, 0.3, 0.2, 0.1), 0.0),
        ((1.2, 1.1, 0.9, 0.6, 0.3, 0.2, 0.1), 0.175),
        ((2.0, 2.0, 2.0, 2.0, 1.5, 1.0, 0.5), 0.9),
        ((2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0), 1.0),
    ],
)
def test_the_share_at_which_the_times_are_equal(seconds, share):
    assert break_even(found(1.0, *seconds)) == pytest.approx(share)


def test_figures_say_whether_they_reach_what_they_should():
    measured = found(1.0, 1.2, 1.1, 0.9, 0.6, 0.3, 0.2, 0.1)
    assert [one.reached for one in figures(measured, measured)] == [True, True, None]


def test_readings_are_of_the_size_that_was_asked_for():
    data = readings(3_000_000)
    assert 0.5 < len(data) / 3_000_000 < 1.5
    assert data.startswith(b"id,time,meter,kwh,level")
