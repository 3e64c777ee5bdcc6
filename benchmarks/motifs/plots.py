"""Pictures: miss rates over the size of a space, and rates of queries under one limit after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def paint(file: Path, title: str, rates: Mapping[str, Sequence[float]], percents: Sequence[float]) -> None:
    """Write a PNG.

    :param rates: policy → percent of the opened bytes that were missed, for each of ``percents``
    :param percents: of the trace's bytes
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    for name, line in rates.items():
        axes.plot(percents, line, label=name, marker="o", markersize=3)
    axes.set(
        title=title, xlabel="size of the space, % of all bytes", ylabel="bytes missed, %", ylim=(0, None), xscale="log"
    )
    axes.legend(loc="upper right", fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def paint_rates(file: Path, rates: Sequence[float], window: int, phases: Sequence[tuple[str, int]]) -> None:
    """Write a PNG.

    :param rates: queries per second, of ``window`` queries each
    :param phases: what they are called, and how many rates are theirs
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    axes.plot([window * (place + 1) for place in range(len(rates))], rates, linewidth=0.8)
    begin = 0
    for name, count in phases:
        axes.axvline(window * begin, color="black", linestyle="--", linewidth=0.8)
        axes.text(window * (begin + count / 2), max(rates), f"limit {name}", ha="center", va="top")
        begin += count
    axes.set(xlabel="queries", ylabel="queries per second", yscale="log")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
