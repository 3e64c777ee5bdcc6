import itertools
import json

import pytest
from benchmarks import paint
from benchmarks.bandwidth.plots import Course
from benchmarks.bandwidth.plots import paint as paint_course
from benchmarks.bandwidth.row import Row
from benchmarks.bandwidth.storm import below
from benchmarks.harness.distributions import Limit, paint_boxes, paint_shares
from benchmarks.harness.figures import Figure
from benchmarks.harness.plots import STYLES
from benchmarks.harness.scale import Scale

PNG = b"\x89PNG\r\n\x1a\n"
RATES = {"AUTH_a": {10: 30e6, 11: 31e6}, "AUTH_b": {10: 20e6, 11: 19e6}}
COURSE = Course("title", RATES, {"AUTH_a": 25e6, "floor of each": 5e6}, {"AUTH_b": 20e6}, {10.5: "a is killed"})


@pytest.fixture
def axes(monkeypatch):
    """The axes of the plot, when the picture is closed."""
    from matplotlib import pyplot

    found = []
    monkeypatch.setattr(pyplot, "close", lambda figure: found.extend(figure.axes))
    yield found
    monkeypatch.undo()
    pyplot.close("all")


def lines(axes, style):
    return [(one.get_ydata()[0], one.get_color()) for one in axes.lines if one.get_linestyle() == style]


def legend(axes):
    return [one.get_text() for one in axes.get_legend().get_texts()]


def grey(colour):
    """The brightness of a colour in a print without colours, 0 to 1."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_lines_are_told_apart_in_grey_by_brightness_and_marker():
    shades = sorted(grey(one.colour) for one in STYLES)
    assert min(later - earlier for earlier, later in itertools.pairwise(shades)) > 0.05
    assert all(abs(grey(a.colour) - grey(b.colour)) > 0.2 for a, b in itertools.pairwise(STYLES))
    assert len({one.marker for one in STYLES}) == len(STYLES)


def test_a_course_has_rates_floors_expectations_and_marks_all_named(tmp_path, axes):
    file = tmp_path / "a.png"
    paint_course(file, COURSE)
    assert file.read_bytes().startswith(PNG)
    (painted,) = axes
    assert [(list(one.get_xdata()), list(one.get_ydata())) for one in painted.lines if one.get_linestyle() == "-"] == [
        ([0, 1], [30.0, 31.0]),
        ([0, 1], [20.0, 19.0]),
    ]
    first, second = (one.colour for one in STYLES[:2])
    assert lines(painted, "--") == [(25.0, first), (5.0, "black")]
    assert lines(painted, ":") == [(20.0, second)]
    assert legend(painted) == ["a", "a: floor 25 MB/s", "b", "b: expected 20 MB/s", "floor of each 5 MB/s"]
    assert [(one.get_text(), one.xy[0]) for one in painted.texts] == [("a is killed", 0.5)]
    assert painted.get_ylabel() == "MB/s in each second"


def test_a_legend_lies_over_no_curve(tmp_path, axes):
    paint_course(tmp_path / "a.png", COURSE)
    (painted,) = axes
    assert painted.get_legend().get_window_extent().x0 >= painted.get_window_extent().x1


def test_a_distribution_has_its_median_its_p99_and_its_target_in_the_legend(tmp_path, axes):
    values = [number / 100 for number in range(1, 101)]
    paint_shares(tmp_path / "a.png", "title", "time, s", {"one": values}, Limit(1.5, "target ≤ 1.5 s"))
    (painted,) = axes
    assert legend(painted) == ["one\n100 values, p50 0.5, p99 0.99", "target ≤ 1.5 s"]
    (curve,) = (one for one in painted.lines if one.get_label().startswith("one"))
    assert (curve.get_xdata()[49], curve.get_ydata()[49]) == (0.5, 50.0)


def test_boxes_have_their_values_and_medians(tmp_path, axes):
    paint_boxes(tmp_path / "a.png", "title", "× plain", {"a": [1.0, 1.1, 1.3], "b": [0.9, 1.0]}, Limit(1.03, "target"))
    (painted,) = axes
    assert legend(painted) == ["a\n3 pairs, median 1.100", "b\n2 pairs, median 0.950", "target"]


def test_pictures_are_painted_from_the_details_of_rows_and_those_without_are_left(tmp_path):
    cycles = [{"sluice": 5.2, "plain": 5.0, "twin": 5.1}] * 3
    part = {"name": "all", "target": 9, "began": 0.0, "ended": 2.0}
    sample = {"at": 1.0, "used": 5, "hits": 1, "misses": 0}
    locality = {"repeats": 0.9}
    misses = {"locality": locality, "percents": [1.0, 10.0], "byte_misses": {"lru": [50.0, 1.0], "fifo": [60.0, 2.0]}}
    graph = {"phases": [{"limit": 0, "rates": [1.0, 2.0]}], "vertices": 5, "queries": 500}
    details = {
        "overhead GET": {"cycles_ms": cycles},
        "idle GET 10 KB proxy 300": {"cycles_ms": cycles},
        "idle GET 10 KB proxy 100000": {"cycles_ms": cycles},
        "reaction": {"times": [0.5, 0.9], "after": [0.1, 0.2]},
        "rollout from POST": {"times_ms": [20.0, 30.0]},
        "motif byte misses": misses,
        "motif graph": graph,
        "motif trace": {
            "parts": [{**part, "reads": [[0.5, 3.0]]}],
            "samples": [sample, {**sample, "at": 2.0, "hits": 3}],
        },
        "motif mount trace": {"parts": [part], "samples": [sample]},
    }
    figures = [Figure(name, "", 1.0, "", details=one) for name, one in details.items()]
    painted = paint.paint_figures(tmp_path, figures)
    assert painted == [name for name in paint.PAINTERS if name != "motif-mount-trace"]
    assert sorted(file.stem for file in tmp_path.iterdir()) == sorted(painted)
    assert paint.paint_figures(tmp_path / "none", []) == []


def test_courses_are_painted_from_their_data(tmp_path):
    (tmp_path / "floors.json").write_text(json.dumps(COURSE.to_data()))
    assert paint.paint_courses(tmp_path) == ["floors"]
    assert (tmp_path / "floors.png").read_bytes().startswith(PNG)
    assert Course.from_data(json.loads((tmp_path / "floors.json").read_text())) == COURSE


class Loaded:
    def rates(self, first, last):
        return {at: rate for at, rate in {9: 1.0, 10: 30e6, 11: 31e6}.items() if first <= at <= last}


def test_a_row_keeps_picture_and_data_of_its_seconds(tmp_path, axes):
    row = Row(Scale(tmp_path), tmp_path / "out")
    happened = {"copies": {9: 1.0, 12: 2.0}, "marks": {11.0: "it joins"}}
    row.keep("floors", "title", {"AUTH_a": Loaded()}, (10, 12), {"AUTH_a": 25e6}, **happened)
    assert (tmp_path / "out" / "floors.png").read_bytes().startswith(PNG)
    data = json.loads((tmp_path / "out" / "floors.json").read_text())
    rates = {"AUTH_a": {"10": 30e6, "11": 31e6}, "replication": {"12": 2.0}}
    kept = {"title": "title", "rates": rates, "floors": {"AUTH_a": 25e6}, "expected": {}, "marks": {"11.0": "it joins"}}
    assert data == kept


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
