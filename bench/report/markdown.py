# SPDX-License-Identifier: Apache-2.0
"""The headline figures as a Markdown table, for docs/benchmarks.md."""

import compare
import quantities
import systems
from results import ReportError, Results, Row


def table(results: Results) -> str:
    lines = ["| | Wherry | TCP | best peer | ratio | the machine's limit | ratio |", "|---|---|---|---|---|---|---|"]
    for one in compare.comparisons(results):
        if one.headline:
            peer, limit = named(one.peer), named(one.limit)
            cells = [one.what, figure(one.mine), figure(one.tcp), peer[0], peer[1], limit[0], limit[1]]
            lines.append("| " + " | ".join(cells) + " |")
    if len(lines) == 2:
        raise ReportError("no figure of Wherry's to put into the table")
    return "\n".join(lines) + "\n"


def figure(row: Row | None) -> str:
    return quantities.quantity(row.median, row.metric) if row else ""


def named(ratio: compare.Ratio | None) -> tuple[str, str]:
    if ratio is None:
        return "", ""
    return f"{systems.short(ratio.of.system)}, {figure(ratio.of)}", ratio.text()
