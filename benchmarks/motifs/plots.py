"""Plots of motifs: missed bytes by the size of a space, queries under one limit after the other, replays of traces."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.harness.plots import STYLES, drawn, legend, line, mark


def paint_misses(file: Path, misses: Mapping[str, Mapping[str, Sequence[float]]], percents: Sequence[float]) -> None:
    """Write a PNG with a panel for each locality.

    :param misses: name of a locality → policy → percent of the opened bytes that were missed, for each of
        ``percents``
    :param percents: of the trace's bytes
    """
    title = "Bytes missed by each replacement policy, by the size of the space"
    with drawn(file, title, panels=len(misses), height=3.3) as panels:
        for axes, (name, curves) in zip(panels, misses.items(), strict=True):
            for number, (policy, curve) in enumerate(curves.items()):
                line(axes, number, list(percents), list(curve), policy)
            axes.set(ylabel="bytes missed, %", ylim=(0, None), xscale="log")
            axes.set_title(name, fontsize="small")
            axes.grid(alpha=0.3)
            legend(axes)
        _plain_numbers(panels[-1].xaxis)
        panels[-1].set(xlabel="size of the space, % of all bytes")


def paint_rates(file: Path, title: str, phases: Mapping[str, Sequence[float]], window: int) -> None:
    """Write a PNG: queries per second, and the median of each phase.

    :param phases: the limit → queries per second, of ``window`` queries each
    """
    with drawn(file, title) as (axes,):
        begin = 0
        for number, (name, rates) in enumerate(phases.items()):
            style = STYLES[number]
            at = [window * (begin + place + 1) for place in range(len(rates))]
            axes.plot(at, rates, linewidth=0.8, color=style.colour)
            middle = statistics.median(rates)
            ends = [window * begin, window * (begin + len(rates))]
            label = f"limit {name}: median {middle:.0f}/s"
            axes.plot(ends, [middle, middle], color=style.colour, marker=style.marker, linewidth=2.5, label=label)
            mark(axes, {window * begin: f"limit {name}"})
            begin += len(rates)
        axes.set(xlabel="queries", ylabel=f"queries per second, of {window} each", yscale="log")
        axes.grid(alpha=0.3)
        _plain_numbers(axes.yaxis)
        legend(axes)


def paint_replay(
    file: Path,
    title: str,
    reads: Sequence[tuple[float, float]],
    held: Sequence[tuple[float, int, int, int]],
    marks: Mapping[float, str],
    targets: Sequence[tuple[float, float, int]],
) -> None:
    """Write a PNG: times of reads, stored bytes, and hits, over time.

    :param reads: begin and duration of each, in seconds
    :param held: seconds, bytes, and hits and misses until then
    :param marks: begin and name of each target
    :param targets: begin and end of each target size, and its bytes
    """
    with drawn(file, title, panels=3, height=2.9) as panels:
        times, sizes, hits = panels
        dark = STYLES[0].colour
        times.plot([at for at, _ in reads], [1000 * taken for _, taken in reads], ".", markersize=2, color=dark)
        spans = list(pairwise([*marks, max(at for at, *_ in held)]))
        middles = [(span, [taken for at, taken in reads if span[0] <= at < span[1]]) for span in spans]
        for number, (span, taken) in enumerate(one for one in middles if one[1]):
            level = 1000 * statistics.median(taken)
            label = "median under each target" if number == 0 else None
            times.plot(span, [level, level], color=STYLES[1].colour, linewidth=2.5, label=label)
        times.set(ylabel="a read, ms", yscale="log")
        _plain_numbers(times.yaxis)
        sizes.plot([one[0] for one in held], [one[1] / 1e6 for one in held], color=dark, label="stored")
        most = max(one[1] for one in held)
        lower = [one for one in targets if one[2] <= most]  # a target above all bytes limits nothing
        for number, (begin, end, size) in enumerate(lower):
            label = "target size" if number == 0 else None
            sizes.plot([begin, end], [size / 1e6] * 2, color=STYLES[1].colour, linestyle="--", label=label)
        sizes.set(ylabel="MB stored", ylim=(0, None))
        hits.plot(*_hit_rates(held), marker="o", markersize=3, color=dark, label="hits")
        hits.set(ylabel="hits of the opens, %", xlabel="time, s", ylim=(-2, 102))
        for axes in panels:
            mark(axes, marks, named=axes is times)
            axes.grid(alpha=0.3)
            legend(axes)


def _plain_numbers(axis: Any) -> None:
    """Write 0.1 and 1000 on a logarithmic axis, not powers of ten."""
    axis.set_major_formatter("{x:g}")


def _hit_rates(held: Sequence[tuple[float, int, int, int]]) -> tuple[list[float], list[float]]:
    """Seconds, and percent of hits among the opens since the previous sample, where there were any."""
    at, rates = [], []
    for (_, _, hits, misses), (now, _, more_hits, more_misses) in pairwise(held):
        opens = more_hits + more_misses - hits - misses
        if opens > 0:
            at.append(now)
            rates.append(100 * (more_hits - hits) / opens)
    return at, rates
