"""Miss rates over the size of a space, a line for each replacement policy."""

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
