# SPDX-License-Identifier: Apache-2.0
"""Times of many systems side by side: a dot for the median, marks for the tail.

A time has no bar: on a logarithmic axis a bar's length would say nothing.
"""

from matplotlib.figure import Figure

import canvas
import systems
from results import Row

WIDTH, ROW_HEIGHT = 6.4, 0.225  # inches
LEFT, TOP, BOTTOM, RIGHT = 1.45, 0.75, 0.35, 0.35


def draw(title: str, shares: dict[str, dict[str, Row]], metric: str) -> Figure:
    """`shares` holds for "p50", "p99", ... one row of each system. Systems stand in the order of their median."""
    medians = shares["p50"]
    order = sorted(medians, key=lambda system: medians[system].median)
    height = ROW_HEIGHT * (len(order) + 0.6)
    with canvas.styled():
        figure = Figure(figsize=(LEFT + WIDTH + RIGHT, TOP + height + BOTTOM))
        axes = canvas.axes_at(figure, LEFT, TOP, WIDTH, height)
        axes.set_title(title, pad=24, x=0)
        axes.set_ylim(len(order) - 0.2, -0.8)
        axes.set_yticks(range(len(order)), [systems.short(system) for system in order])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        canvas.quantity_axis(axes.xaxis, metric)
        for place, system in enumerate(order):
            draw_system(axes, place, system, {share: rows[system] for share, rows in shares.items() if system in rows})
            axes.get_yticklabels()[place].set(**systems.lettering(system))
        canvas.label_enough(axes.xaxis)
        explain(axes, [share for share, rows in shares.items() if rows])
    return figure


MARKS = {
    "p50": {"marker": "o", "markersize": 7, "markeredgewidth": 0},
    "p99": {"marker": "|", "markersize": 9, "markeredgewidth": 1.8},
    "max": {"marker": "|", "markersize": 9, "markeredgewidth": 1.8},
    "p99.9": {"marker": "o", "markersize": 5, "markeredgewidth": 1.2, "markerfacecolor": systems.PAPER[0]},
}


def draw_system(axes, place: int, system: str, rows: dict[str, Row]) -> None:
    look = systems.look(system)
    ends = [row.median for row in rows.values()]
    axes.plot([min(ends), max(ends)], [place, place], color=look.colour, linewidth=look.width * 0.7, zorder=look.layer)
    for share, row in rows.items():
        axes.plot([row.median], [place], color=look.colour, linestyle="none", zorder=look.layer + 1, **MARKS[share])


def explain(axes, shares: list[str]) -> None:
    """What the marks mean, above the axes."""
    meaning = {
        "p50": "median",
        "p99": "99 of 100 are faster",
        "p99.9": "999 of 1000 are faster",
        "max": "slowest of a sample",
    }
    handles = [
        axes.plot([], [], color=systems.INK[0], linestyle="none", label=meaning[share], **MARKS[share])[0]
        for share in shares
    ]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.995),
        ncols=len(shares),
        frameon=False,
        fontsize=8.5,
        handletextpad=0.2,
        columnspacing=1.6,
        borderaxespad=0.2,
    )
