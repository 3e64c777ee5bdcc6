"""Points of the history: packed, unpacked, and combined."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_metric_history.resolutions import FRACTIONS, RESOLUTIONS, Point, combine, invert

SECONDS, TENS, MINUTES = RESOLUTIONS
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def test_a_slot_that_was_never_written_is_a_gap():
    for resolution in RESOLUTIONS:
        assert list(resolution.unpack(bytes(3 * resolution.point_size))) == [None] * 3


@given(st.lists(st.one_of(FLOATS, st.just(math.nan)), max_size=5))
def test_values_of_seconds_come_back_exactly(values):
    raw = invert(struct.pack(f"<{len(values)}f", *values))
    found = [None if one is None else one.mean for one in SECONDS.unpack(raw)]
    assert found == [None if math.isnan(one) else one for one in values]


def test_a_summary_has_its_ends_exactly_and_mean_and_percentile_between_them():
    raw = invert(struct.pack("<ffHH", 10.0, 30.0, FRACTIONS // 2, FRACTIONS))
    (point,) = TENS.unpack(raw)
    assert (point.low, point.high, point.p95) == (10.0, 30.0, 30.0)
    assert point.mean == pytest.approx(20.0, rel=1e-4)


def test_a_flat_line_is_exact():
    (point,) = MINUTES.unpack(invert(struct.pack("<ffHH", 7.5, 7.5, 0, 0)))
    assert point == Point(7.5, 7.5, 7.5, 7.5)


def test_half_a_point_is_none():
    assert list(TENS.unpack(b"\xff" * 13)) == list(TENS.unpack(b"\xff" * 12))


def test_steps_put_together_keep_the_ends_and_leave_gaps_out():
    assert combine([None, Point(2.0, 1.0, 3.0, 3.0), Point(4.0, 0.5, 9.0, 8.0)]) == Point(3.0, 0.5, 9.0, None)
    assert combine([None, None]) is None


def test_what_is_kept_is_ten_minutes_six_hours_and_a_week():
    assert [(one.step, one.seconds) for one in RESOLUTIONS] == [(1, 600), (10, 6 * 3600), (60, 7 * 86_400)]
