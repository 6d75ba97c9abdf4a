# SPDX-License-Identifier: Apache-2.0
"""What all plots share: fonts, grid, axes of sizes and times, names beside lines, and writing files."""

import io

import matplotlib

matplotlib.use("svg")  # No display, and no window system to look for.

from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: E402

import quantities  # noqa: E402
import systems  # noqa: E402

STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "svg.fonttype": "none",  # Text stays text: it can be searched, and the page's own font and colours apply.
    "svg.hashsalt": "wherry",  # The same results give the same file.
    "axes.edgecolor": systems.INK[0],
    "axes.labelcolor": systems.INK[0],
    "axes.titlecolor": systems.INK[0],
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "grid.color": systems.FAINT[0],
    "grid.linewidth": 0.8,
    "text.color": systems.INK[0],
    "xtick.color": systems.INK[0],
    "ytick.color": systems.INK[0],
    "figure.facecolor": systems.PAPER[0],
    "savefig.facecolor": systems.PAPER[0],
}


def styled():
    """Everything is drawn and saved inside `with styled():`."""
    return matplotlib.rc_context(STYLE)


def axes_at(drawing: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches from the upper left corner: names beside lines need to know their room."""
    total_width, total_height = drawing.get_size_inches()
    return drawing.add_axes(
        (left / total_width, 1 - (top + height) / total_height, width / total_width, height / total_height)
    )


def svg_text(drawing: Figure) -> str:
    text = io.StringIO()
    # No date: the same results give the same file.
    drawing.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def save(drawing: Figure, path) -> None:
    """Writes SVG or PNG, by the ending of the path."""
    with styled():
        if str(path).endswith(".svg"):
            path.write_text(svg_text(drawing))
        else:
            drawing.savefig(path, format="png", dpi=160)


def places_axis(axes: Axes, places: list[int], over: str) -> None:
    """x: message sizes or numbers of connections, one tick each, or every other one where there are many."""
    every = 1 + (len(places) - 1) // 12
    shown = places[::every]
    axes.set_xscale("log", base=2)
    axes.set_xticks(shown, [quantities.size(place) if over == "size" else f"{place:,}" for place in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(places[0] / 1.4, places[-1] * 1.4)


def quantity_axis(axis, metric: str) -> None:
    """A logarithmic axis with a label at each power of ten, and at 2 and 5 where it spans few of those."""
    axis.axes.set_yscale("log") if axis.axis_name == "y" else axis.axes.set_xscale("log")
    axis.set_major_locator(LogLocator(base=10))
    axis.set_major_formatter(FuncFormatter(lambda value, _: bare(quantities.quantity(value, metric))))
    axis.set_minor_formatter(NullFormatter())
    axis.axes.grid(axis=axis.axis_name, which="major")


def label_enough(axis) -> None:
    """After everything is drawn: three labels at least."""
    low, high = axis.get_view_interval()
    if high / low < 300:
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))


def bare(text: str) -> str:
    """A tick's figure without the zeros that three digits bring: "1.00 µs" is "1 µs"."""
    number, _, unit = text.partition(" ")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {unit}".strip()


def spread(wanted: list[float], low: float, high: float, gap: float) -> list[float]:
    """Moves ascending positions apart to at least `gap`, as little as possible, within [low, high] while they fit."""
    # Without the gaps due between them, positions need only not descend: neighbours that do share their mean.
    blocks: list[tuple[float, int]] = []
    for index, position in enumerate(wanted):
        mean, count = position - index * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, members = blocks.pop()
            mean, count = (before * members + mean * count) / (members + count), members + count
        blocks.append((mean, count))
    highest = max(low, high - (len(wanted) - 1) * gap)
    means = [mean for mean, count in blocks for _ in range(count)]
    return [min(max(mean, low), highest) + index * gap for index, mean in enumerate(means)]
