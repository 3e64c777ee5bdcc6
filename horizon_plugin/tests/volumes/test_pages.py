from sluice_dashboard.charts import TimeRange
from sluice_dashboard.volumes.pages import rate_texts, volume_plot

WANTED = TimeRange(100.0, 120.0, 10)
REFUSAL = {"error": {"code": 404, "title": "", "message": "nothing is kept of it", "problems": []}}


def volume(**changes):
    return {"id": "v", "path": "AUTH_x/v", "rates_in_force": {"read_bw": 2e6, "max_iops": 300.0}, **changes}


def history(*values):
    points = [[100 + 10 * number, value, value, value, None] for number, value in enumerate(values)]
    return {"unit": "bytes_per_second", "points": points}


def test_rates_have_the_unit_of_their_kind():
    assert rate_texts({"read_bw": 2e6, "max_iops": 300.0}) == [
        "reads and writes: at most 300/s",
        "reads: at most 2 MB/s",
    ]


def test_a_plot_has_gaps_and_the_limits_of_its_kind_alone(stub, client):
    stub.enqueue(200, volume()).enqueue(200, history(1.0, None)).enqueue(200, history(3.0, 4.0))
    plot = volume_plot(client, "v", "bandwidth", WANTED)
    assert [(one.label, one.points) for one in plot.series] == [
        ("reads", [(100, 1.0), (110, None)]),
        ("writes", [(100, 3.0), (110, 4.0)]),
    ]
    assert [(one.value, one.label) for one in plot.thresholds] == [(2e6, "limit of reads: 2 MB/s")]
    asked = "/metrics/VOLUME_READ_BW/history?target=AUTH_x%2Fv&from=100&to=120&step=10"
    assert stub.paths[1] == asked


def test_a_volume_of_which_nothing_is_kept_has_an_empty_plot(stub, client):
    stub.enqueue(200, volume(rates_in_force=None)).enqueue(404, REFUSAL)
    assert volume_plot(client, "v", "queue", WANTED).to_data()["series"][0]["points"] == []
    stub.enqueue(200, volume(path=None))
    assert volume_plot(client, "v", "queue", WANTED).series == []
