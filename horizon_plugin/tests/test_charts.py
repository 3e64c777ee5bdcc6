import json

import pytest

from sluice_dashboard.charts import Mark, Plot, Series, TimeRange

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
