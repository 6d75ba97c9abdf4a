# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file: it opens from disk, needs no network and no script, and is light or dark as the reader's
system is."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

import canvas
import compare
import quantities
import svg
import systems
import tables
import texts
from results import Results, Row

CSS = Path(__file__).with_name("page.css")


def html(results: Results, plots: list) -> str:
    benches = [bench for bench in texts.BENCHES if bench in results.benches()]
    benches += [bench for bench in results.benches() if bench not in texts.BENCHES]
    parts = [head(), header(results, benches), glance(results)]
    made = list(tables.tables(results))
    for bench in benches:
        parts.append(
            section(bench, [plot for plot in plots if plot.bench == bench], [one for one in made if one.bench == bench])
        )
    parts += [systems_section(results), environment(results), method(), "</body></html>\n"]
    return "\n".join(parts)


def head() -> str:
    style = CSS.read_text()
    style = style.replace("@light@", svg.colour_variables(dark=False)).replace(
        "@dark@", svg.colour_variables(dark=True)
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>Wherry measured</title>'
        f"<style>{style}</style></head><body>"
    )


def header(results: Results, benches: list[str]) -> str:
    facts = results.runs[0].environment
    machine = ", ".join(texts.machine(facts))
    peers = len({row.system for row in results.rows if row.bench in texts.TRANSPORTS and systems.is_peer(row.system)})
    links = [("glance", "At a glance")] + [(bench, texts.heading(bench)) for bench in benches]
    links += [("systems", "Systems"), ("machine", "Machine and run"), ("method", "Method")]
    return (
        f"<header><h1>Wherry measured</h1><p class=soft>{escape(machine)}. "
        f"Beside {peers} other transports and the limits of the machine, each question in one run, taking turns. "
        f"Ratios travel to other machines, absolute figures do not.</p><nav>"
        + " ".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in links)
        + "</nav></header>"
    )


def glance(results: Results) -> str:
    found = list(compare.comparisons(results))
    if not found:
        return ""
    short = [one for one in found if one.headline] or found
    rest = [one for one in found if one not in short]
    more = f"<details><summary>{len(rest)} more comparisons</summary>{glance_table(rest)}</details>" if rest else ""
    return f"<section id=glance><h2>At a glance</h2><p>{texts.GLANCE}</p>{glance_table(short)}{more}</section>"


def glance_table(found: list[compare.Comparison]) -> str:
    lines = []
    for one in found:
        cells = [
            f"<td><b>{figure(one.mine)}</b></td><td>{figure(one.tcp)}</td>",
            ratio_cells(one.peer),
            ratio_cells(one.limit),
        ]
        lines.append(f"<tr><th>{escape(one.what)}</th>{''.join(cells)}</tr>")
    heads = "".join(f"<th>{text}</th>" for text in ("", "Wherry", "TCP", "best peer", "ratio", "limit", "ratio"))
    return f"<div class=scroll><table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def figure(row: Row | None) -> str:
    if row is None:
        return "–"
    note = quantities.noise(row.median, row.mad)
    return escape(quantities.quantity(row.median, row.metric)) + (f" <small>{note}</small>" if note else "")


def ratio_cells(ratio: compare.Ratio | None) -> str:
    if ratio is None:
        return "<td>–</td><td></td>"
    strong = f"<b>{ratio.text()}</b>" if ratio.value >= 1 else ratio.text()
    return f"<td>{figure(ratio.of)}<small>{escape(systems.short(ratio.of.system))}</small></td><td>{strong}</td>"


def section(bench: str, plots: list, made: list[tables.Table]) -> str:
    drawn = "".join(plot_html(plot) for plot in plots)
    shown = "".join(table_html(one) for one in made)
    return (
        f'<section id="{escape(bench)}"><h2>{escape(texts.heading(bench))}</h2><p>{texts.about(bench)}</p>{drawn}'
        f"<details><summary>{len(made)} tables: every figure, its spread, and the ratios</summary>{shown}</details>"
        "</section>"
    )


def plot_html(plot) -> str:
    with canvas.styled():
        drawing = canvas.svg_text(plot.draw())
    width = svg.natural_width(drawing) * 1.5
    return (
        f'<figure style="max-width:{width:.0f}px">{svg.inline(drawing, plot.name, escape(plot.title))}'
        f"<figcaption>{escape(plot.how_to_read)}</figcaption></figure>"
    )


def table_html(table: tables.Table) -> str:
    heads = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    body, before = [], None
    for line in table.lines:
        first = " first" if before not in (None, line.kind) and line.kind in ("limit", "ratio") else ""
        cells = "".join(cell_html(cell) for cell in line.cells)
        body.append(f'<tr class="{line.kind}{first}"><th>{escape(systems.short(line.head))}</th>{cells}</tr>')
        before = line.kind
    return (
        f"<div class=scroll><table><caption>{escape(table.title)}</caption><thead><tr><th></th>{heads}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def cell_html(cell: tables.Cell) -> str:
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return f"<td{' class=best' if cell.best else ''}>{escape(cell.text)}{note}</td>"


def word_table(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td class=words>{escape(text)}</td>" for text in words) + "</tr>"
        for name, *words in lines
    )
    top = "".join(f"<th style='text-align:left'>{escape(text)}</th>" for text in heads)
    return f"<div class=scroll><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def systems_section(results: Results) -> str:
    versions, settings = results.versions(), results.settings()
    known = systems.in_order(set(versions) | set(settings))
    parts = [
        "<section id=systems><h2>Systems</h2>",
        f"<p>{texts.SYSTEMS}</p>",
        word_table(
            ("", "version", "how it is driven"),
            [(name, versions.get(name, ""), settings.get(name, "")) for name in known],
        ),
    ]
    for key, title in (("not_found", "Not found, so not measured"), ("failed", "There, but failed at something")):
        notes = results.notes(key)
        if notes:
            parts += [f"<h3>{title}</h3>", word_table(("", "why"), notes)]
    return "".join(parts) + "</section>"


def environment(results: Results) -> str:
    parts = ["<section id=machine><h2>Machine and run</h2>"]
    shared = texts.facts(results.runs[0].environment, texts.MACHINE_KEYS)
    parts.append(word_table(("machine", ""), shared))
    names = list(dict.fromkeys(key for run in results.runs for key, _ in texts.run_facts(run.environment)))
    columns = [dict(texts.run_facts(run.environment)) for run in results.runs]
    heads = ["run"] + [Path(run.name).name for run in results.runs]
    parts.append(word_table(heads, [[name] + [column.get(name, "") for column in columns] for name in names]))
    return "".join(parts) + "</section>"


def method() -> str:
    items = "".join(f"<p>{paragraph}</p>" for paragraph in texts.METHOD)
    return f"<section id=method><h2>Method</h2>{items}</section>"
