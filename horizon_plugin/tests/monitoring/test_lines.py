"""The lines of metrics in a plot."""

import pytest

from sluice_client.testing import Reply
from sluice_dashboard.charts import TimeRange
from sluice_dashboard.monitoring.choices import plot_metrics, plot_targets

WANTED = TimeRange(1000.0, 1600.0, 10)


def metric(name, unit):
    return Reply(body={"name": name, "unit": unit})


def points(*values):
    return Reply(body={"points": [[1000 + 10 * place, value, 0, 9, None] for place, value in enumerate(values)]})


def test_each_target_has_a_line_of_means_and_a_gap_stays_one(stub, client):
    stub.script = [metric("GET_BW", "bytes_per_second"), points(5.0, None), points(7.0, 8.0)]
    plot = plot_targets(client, "get_bw", {"AUTH_a": "acme", "": "all"}, WANTED)
    assert [(one.label, one.unit, list(one.points)) for one in plot.series] == [
        ("acme", "bytes_per_second", [(1000, 5.0), (1010, None)]),
        ("all", "bytes_per_second", [(1000, 7.0), (1010, 8.0)]),
    ]
    assert (plot.begin, plot.end) == (1000.0, 1600.0)
    assert "/metrics/GET_BW/history" in stub.requests[1].path


@pytest.mark.parametrize("status", [403, 404])
def test_a_target_of_which_nothing_is_kept_has_an_empty_line(stub, client, status):
    refusal = {"error": {"code": status, "title": "", "message": "nothing is kept", "problems": []}}
    stub.script = [metric("GETS_SEC", "per_second"), Reply(status, refusal)]
    (line,) = plot_targets(client, "GETS_SEC", {"acme": "acme"}, WANTED).series
    assert list(line.points) == []


def test_shares_are_drawn_in_percent_and_a_gap_stays_one(stub, client):
    stub.script = [metric("NODE_CPU", "fraction"), metric("NODE_MEMORY", "fraction"), points(0.5, None), points(0.25)]
    plot = plot_metrics(client, ["NODE_CPU", "NODE_MEMORY"], "node1", WANTED)
    assert [(one.unit, list(one.points)) for one in plot.series] == [
        ("percent", [(1000, 50.0), (1010, None)]),
        ("percent", [(1000, 25.0)]),
    ]
