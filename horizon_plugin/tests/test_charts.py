import json

import pytest

from sluice_client import ApiError
from sluice_dashboard.charts import Mark, Plot, Series, TimeRange, fetch_history, quantity

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("query", "begin", "end", "step"),
    [
        ({}, NOW - 600, NOW, 1),
        ({"last": "3600"}, NOW - 3600, NOW, 10),
        ({"last": "3600", "step": "60"}, NOW - 3600, NOW, 60),
        ({"last": "604800", "step": "1"}, NOW - 604800, NOW, 3600),
        ({"from": "1000", "to": "1300"}, 1000, 1300, 1),
        ({"from": "2000", "to": "1000"}, 400, 1000, 1),
        ({"last": "nan", "step": "<script>"}, NOW - 600, NOW, 1),
    ],
)
def test_a_url_says_the_range_and_the_step_is_never_too_fine(query, begin, end, step):
    assert TimeRange.read(query, NOW) == TimeRange(begin, end, step)


def test_gaps_are_null_in_json_and_empty_in_csv():
    plot = Plot([Series("in", "bytes", [(0.0, 1.0), (10.0, None)]), Series("out", "bytes", [(10.0, 2e9)])])
    assert json.loads(json.dumps(plot.to_data()))["series"][0]["points"] == [[0.0, 1.0], [10.0, None]]
    assert plot.to_csv().splitlines() == [
        "time,in (bytes),out (bytes)",
        "1970-01-01T00:00:00+00:00,1,",
        "1970-01-01T00:00:10+00:00,,2e+09",
    ]


def test_a_name_that_a_spreadsheet_would_calculate_is_text():
    assert Plot([Series("=1+1", "bytes", [(0.0, 1.0)])]).to_csv().startswith("time,'=1+1 (bytes)")


def test_marks_travel_with_their_words():
    assert Plot([], [Mark(5.0, "set")]).to_data()["marks"] == [{"at": 5.0, "text": "set"}]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "bytes", "–"),
        (0.0, "bytes", "0 B"),
        (1_234_567.0, "bytes_per_second", "1.23 MB/s"),
        (999.4, "requests", "999"),
        (-2_500.0, "bytes", "-2.5 kB"),
    ],
)
def test_a_value_is_shown_with_three_digits_and_its_unit(value, unit, text):
    assert quantity(value, unit) == text


class Refusing:
    """A client whose calls are refused with a status."""

    def __init__(self, status):
        self.status = status

    def get(self, path, **query):
        raise ApiError(self.status, "refused")


@pytest.mark.parametrize("status", [403, 404])
def test_a_metric_without_a_history_has_no_points(status):
    assert fetch_history(Refusing(status), "PUTS_SEC", "acme", TimeRange(0, 600, 1)) == []


def test_an_api_that_fails_is_no_metric_without_a_history():
    with pytest.raises(ApiError, match="refused"):
        fetch_history(Refusing(503), "PUTS_SEC", "acme", TimeRange(0, 600, 1))
