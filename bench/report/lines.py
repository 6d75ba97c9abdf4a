# SPDX-License-Identifier: Apache-2.0
"""A plot over the message size, or over the number of connections: one line per system, its name at the line's end."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import canvas
import systems
from results import Row

WIDTH, HEIGHT = 7.2, 4.9  # of the axes, in inches
LEFT, TOP, BOTTOM, NAMES = 0.85, 0.45, 0.55, 1.75  # room around them
NAME_GAP = 12 / 72  # inches from one name to the next
X_LABELS = {"size": "message size", "senders": "connections"}
X_LABELS_OF = {
    "root": {"size": "size of a file", "senders": "workers"},
    "file": {"size": "bytes of a call", "senders": "processes"},
    "mailbox": {"size": "message size", "senders": "senders connected"},
}


def draw(title: str, rows: dict[str, list[Row]], metric: str, over: str = "size", crossings: tuple[float, ...] = ()) -> Figure:
    """`over` names the field of a row that is its place on the x axis. A dotted line stands at each crossing."""
    with canvas.styled():
        figure = Figure(figsize=(LEFT + WIDTH + NAMES, TOP + HEIGHT + BOTTOM))
        axes = canvas.axes_at(figure, LEFT, TOP, WIDTH, HEIGHT)
        axes.set_title(title, pad=10)
        first = next(own[0] for own in rows.values())
        label = X_LABELS_OF.get(first.bench, X_LABELS)[over]
        axes.set_xlabel("threads" if (over, first.mode.endswith("-threads")) == ("senders", True) else label)
        places = sorted({getattr(row, over) for own in rows.values() for row in own})
        canvas.places_axis(axes, places, over)
        canvas.quantity_axis(axes.yaxis, metric)
        for system in reversed(systems.in_order(rows)):
            draw_line(axes, system, rows[system], over)
        for place in crossings:
            axes.axvline(place, color=systems.INK[0], linewidth=0.9, linestyle=":", zorder=1).set_gid("crossing")
        canvas.label_enough(axes.yaxis)
        name_lines(axes, rows, over)
    return figure


def draw_line(axes: Axes, system: str, rows: list[Row], over: str) -> None:
    look = systems.look(system, rows[0].bench)
    x = [getattr(row, over) for row in rows]
    y = [row.median for row in rows]
    # A bar must not reach zero, which a logarithmic axis does not have.
    below = [min(row.mad, row.median * 0.95) for row in rows]
    above = [row.mad for row in rows]
    line = {"color": look.colour, "linewidth": look.width, "zorder": look.layer}
    (drawn,) = axes.plot(x, y, dashes=look.dashes, **line) if look.dashes else axes.plot(x, y, **line)
    drawn.set_gid(f"system-{system}")
    axes.errorbar(
        x,
        y,
        [below, above],
        fmt=look.marker or "none",
        color=look.colour,
        markersize=5,
        zorder=look.layer,
        markeredgewidth=1.2 if look.marker in ("x", "+") else 0,
        elinewidth=0.7 if look.width < 1 else 1.1,
    )


def name_lines(axes: Axes, rows: dict[str, list[Row]], over: str) -> None:
    """Names right of the axes at their lines' heights, moved apart where lines are close; a hair line leads there."""
    axes.figure.draw_without_rendering()  # Settles the limits of the axes.
    ends = sorted((height_of(axes, own[-1], over), system) for system, own in rows.items())
    heights = canvas.spread([height for height, _ in ends], 0, HEIGHT, NAME_GAP)
    for (end, system), height in zip(ends, heights):
        bench = rows[system][0].bench
        look = systems.look(system, bench)
        axes.plot(
            [1.005, 1.03],
            [end / HEIGHT, height / HEIGHT],
            color=look.colour,
            linewidth=0.7,
            clip_on=False,
            transform=axes.transAxes,
            zorder=2,
        )
        axes.text(
            1.036,
            height / HEIGHT,
            systems.short(system),
            transform=axes.transAxes,
            va="center",
            fontsize=8.5,
            **systems.lettering(system, bench),
        )


def height_of(axes: Axes, row: Row, over: str) -> float:
    """Inches above the x axis."""
    point = axes.transData.transform((getattr(row, over), row.median))
    return axes.transAxes.inverted().transform(point)[1] * HEIGHT
