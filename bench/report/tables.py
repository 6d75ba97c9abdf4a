# SPDX-License-Identifier: Apache-2.0
"""Tables for the page: systems down, sizes across, the best of each column marked, limits and ratios below."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import compare
import quantities
import systems
from results import MODE_TEXT, Results, Row, at_size, sizes_of


@dataclass(frozen=True)
class Cell:
    text: str
    note: str = ""  # The spread, where a reader must know of it; what a ratio is a ratio of.
    best: bool = False


EMPTY = Cell("–")


@dataclass
class Line:
    head: str
    cells: list[Cell]
    kind: str  # "wherry", "peer", "limit" or "ratio"


@dataclass
class Table:
    bench: str
    title: str
    columns: list[str]
    lines: list[Line] = field(default_factory=list)


def tables(results: Results) -> Iterator[Table]:
    """Every row of the results stands in one of these."""
    for bench, metric, mode in dict.fromkeys((row.bench, row.metric, row.mode) for row in results.rows):
        columns = {}
        for senders in results.senders(bench):
            rows = results.select(bench, metric, mode, senders)
            for size in sizes_of(rows):
                columns[column_name(results, bench, senders, size)] = at_size(rows, size)
        title = table_title(bench, metric, mode)
        for note, part in split_kinds(results, metric, mode, columns):
            yield table(results, bench, title + note, part)


def split_kinds(results: Results, metric: str, mode: str, columns: dict[str, dict[str, Row]]):
    """Handing over a reference and copying a payload are not one contest: two tables, where both are counted."""
    if (metric, mode) != ("msgs/s", "handover"):
        return [("", columns)]
    parts = []
    for in_place, note in ((False, ""), (True, ", of messages that stay in place")):
        part = {
            name: {system: row for system, row in rows.items() if (system in results.in_place) == in_place}
            for name, rows in columns.items()
        }
        part = {name: rows for name, rows in part.items() if rows}
        if part:
            parts.append((note, part))
    return parts


def column_name(results: Results, bench: str, senders: int, size: int) -> str:
    if bench == "connect":
        return f"{senders:,}"
    sent = quantities.size(size)
    return f"{senders} × {sent}" if len(results.senders(bench)) > 1 else sent


METRIC_TITLES = {
    "GB/s": "GB a second",
    "first_lap_GB/s": "GB a second, the first lap of a ring or pool",
    "msgs/s": "Messages a second",
    "cpu_s_per_GB": "CPU seconds per GB, all processes",
    "switches_per_GB": "Context switches per GB",
    "memory_bytes": "Memory of all processes together (proportional set size)",
    "memory_bytes_per_connection": "Memory of each connection",
    "kernel_bytes_per_connection": "Memory of each connection in the kernel",
    "descriptors_per_connection": "Descriptors of each connection, both sides",
    "connect_ns": "Time until both sides have the connection",
    "listen_ns": "Time to register a port",
    "fill_GB/s": "GB a second, live fill",
    "merge_GB/s": "GB a second, with merge",
    "server_cpu_s_per_GB": "CPU seconds per GB, the server",
    "fill_cpu_s_per_GB": "CPU seconds per GB, all processes, live fill",
    "fill_server_cpu_s_per_GB": "CPU seconds per GB, the server, live fill",
    "merge_cpu_s_per_GB": "CPU seconds per GB, all processes, with merge",
    "merge_server_cpu_s_per_GB": "CPU seconds per GB, the server, with merge",
    "sent_per_byte": "Bytes sent per byte of a file",
    "fill_sent_per_byte": "Bytes sent per byte of a file, live fill",
    "merge_sent_per_byte": "Bytes sent per byte of a file, with merge",
    "share_of_fewest": "Share of the bandwidth with the fewest processes started",
    "ns_receive": "Each message of a stream; all senders are connected, one of them sends",
    "ns_mean": "Mean time",
    "shared_bytes": "Shared memory",
    "memory_bytes_per_rank": "Memory of a rank since MPI_Init",
    "memory_bytes_per_worker": "Memory of a worker that holds a full file (proportional set size)",
}


def table_title(bench: str, metric: str, mode: str) -> str:
    title = METRIC_TITLES.get(metric)
    if bench == "mpi":
        title = {"ns_p50": "Median time", "memory_bytes": "Memory since MPI_Init"}.get(metric, title)
    elif metric.startswith(("ns_", "asleep_ns_")) and metric != "ns_receive":
        share = metric.rsplit("_", 1)[1]
        title = f"One way {'to a sleeper' if metric.startswith('asleep') else 'while both are awake'}, {share}"
    title = title or metric.replace("_", " ")
    if bench == "connect":
        return title
    return f"{title}, {MODE_TEXT.get(mode, mode)}"


def table(results: Results, bench: str, title: str, columns: dict[str, dict[str, Row]]) -> Table:
    made = Table(bench, title, list(columns))
    names = systems.in_order({system for rows in columns.values() for system in rows})
    winners = [compare.best(rows, lambda system: not systems.is_limit(system)) for rows in columns.values()]
    for system in names:
        cells = [cell(rows.get(system), winner) for rows, winner in zip(columns.values(), winners)]
        kind = "wherry" if systems.is_wherry(system) else "limit" if systems.is_limit(system) else "peer"
        made.lines.append(Line(system, cells, kind))
    for system in filter(systems.is_wherry, names):
        made.lines += ratio_lines(results, system, columns)
    if "zmq-wherry" in names:
        made.lines += zmq_lines(columns)
    return made


def cell(row: Row | None, winner: Row | None) -> Cell:
    if row is None:
        return EMPTY
    text = quantities.quantity(row.median, row.metric)
    # The title has the unit.
    for unit in (" GB/s", " s/GB", " /GB"):
        text = text.removesuffix(unit)
    return Cell(text, quantities.noise(row.median, row.mad), row is winner)


def ratio_lines(results: Results, system: str, columns: dict[str, dict[str, Row]]) -> list[Line]:
    """How many times as good as the best peer, and as the limit."""
    peers, limits = [], []
    for rows in columns.values():
        mine = rows.get(system)
        peers.append(mine and compare.ratio(mine, compare.best_peer(rows)))
        limits.append(mine and compare.ratio(mine, compare.best_limit(results, rows, system)))
    lines = [
        Line(f"{system} ÷ best peer", [ratio_cell(one) for one in peers], "ratio"),
        Line(f"{system} ÷ limit", [ratio_cell(one) for one in limits], "ratio"),
    ]
    return [line for line in lines if any(cell is not EMPTY for cell in line.cells)]


def zmq_lines(columns: dict[str, dict[str, Row]]) -> list[Line]:
    """How many times as good ZeroMQ is over Wherry as over each of its own transports."""
    lines = []
    for peer in compare.ZMQ_PEERS:
        mine = [(rows.get("zmq-wherry"), rows.get(peer)) for rows in columns.values()]
        cells = [ratio_cell(own and compare.ratio(own, other)) for own, other in mine]
        lines.append(Line(f"zmq-wherry ÷ {peer}", cells, "ratio"))
    return [line for line in lines if any(cell is not EMPTY for cell in line.cells)]


def ratio_cell(ratio: compare.Ratio | None) -> Cell:
    return Cell(ratio.text(), systems.short(ratio.of.system)) if ratio else EMPTY
