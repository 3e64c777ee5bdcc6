"""What all plots of benchmarks have in common: a title, units, lines that a print in grey tells apart, and a legend
beside the axes, so that it lies over no curve.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Style:
    """The distinction of a line: its colour, and its marker in a grey print."""

    colour: str
    marker: str


#: In the order in which lines take them; neighbours differ most in brightness.
STYLES: Final = (
    Style("#0b1e5b", "o"),
    Style("#e0952b", "s"),
    Style("#b3362b", "^"),
    Style("#8fd0e8", "D"),
    Style("#2f7fb8", "X"),
    Style("#7a0f4f", "v"),
    Style("#3aa66b", "P"),
)
#: Markers on a line, however many points it has.
_MARKERS: Final = 12
#: Inches; each further panel is as high as the first.
_WIDTH: Final = 10.0
_HEIGHT: Final = 4.2


@contextlib.contextmanager
def drawn(file: Path, title: str, panels: int = 1, height: float = _HEIGHT) -> Iterator[list[Any]]:
    """The axes of ``panels`` plots one below the other, on one x axis; the plot is written to ``file``, a PNG.

    :param height: inches of each panel
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    size = (_WIDTH, height * panels)
    figure, axes = pyplot.subplots(panels, 1, figsize=size, sharex=True, squeeze=False, layout="constrained")
    figure.suptitle(title, fontsize="medium")
    yield [row[0] for row in axes]
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def line(axes: Any, number: int, x: list[float], y: list[float], label: str, **more: Any) -> None:
    """Draw line ``number`` of a plot; its markers stand where those of other lines do not."""
    style = STYLES[number % len(STYLES)]
    every = max(1, len(x) // _MARKERS)
    first = number * every // len(STYLES)
    axes.plot(
        x, y, color=style.colour, marker=style.marker, markevery=(first, every), markersize=5, label=label, **more
    )


def mark(axes: Any, marks: Mapping[float, str], named: bool = True) -> None:
    """Write events above the axes; ``named`` off draws the lines alone, for all panels but the first."""
    for at, text in marks.items():
        axes.axvline(at, color="black", linestyle="-.", linewidth=0.9)
        if named:
            axes.annotate(text, (at, 1.01), xycoords=("data", "axes fraction"), va="bottom", fontsize="small")


def legend(axes: Any, title: str = "") -> None:
    """The legend, right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, fontsize="small", title=title or None)
