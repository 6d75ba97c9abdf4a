# SPDX-License-Identifier: Apache-2.0
"""Rates of many systems side by side: bars from zero, one panel per number of senders and message size."""

from matplotlib.figure import Figure

import canvas
import quantities
import systems
from results import Row

WIDTH, ROW_HEIGHT = 7.0, 0.2  # of all panels together and of one bar, in inches
LEFT, TOP, BOTTOM, BETWEEN, RIGHT = 1.35, 0.72, 0.1, 0.25, 0.1
LETTER = 0.082  # inches of a name's letter, at most


def draw(title: str, panels: list[tuple[str, dict[str, Row]]], metric: str) -> Figure:
    """One panel per (heading, row of each system). All have the systems in one order, that of the last panel."""
    names = {system for _, rows in panels for system in rows}
    last = panels[-1][1]
    best_first = sorted(
        names,
        key=lambda system: last[system].median if system in last else -1.0,
        reverse=not quantities.lower_is_better(metric),
    )
    height = ROW_HEIGHT * (len(names) + 0.4)
    left = max(LEFT, LETTER * max(len(systems.short(system)) for system in names))
    width = left + WIDTH + RIGHT
    each = (WIDTH + BETWEEN) / len(panels) - BETWEEN
    with canvas.styled():
        figure = Figure(figsize=(width, TOP + height + BOTTOM))
        figure.text(left / width, 1 - 0.15 / (TOP + height + BOTTOM), title, va="top", fontsize=10, fontweight="bold")
        for index, (heading, rows) in enumerate(panels):
            axes = canvas.axes_at(figure, left + index * (each + BETWEEN), TOP, each, height)
            axes.set_title(heading, fontsize=9, fontweight="normal", pad=5)
            draw_panel(axes, best_first, rows, metric)
            label_rows(axes, best_first if index == 0 else [])
    return figure


def draw_panel(axes, order: list[str], rows: dict[str, Row], metric: str) -> None:
    top = max(row.median for row in rows.values())
    axes.set_xlim(0, top * 1.22)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.xaxis.set_visible(False)  # Every bar has its figure.
    axes.spines["bottom"].set_visible(False)
    for place, system in enumerate(order):
        if system not in rows:
            axes.text(top * 0.012, place, "–", va="center", fontsize=8, color=systems.GREY_TEXT[0])
            continue
        row = rows[system]
        colour = systems.look(system, row.bench).colour
        axes.barh(place, row.median, height=0.72, color=colour, zorder=2)
        axes.plot(
            [max(row.median - row.mad, 0), row.median + row.mad],
            [place, place],
            color=systems.INK[0],
            linewidth=1,
            zorder=3,
        )
        axes.text(
            row.median + row.mad + top * 0.02,
            place,
            short_figure(row.median, metric),
            va="center",
            fontsize=8,
            fontweight="bold" if systems.is_wherry(system) else "normal",
        )


def short_figure(value: float, metric: str) -> str:
    """Without the unit that the title has."""
    return quantities.quantity(value, metric).removesuffix(" GB/s").removesuffix(" s/GB")


def label_rows(axes, order: list[str]) -> None:
    axes.set_yticks(range(len(order)), [systems.short(system) for system in order])
    axes.tick_params(axis="y", length=0)
    for label, system in zip(axes.get_yticklabels(), order):
        label.set(**systems.lettering(system))
