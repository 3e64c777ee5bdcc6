"""Pictures: miss rates over the size of a space, and rates of queries under one limit after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
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


def paint_replay(
    file: Path,
    reads: Sequence[tuple[float, float]],
    held: Sequence[tuple[float, int, int, int]],
    marks: Sequence[tuple[float, str]],
    times_label: str = "GET, ms",
) -> None:
    """Write a PNG: access times, bytes that are stored, and hits, over time.

    :param reads: when each began, in seconds, and how long it took
    :param held: seconds, bytes, and hits and misses until then
    :param marks: when a target began to hold, and what it is called
    :param times_label: what the times are of
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (times, sizes, hits) = pyplot.subplots(3, 1, figsize=(9, 9), sharex=True)
    times.plot([at for at, _ in reads], [1000 * taken for _, taken in reads], ".", markersize=2)
    times.set(ylabel=times_label, yscale="log")
    sizes.plot([one[0] for one in held], [one[1] / 1e6 for one in held])
    sizes.set(ylabel="MB stored", ylim=(0, None))
    hits.plot(*_hit_rates(held), marker="o", markersize=3)
    hits.set(ylabel="hits, %", xlabel="seconds", ylim=(-2, 102))
    for axes in (times, sizes, hits):
        for at, name in marks:
            axes.axvline(at, color="black", linestyle="--", linewidth=0.8)
            if axes is times:
                axes.annotate(name, (at, 1), xycoords=("data", "axes fraction"), va="bottom", fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def _hit_rates(held: Sequence[tuple[float, int, int, int]]) -> tuple[list[float], list[float]]:
    """Seconds, and percent of the opens since the moment before that were hits, where there were any."""
    at, rates = [], []
    for (_, _, hits, misses), (now, _, more_hits, more_misses) in pairwise(held):
        opens = more_hits + more_misses - hits - misses
        if opens > 0:
            at.append(now)
            rates.append(100 * (more_hits - hits) / opens)
    return at, rates
