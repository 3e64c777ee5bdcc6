"""Ranges of time: valid parameters, whole steps, and their resolution."""

import pytest

from sluice_controller.metric_history.selection import MOST_POINTS, Span, read_range
from sluice_core.errors import CallerError
from sluice_metric_history.resolutions import RESOLUTIONS

SECONDS, TENS, MINUTES = RESOLUTIONS
NOW = 1_200_000_000
HOUR, DAY = 3600, 86_400


def span(begin="", end="", step="", finest=1):
    return read_range(begin, end, step, NOW).span(NOW, finest)


def test_without_a_word_it_is_the_last_ten_minutes_by_seconds():
    assert span() == Span(1_200_000_000 - 600, 1_200_000_000, 1, SECONDS)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("-600", "-300"),
        ("1199999400", "1199999700"),
        ("2008-01-10T21:10:00Z", "2008-01-10T21:15:00"),
        ("2008-01-10T22:10:00+01:00", "2008-01-10T21:15:00.000Z"),
    ],
)
def test_a_time_may_be_said_in_several_ways(begin, end):
    found = span(begin, end, "10")
    assert (found.begin, found.end) == (1_199_999_400, 1_199_999_700)


@pytest.mark.parametrize(
    ("begin", "step", "resolution"),
    [
        ("-600", 1, SECONDS),
        ("-3600", 10, TENS),
        ("-21600", 60, MINUTES),
        ("-86400", 300, MINUTES),
        ("-604800", 600, MINUTES),
    ],
)
def test_a_step_suits_the_range(begin, step, resolution):
    found = span(begin)
    assert (found.step, found.resolution) == (step, resolution)
    assert (found.end - found.begin) / found.step <= MOST_POINTS


@pytest.mark.parametrize(
    ("step", "resolution"), [("1", SECONDS), ("7", SECONDS), ("30", TENS), ("60", MINUTES), ("120", MINUTES)]
)
def test_the_coarsest_resolution_of_which_a_step_is_a_multiple_is_read(step, resolution):
    assert span("-300", step=step).resolution is resolution


def test_a_range_is_widened_to_whole_steps_and_ends_with_one_that_is_over():
    found = span("-605", "-5", "60")
    assert (found.begin % 60, found.end) == (0, 1_200_000_000)
    assert found.begin <= NOW - 605
    assert span("-600", "4000000000", "60").end == 1_200_000_000


def test_a_metric_of_a_minute_has_no_finer_steps():
    assert span("-3600", step="10", finest=60).step == 60
    assert span("-3600", step="90", finest=60).step == 180
    assert span("-600", finest=10).step == 10


def test_what_is_older_than_a_week_is_not_asked_for():
    assert span("1000000000", step="3600").begin >= NOW - 7 * DAY - HOUR


@pytest.mark.parametrize(
    ("begin", "end", "step", "text"),
    [
        ("yesterday", "", "", "`from` is `yesterday`, expected a time such as"),
        ("", "-x", "", "`to` is `-x`, expected a time such as"),
        ("-10", "-20", "", "`from` is `-10`, expected a time before `to`, `-20`"),
        ("4000000000", "", "", "expected a time before `to`, `now`"),
        ("", "", "0", "`step` is `0`, expected seconds, 1, 10, 60 or a multiple"),
        ("", "", "1.5", "`step` is `1.5`"),
        ("", "", "-1", "`step` is `-1`"),
        ("", "", "9999999", "`step` is `9999999`"),
        ("-3600", "", "1", "`step` is `1`, expected a multiple of 10 for points older than 0.167 h"),
        ("-86400", "", "30", "`step` is `30`, expected a multiple of 60 for points older than 6 h"),
        ("-604800", "", "60", "more than 3000 points, expected 202 or more"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_does(begin, end, step, text):
    with pytest.raises(CallerError) as caught:
        span(begin, end, step)
    assert text in str(caught.value)
