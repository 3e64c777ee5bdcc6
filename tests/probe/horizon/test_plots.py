"""Plots in a browser, whose JSON the tests define; the figure is that of the template."""

import json
import re

import pytest
from tests.support.browser.dashboard import TEMPLATES

BEGIN = 1_800_000_000


def plot(*series, **more):
    return {"series": list(series), "marks": [], "thresholds": [], "stacked": False, "begin": 0, "end": 0, **more}


def series(label, values, unit="bytes_per_second"):
    return {"label": label, "unit": unit, "points": [[BEGIN + 10 * n, value] for n, value in enumerate(values)]}


def figure_html(given):
    """The template of figures in English, without Django."""
    text = (TEMPLATES / "sluice_dashboard" / "_plot.html").read_text(encoding="utf-8")
    text = re.sub(r"{% load \w+ %}", "", text)
    text = re.sub(r'{% trans "([^"]*)" %}', r"\1", text)
    return re.sub(r"{{ (\w+) }}", lambda name: str(given[name[1]]), text)


@pytest.fixture
def figure(fake_dashboard):
    """Puts a figure into the overview whose URL returns the newest item of `answers`."""
    page = fake_dashboard.page
    fake_dashboard.login("admin")

    def show(name, answers, group="", seconds=0):
        page.route(
            re.compile(f"/plot-{name}$"),
            lambda route: route.fulfill(json=answers[-1], status=answers[-1].get("status", 200)),
        )
        given = {"url": f"/plot-{name}", "title": f"the {name}", "group": group, "seconds": seconds}
        html = figure_html(given)
        page.evaluate("html => document.querySelector('.sluice').insertAdjacentHTML('beforeend', html)", html)
        page.evaluate("document.dispatchEvent(new Event('sluice:renewed'))")
        shown = page.locator(f"[data-plot-url='/plot-{name}']")
        shown.locator("canvas").wait_for()
        return shown

    yield show
    assert fake_dashboard.findings.faults == []


def rows(shown):
    shown.locator("summary").click()
    shown.locator("[data-plot-table] tbody tr").first.wait_for()
    return shown.locator("[data-plot-table] tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map(c => c.textContent))"
    )


def test_values_are_in_a_table_with_units_and_gaps_are_dashes(figure, fake_dashboard):
    shown = figure("rates", [plot(series("<b>in</b>", [1500, None, 3e6]), series("out", [2, 0, 1234567]))])
    assert rows(shown) == [["1.5 kB/s", "2 B/s"], ["–", "0 B/s"], ["3 MB/s", "1.23 MB/s"]]
    assert shown.locator("thead th").all_inner_texts() == ["Time", "<b>in</b>", "out"]
    assert "<b>in</b>" in shown.locator(".u-legend").inner_text()
    assert fake_dashboard.violations() == []
    fake_dashboard.picture("plot")


def test_a_gap_is_not_drawn_as_a_line(figure, fake_dashboard):
    whole = figure("whole", [plot(series("in", [5] * 9))])
    torn = figure("torn", [plot(series("in", [5, 5, 5, None, None, None, 5, 5, 5]))])
    assert drawn(torn) < 0.8 * drawn(whole)


def drawn(shown):
    """Columns of pixels with the colour of the first series."""
    return shown.locator("canvas").evaluate(
        """canvas => {
          const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          const columns = new Set();
          for (let at = 0; at < data.length; at += 4)
            if (data[at] < 40 && data[at + 1] > 90 && data[at + 1] < 140 && data[at + 2] > 150)
              columns.add((at / 4) % canvas.width);
          return columns.size;
        }"""
    )


def test_marks_and_thresholds_are_said_in_words(figure):
    marks = [{"at": BEGIN + 5, "text": "set compression"}]
    shown = figure(
        "marks", [plot(series("in", [1, 2]), marks=marks, thresholds=[{"value": 3, "label": "GETS_SEC > 3"}])]
    )
    words = shown.locator("[data-plot-marks] li").all_inner_texts()
    assert words[0].endswith("set compression")
    assert words[1] == "GETS_SEC > 3"


def test_a_plot_follows_and_new_series_appear(figure):
    answers = [plot(series("in", [1, 2]))]
    shown = figure("live", answers, seconds=1)
    answers.append(plot(series("in", [1, 2, 3])))
    shown.locator("summary").click()
    shown.get_by_text("3 B/s").first.wait_for()
    answers.append(plot(series("in", [1]), series("out", [7])))
    shown.locator("thead").get_by_text("out").wait_for()


def test_plots_of_a_group_have_the_same_time_axis(figure, fake_dashboard):
    end = BEGIN + 600
    first = figure("first", [plot(series("in", [1, 2]), begin=BEGIN, end=end)], group="g")
    second = figure("second", [plot(series("load", [30] * 60, "percent"), begin=BEGIN, end=end)], group="g")
    boxes = [one.locator(".u-over").bounding_box() for one in (first, second)]
    assert boxes[0]["x"] == boxes[1]["x"]
    assert boxes[0]["width"] == boxes[1]["width"]
    first.locator(".u-over").hover(position={"x": 100, "y": 50})
    lines = [one.locator(".u-cursor-x").evaluate("line => line.style.transform") for one in (first, second)]
    assert lines[0] == lines[1] != ""
    fake_dashboard.picture("plots-of-a-group")


def test_a_plot_without_values_says_so(figure):
    shown = figure("empty", [plot()])
    assert shown.locator("[data-plot-message]").inner_text() == "Nothing was measured in this time."


def test_what_is_gone_is_said_in_the_words_of_the_api(figure, fake_dashboard):
    answers = [plot(series("in", [1, 2]))]
    shown = figure("gone", answers, seconds=1)
    answers.append({"message": "no volume `v1`", "status": 404})
    shown.get_by_text("no volume `v1`").wait_for()
    assert fake_dashboard.page.locator("[data-sluice-stale]").is_hidden()
    fake_dashboard.findings.clear()


def test_stacked_values_are_shown_as_they_are(figure):
    shown = figure("stacked", [plot(series("a", [1, 2]), series("b", [3, 4]), stacked=True)])
    assert json.dumps(rows(shown)) == json.dumps([["1 B/s", "3 B/s"], ["2 B/s", "4 B/s"]])
