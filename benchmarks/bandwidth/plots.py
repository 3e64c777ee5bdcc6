"""Bandwidth over time, a line for each tenant and a thin dashed one for its floor, as in the papers' figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_COLOURS: Final = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown", "tab:pink", "tab:gray")


def paint(
    file: Path,
    title: str,
    rates: Mapping[str, Mapping[int, float]],
    floors: Mapping[str, float],
    expected: Mapping[str, float] | None = None,
) -> None:
    """Write a PNG.

    :param rates: tenant → second → bytes per second
    :param floors: tenant → bytes per second, dashed in its colour; one of nobody who is in ``rates`` is of all, black
    :param expected: tenant → bytes per second, dotted: what it should get with its part of what is spare
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    begin = min((min(one) for one in rates.values() if one), default=0)
    for (name, one), colour in zip(rates.items(), _COLOURS, strict=False):
        seconds = sorted(one)
        axes.plot([at - begin for at in seconds], [one[at] / 1e6 for at in seconds], color=colour, label=name)
        if name in floors:
            axes.axhline(floors[name] / 1e6, color=colour, linestyle="--", linewidth=0.8)
        if expected is not None and name in expected:
            axes.axhline(expected[name] / 1e6, color=colour, linestyle=":", linewidth=0.8)
    for name, value in floors.items():
        if name not in rates:
            axes.axhline(value / 1e6, color="black", linestyle="--", linewidth=0.8, label=name)
    axes.set(title=title, xlabel="seconds", ylabel="MB/s", ylim=(0, None))
    axes.legend(loc="upper right", fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
