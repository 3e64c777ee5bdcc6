import json

import pytest
from benchmarks.bandwidth.row import Row
from benchmarks.bandwidth.storm import below
from benchmarks.harness.scale import Scale

PNG = b"\x89PNG\r\n\x1a\n"
RATES = {"AUTH_a": {10: 30e6, 11: 31e6}, "AUTH_b": {10: 20e6, 11: 19e6}}


@pytest.fixture
def axes(monkeypatch):
    """What was painted, when the picture is closed."""
    from matplotlib import pyplot

    found = []
    monkeypatch.setattr(pyplot, "close", lambda figure: found.append(figure.axes[0]))
    yield found
    monkeypatch.undo()
    pyplot.close("all")


def lines(axes, style):
    return [(one.get_ydata()[0], one.get_color()) for one in axes.lines if one.get_linestyle() == style]


def test_rates_are_lines_floors_dashed_and_what_is_expected_dotted_in_one_colour(tmp_path, axes):
    from benchmarks.bandwidth.plots import paint

    file = tmp_path / "a.png"
    paint(file, "title", RATES, {"AUTH_a": 25e6, "floor of each": 5e6}, {"AUTH_a": 30e6, "AUTH_b": 20e6})
    assert file.read_bytes().startswith(PNG)
    (painted,) = axes
    assert [(list(one.get_xdata()), list(one.get_ydata())) for one in painted.lines if one.get_linestyle() == "-"] == [
        ([0, 1], [30.0, 31.0]),
        ([0, 1], [20.0, 19.0]),
    ]
    assert lines(painted, "--") == [(25.0, "tab:blue"), (5.0, "black")]
    assert lines(painted, ":") == [(30.0, "tab:blue"), (20.0, "tab:orange")]
    assert [one.get_text() for one in painted.get_legend().get_texts()] == ["AUTH_a", "AUTH_b", "floor of each"]


class Loaded:
    def rates(self, first, last):
        return {at: rate for at, rate in {9: 1.0, 10: 30e6, 11: 31e6}.items() if first <= at <= last}


def test_a_row_keeps_picture_and_data_of_its_seconds(tmp_path, axes):
    row = Row(Scale(tmp_path), tmp_path / "out")
    row.keep("floors", "title", {"AUTH_a": Loaded()}, (10, 12), {"AUTH_a": 25e6}, copies={9: 1.0, 12: 2.0})
    assert (tmp_path / "out" / "floors.png").read_bytes().startswith(PNG)
    data = json.loads((tmp_path / "out" / "floors.json").read_text())
    assert data == {"AUTH_a": {"10": 30e6, "11": 31e6}, "copies": {"12": 2.0}}


def test_without_the_painter_the_data_are_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.bandwidth.row.importlib.util.find_spec", lambda name: None)
    Row(Scale(tmp_path), tmp_path).keep("floors", "title", {"AUTH_a": Loaded()}, (10, 12), {})
    assert [one.name for one in tmp_path.iterdir()] == ["floors.json"]
    assert "matplotlib is missing" in capsys.readouterr().err


def test_where_nothing_is_wanted_nothing_is_written(tmp_path):
    Row(Scale(tmp_path), None).keep("floors", "title", {"AUTH_a": Loaded()}, (10, 12), {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rates", "span", "expected"),
    [
        ([10, 10, 10, 10], 2, 0.0),
        ([10, 5, 10, 10], 2, 0.25),
        ([10, 5, 10, 10], 1, 0.5),
        ([10, 5, 5, 10], 2, 0.5),
        ([30, 5, 30], 2, 0.0),
        ([5], 2, 0.5),
    ],
)
def test_the_worst_span_below_a_floor_is_found(rates, span, expected):
    assert below(dict(enumerate(map(float, rates))), 10.0, span) == pytest.approx(expected)
