"""Distributions: the share of measured values up to x, and box plots for comparison."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.pairs import quantile
from benchmarks.harness.plots import STYLES, drawn, legend, line


@dataclass(frozen=True, slots=True)
class Limit:
    """A target on the axis of the measured values."""

    value: float
    label: str


def paint_shares(
    file: Path, title: str, what: str, samples: Mapping[str, Sequence[float]], limit: Limit | None = None
) -> None:
    """Write a PNG: for each of ``samples`` the percentage of its values up to x, its median and its p99 in the legend.

    :param what: the label of the x axis, with its unit
    """
    with drawn(file, title) as (axes,):
        for number, (name, values) in enumerate(samples.items()):
            ordered = sorted(values)
            percent = [100 * (place + 1) / len(ordered) for place in range(len(ordered))]
            middle, high = quantile(ordered, 0.5), quantile(ordered, 0.99)
            label = f"{name}\n{len(ordered)} values, p50 {middle:.3g}, p99 {high:.3g}"
            line(axes, number, ordered, percent, label, drawstyle="steps-post")
        if limit is not None:
            axes.axvline(limit.value, color="black", linestyle="--", linewidth=1.0, label=limit.label)
        axes.set(xlabel=what, ylabel="values up to x, %", ylim=(0, 101))
        axes.grid(alpha=0.3)
        legend(axes)


def paint_boxes(
    file: Path, title: str, what: str, samples: Mapping[str, Sequence[float]], limit: Limit | None = None
) -> None:
    """Write a PNG: a box for each of ``samples`` (quartiles, median, whiskers from 5 to 95 %), and its values.

    :param what: the label of the x axis, with its unit
    """
    with drawn(file, title, height=1.6 + 0.55 * len(samples)) as (axes,):
        names = list(samples)
        places = list(range(len(names), 0, -1))  # the first above the others
        axes.boxplot(
            [list(samples[name]) for name in names],
            positions=places,
            orientation="horizontal",
            whis=(5, 95),
            showfliers=False,
            widths=0.55,
            medianprops={"color": "black", "linewidth": 2},
        )
        for number, (name, place) in enumerate(zip(names, places, strict=True)):
            values, style = samples[name], STYLES[number % len(STYLES)]
            heights = [place + 0.36 * ((at * 7 % 11) / 11 - 0.5) for at in range(len(values))]  # so none hides another
            label = f"{name}\n{len(values)} pairs, median {statistics.median(values):.3f}"
            axes.plot(values, heights, style.marker, color=style.colour, markersize=3, alpha=0.7, label=label)
        if limit is not None:
            axes.axvline(limit.value, color="black", linestyle="--", linewidth=1.0, label=limit.label)
        axes.axvline(1.0, color="black", linewidth=0.6)
        axes.set_yticks(places, names)
        axes.set(xlabel=what, ylim=(0.4, len(names) + 0.6))
        axes.grid(axis="x", alpha=0.3)
        legend(axes)
