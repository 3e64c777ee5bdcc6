/* Plots: <figure data-plot-url=…> (sluice_dashboard/_plot.html), whose URL answers the JSON of plots.py.
 *
 * What is null stays a gap.  Figures of one `data-plot-group` share range and cursor of their time axis.  The same
 * values are in a table, which is filled when it is opened.
 */
(function () {
  "use strict";

  // told apart by those who confuse red and green, too
  var COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#444444"];
  var PREFIXES = ["", "k", "M", "G", "T", "P"];
  var UNITS = { bytes_per_second: "B/s", bytes: "B", seconds: "s", percent: "%", requests_per_second: "/s", per_second: "/s",
    count: "", fraction: "", ratio: "" };
  var UNSCALED = ["seconds", "percent"];
  var DAY = 86400;
  var HEIGHT = 220;
  var AXIS = 80; // pixels left of the plot: the same for all, so that those of a group are aligned

  function format(value, unit) {
    if (value === null || value === undefined) { return "–"; }
    var power = 0;
    while (UNSCALED.indexOf(unit) < 0 && Math.abs(value) >= 1000 && power < PREFIXES.length - 1) { value /= 1000; power += 1; }
    var name = UNITS[unit] === undefined ? unit : UNITS[unit];
    return (Number(value.toPrecision(3)) + " " + PREFIXES[power] + name).trim();
  }

  function localTime(at) { return new Date(at * 1000).toLocaleString(); }

  function timeTicks(plot, ticks) {
    var long = plot.scales.x.max - plot.scales.x.min > DAY;
    var shown = long ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
      : { hour: "2-digit", minute: "2-digit", second: ticks[1] - ticks[0] < 60 ? "2-digit" : undefined };
    return ticks.map(function (at) { return new Date(at * 1000).toLocaleString([], shown); });
  }

  /* One column of times and one for each series: null is a gap, undefined a time that only others have. */
  function columns(series) {
    var known = {};
    series.forEach(function (one) { one.points.forEach(function (point) { known[point[0]] = true; }); });
    var times = Object.keys(known).map(Number).sort(function (a, b) { return a - b; });
    return [times].concat(series.map(function (one) {
      var values = new Map(one.points);
      return times.map(function (at) { return values.get(at); });
    }));
  }

  function stack(data) {
    var sums = data[0].map(function () { return 0; });
    return [data[0]].concat(data.slice(1).map(function (values) {
      return values.map(function (value, index) {
        if (value === null || value === undefined) { return value; }
        sums[index] += value;
        return sums[index];
      });
    }));
  }

  function drawLines(shown) {
    return function (plot) {
      var box = plot.bbox;
      var pen = plot.ctx;
      pen.save();
      pen.strokeStyle = "#888888";
      pen.beginPath();
      shown.marks.forEach(function (mark) {
        var x = Math.round(plot.valToPos(mark.at, "x", true));
        if (x >= box.left && x <= box.left + box.width) {
          pen.moveTo(x, box.top);
          pen.lineTo(x, box.top + box.height);
        }
      });
      pen.stroke();
      pen.setLineDash([6, 4]);
      pen.strokeStyle = "#b00020";
      pen.beginPath();
      shown.thresholds.forEach(function (one) {
        var y = Math.round(plot.valToPos(one.value, "y", true));
        pen.moveTo(box.left, y);
        pen.lineTo(box.left + box.width, y);
      });
      pen.stroke();
      pen.restore();
    };
  }

  function options(figure, shown, raw) {
    var unit = shown.series.length ? shown.series[0].unit : "";
    var levels = shown.thresholds.map(function (one) { return one.value; });
    return {
      width: figure.clientWidth,
      height: HEIGHT,
      cursor: { sync: figure.dataset.plotGroup ? { key: figure.dataset.plotGroup, scales: ["x", null] } : undefined },
      scales: {
        x: { range: function (plot, low, high) { return shown.end ? [shown.begin, shown.end] : [low, high]; } },
        y: {
          range: function (plot, low, high) {
            var top = Math.max.apply(null, [high || 0].concat(levels));
            return [Math.min(0, low || 0), top > 0 ? top * 1.05 : 1];
          }
        }
      },
      axes: [{ values: timeTicks }, {
        size: AXIS,
        values: function (plot, ticks) { return ticks.map(function (tick) { return format(tick, unit); }); }
      }],
      series: [{
        label: figure.querySelector("th").textContent,
        value: function (plot, at) { return at === null || at === undefined ? "–" : localTime(at); }
      }].concat(shown.series.map(function (one, index) {
        var colour = COLOURS[index % COLOURS.length];
        return {
          label: one.label,
          stroke: colour,
          fill: shown.stacked ? colour + "66" : undefined,
          width: 2,
          value: function (plot, value, number, at) {
            return at === null || at === undefined ? "–" : format(raw[number][at], one.unit);
          }
        };
      })),
      // of what is stacked, each colour fills the space down to the series below
      bands: shown.stacked ? shown.series.slice(1).map(function (one, index) { return { series: [index + 2, index + 1] }; }) : [],
      hooks: { draw: [drawLines(shown)] }
    };
  }

  function cell(row, kind, text) {
    var made = row.appendChild(document.createElement(kind));
    made.textContent = text;
    return made;
  }

  function fillTable(details, state) {
    if (!details.open || !state.raw) { return; }
    var table = details.querySelector("table");
    var head = table.tHead.rows[0];
    while (head.cells.length > 1) { head.deleteCell(1); }
    state.shown.series.forEach(function (one) { cell(head, "th", one.label).scope = "col"; });
    var body = document.createElement("tbody");
    state.raw[0].forEach(function (at, index) {
      var row = body.insertRow();
      cell(row, "th", localTime(at)).scope = "row";
      state.shown.series.forEach(function (one, number) { cell(row, "td", format(state.raw[number + 1][index], one.unit)); });
    });
    table.replaceChild(body, table.tBodies[0]);
  }

  function fillMarks(figure, shown) {
    var list = figure.querySelector("[data-plot-marks]");
    list.replaceChildren();
    shown.marks.forEach(function (mark) {
      cell(list, "li", localTime(mark.at) + " " + mark.text);
    });
    shown.thresholds.forEach(function (one) { cell(list, "li", one.label); });
    list.hidden = !list.children.length;
  }

  function say(figure, text) {
    var place = figure.querySelector("[data-plot-message]");
    place.textContent = text;
    place.hidden = !text;
  }

  function show(figure, state, shown) {
    var raw = columns(shown.series);
    var data = shown.stacked ? stack(raw) : raw;
    var shape = JSON.stringify([shown.series.map(function (one) { return [one.label, one.unit]; }), shown.stacked]);
    state.raw = raw;
    if (state.plot && state.shape === shape) {
      // the options refer to the first answer: it gets the new content
      Object.assign(state.shown, shown);
      state.rawShown.splice.apply(state.rawShown, [0, state.rawShown.length].concat(raw));
      state.plot.setData(data);
    } else {
      if (state.plot) { state.plot.destroy(); }
      state.shown = shown;
      state.shape = shape;
      state.rawShown = raw.slice();
      state.plot = new window.uPlot(
        options(figure, shown, state.rawShown), data, figure.querySelector("[data-plot-canvas]"));
    }
    say(figure, raw[0].length ? "" : figure.dataset.plotNothing);
    fillMarks(figure, shown);
    fillTable(figure.querySelector("[data-plot-table]"), state);
  }

  function begin(figure) {
    var state = { plot: null };
    figure.dataset.plotBegun = "true";
    var details = figure.querySelector("[data-plot-table]");
    details.addEventListener("toggle", function () { fillTable(details, state); });
    new ResizeObserver(function () {
      if (state.plot && figure.clientWidth) { state.plot.setSize({ width: figure.clientWidth, height: HEIGHT }); }
    }).observe(figure);
    window.sluice.poll({
      element: figure,
      url: figure.dataset.plotUrl,
      seconds: Number(figure.dataset.plotSeconds),
      now: true,
      done: function (response) {
        return response.json().then(function (shown) {
          if (response.ok) { show(figure, state, shown); } else { say(figure, shown.message); }
        });
      }
    });
  }

  function beginAll() {
    document.querySelectorAll("[data-plot-url]:not([data-plot-begun])").forEach(begin);
  }

  document.addEventListener("sluice:renewed", beginAll);
  beginAll();
})();
