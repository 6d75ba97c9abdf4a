# SPDX-License-Identifier: Apache-2.0
"""Which plots there are, by question. Only those are made that the results have rows for."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from matplotlib.figure import Figure

import bars
import dots
import lines
import quantities
from results import MODE_TEXT, Results, Row, at_size, reference_size, sizes_of


# Below, what a message costs says more than what a byte does, and would take all the room of a plot per byte.
SMALL = 1024


@dataclass(frozen=True)
class Plot:
    bench: str
    name: str  # of its file
    title: str
    how_to_read: str
    draw: Callable[[], Figure]


def plots(results: Results) -> Iterator[Plot]:
    for bench in ("stream", "zmq", "net", "python", "limit"):
        for mode in results.modes(bench):
            yield from over_size(results, bench, mode, "GB/s", "Payload a second", "higher is better")
    for bench in ("stream", "zmq"):
        for mode in results.modes(bench):
            yield from over_size(
                results,
                bench,
                mode,
                "cpu_s_per_GB",
                "CPU seconds per GB, all processes",
                "lower is better",
                at_least=SMALL,
            )
    for mode in results.modes("zmq"):
        yield from over_size(results, "zmq", mode, "ns_mean", "Mean of half a round trip", "lower is better")
    yield from hand_overs(results)
    yield from latency(results)
    yield from many(results)
    yield from connect(results)
    yield from root(results)
    yield from file(results)
    yield from mailbox(results)
    yield from mpi(results)


def over_size(
    results: Results, bench: str, mode: str, metric: str, what: str, better: str, at_least: int = 0
) -> Iterator[Plot]:
    rows = {
        system: [row for row in own if row.size >= at_least]
        for system, own in results.select(bench, metric, mode).items()
    }
    rows = {system: own for system, own in rows.items() if own}
    if rows:
        title = f"{what}: one sender, one receiver, {MODE_TEXT[mode]}"
        name = f"{bench}-{mode}-{metric.lower().replace('/', '-per-').replace('_', '-')}"
        how = f"Logarithmic axes, {better}. Dashed: limits of this machine. Bars: median absolute deviation."
        sizes = sizes_of(rows)
        if len(sizes) > 1:
            yield Plot(bench, name, title, how, line_drawing(title, rows, metric))
        else:
            panels = [(quantities.size(sizes[0]), at_size(rows, sizes[0]))]
            yield Plot(bench, name, title, better.capitalize() + ".", bar_drawing(title, panels, metric))


def hand_overs(results: Results) -> Iterator[Plot]:
    """What is handed over in place has no bytes per second: nothing moves but a reference."""
    rows = {
        system: own
        for system, own in results.select("stream", "msgs/s", "handover").items()
        if system in results.in_place
    }
    if rows:
        title = "Hand-overs a second of messages that stay in place"
        how = "Only a reference moves, so the size should not matter. Bytes a second: see the payload written and read."
        yield Plot("stream", "stream-in-place-msgs-per-s", title, how, line_drawing(title, rows, "msgs/s"))


def latency(results: Results) -> Iterator[Plot]:
    # A wake-up takes so long that a sample has few round trips: too few for shares of a thousand.
    kinds = (
        ("ns_", "both awake", "awake", ("p50", "p99", "p99.9")),
        ("asleep_ns_", "to a process that sleeps", "asleep", ("p50", "max")),
    )
    for prefix, whom, stem, shares in kinds:
        for mode in results.modes("latency"):
            rows = {share: results.select("latency", prefix + share, mode) for share in shares}
            if not rows["p50"]:
                continue
            size = reference_size(rows["p50"])
            shown = {share: at_size(own, size) for share, own in rows.items()}
            title = f"One way, {quantities.size(size)}, {whom}"
            how = f"Half of each round trip, in the order of the medians; {MODE_TEXT[mode]}. "
            how += "Logarithmic axis, left is better."
            yield Plot("latency", f"latency-{stem}-{mode}", title, how, dot_drawing(title, shown, prefix + "p50"))
    for mode in results.modes("latency"):
        rows = results.select("latency", "ns_p50", mode)
        if any(len(own) > 1 for own in rows.values()):
            title = f"Median one-way time over the size, both awake, {MODE_TEXT[mode]}"
            how = "Logarithmic axes, lower is better."
            yield Plot("latency", f"latency-over-size-{mode}", title, how, line_drawing(title, rows, "ns_p50"))


def dot_drawing(title: str, shares: dict[str, dict[str, Row]], metric: str) -> Callable[[], Figure]:
    return lambda: dots.draw(title, shares, metric)


def line_drawing(
    title: str, rows: dict[str, list[Row]], metric: str, over: str = "size", crossings: tuple[float, ...] = ()
) -> Callable[[], Figure]:
    return lambda: lines.draw(title, rows, metric, over, crossings)


def many(results: Results) -> Iterator[Plot]:
    for mode in results.modes("many"):
        panels = {}
        for senders in results.senders("many"):
            rows = results.select("many", "GB/s", mode, senders)
            panels[senders] = [
                (f"{senders} senders, {quantities.size(size)}", at_size(rows, size)) for size in sizes_of(rows)
            ]
        if sum(map(len, panels.values())) <= PANELS:
            panels = {"all": [panel for some in panels.values() for panel in some]}
        for name, some in panels.items():
            if some:
                title = f"Many senders, one receiver, {MODE_TEXT[mode]}: GB/s"
                how = "Higher is better; in the order of the last column. Black lines: median absolute deviation."
                yield Plot("many", f"many-{name}-{mode}", title, how, bar_drawing(title, some, "GB/s"))


PANELS = 3  # that fit side by side


def bar_drawing(title: str, panels: list[tuple[str, dict[str, Row]]], metric: str) -> Callable[[], Figure]:
    return lambda: bars.draw(title, panels, metric)


def connect(results: Results) -> Iterator[Plot]:
    for metric, title in CONNECT_TITLES.items():
        rows = {
            system: [row for row in own if row.median > 0] for system, own in results.select("connect", metric).items()
        }
        rows = {system: own for system, own in rows.items() if own}
        if len({row.senders for own in rows.values() for row in own}) > 1:
            yield Plot(
                "connect",
                f"connect-{metric.replace('_', '-')}",
                title,
                "Logarithmic axes, lower is better.",
                line_drawing(title, rows, metric, "senders"),
            )


CONNECT_TITLES = {
    "connect_ns": "Time until both sides have the connection",
    "memory_bytes_per_connection": "Memory of an idle connection, both sides",
    "kernel_bytes_per_connection": "Memory in the kernel of an idle connection, both sides",
}


def root(results: Results) -> Iterator[Plot]:
    """Over the number of workers, and over the size of a file, where there are several; else beside each other."""
    for metric, what in ROOT_TITLES.items():
        for mode in results.modes("root"):
            every = [row for own in results.select("root", metric, mode).values() for row in own]
            for size in sorted({row.size for row in every}):
                rows = chosen(every, lambda row: row.size == size)
                if len({row.senders for own in rows.values() for row in own}) > 1:
                    note = f"files of {quantities.size(size)}"
                    yield root_lines(metric, mode, what, note, f"files-of-{size}", rows, "senders")
            for count in sorted({row.senders for row in every}):
                rows = chosen(every, lambda row: row.senders == count)
                if len(sizes_of(rows)) > 1:
                    yield root_lines(metric, mode, what, f"{count} workers", f"{count}-workers", rows, "size")
            if len({(row.senders, row.size) for row in every}) == 1:
                title = f"{what}: {MODE_TEXT[mode]}"
                heading = f"{every[0].senders} × {quantities.size(every[0].size)}"
                panels = [(heading, {row.system: row for row in every})]
                yield Plot("root", root_name(metric, mode), title, better(metric), bar_drawing(title, panels, metric))


def root_lines(metric: str, mode: str, what: str, note: str, stem: str, rows: dict, over: str) -> Plot:
    title = f"{what}: {note}, {MODE_TEXT[mode]}"
    how = f"Logarithmic axes. {better(metric)} Bars: median absolute deviation."
    drawing = line_drawing(title, rows, metric, over)
    return Plot("root", f"{root_name(metric, mode)}-{stem}", title, how, drawing)


def root_name(metric: str, mode: str) -> str:
    return f"root-{mode}-{metric.lower().replace('/', '-per-').replace('_', '-')}"


def file(results: Results) -> Iterator[Plot]:
    """Over the bytes of a call, and over the number of processes or threads, where there are several."""
    for mode in results.modes("file"):
        every = [row for own in results.select("file", "GB/s", mode).values() for row in own]
        who = "thread" if mode.endswith("-threads") else "process"
        for over, other in (("size", "senders"), ("senders", "size")):
            for held in sorted({getattr(row, other) for row in every}):
                rows = chosen(every, lambda row: getattr(row, other) == held)
                if len({getattr(row, over) for own in rows.values() for row in own}) > 1:
                    several = "" if held == 1 else "es" if who == "process" else "s"
                    note = f"{held} {who}{several}" if over == "size" else f"{quantities.size(held)} a call"
                    title = f"A file {MODE_TEXT[mode]}: GB/s, {note}"
                    how = f"Logarithmic axes. {better('GB/s')} Bars: median absolute deviation."
                    name = f"file-{mode}-over-{over}-{held}"
                    # The pieces and the whole of a file that is used are no sizes to choose among.
                    crossings = host_crossings(rows) if over == "size" and not mode.startswith("used") else {}
                    how += "".join(
                        f" Dotted: from about {quantities.byte_count(size)} a call on {pair}."
                        for pair, size in crossings.items()
                    )
                    places = tuple(crossings.values())
                    yield Plot("file", name, title, how, line_drawing(title, rows, "GB/s", over, places))


# A cache, and the host past which it lies: as bench/questions/file/crossing.cc has them.
CACHES_AND_HOSTS = (
    ("wherry-api-cache", "wherry-api-host"),
    ("wherry-mount-cache", "wherry-mount-host"),
    ("wherry-mount-card", "wherry-mount-host"),
)


def host_crossings(rows: dict[str, list[Row]]) -> dict[str, float]:
    """From which size on the host is faster than the cache, by what a reader is told of it."""
    found = {(cache, host): crossing(rows.get(cache, []), rows.get(host, [])) for cache, host in CACHES_AND_HOSTS}
    return {f"{host} is faster than {cache}": size for (cache, host), size in found.items() if size is not None}


def crossing(cache: list[Row], host: list[Row]) -> float | None:
    small = {row.size: row.median for row in cache if row.median > 0}
    large = {row.size: row.median for row in host if row.median > 0}
    leads = [(size, math.log(large[size] / small[size])) for size in sorted(small) if size in large]
    # One size alone is no end of a lead.
    ahead_at = [i for i in range(len(leads)) if all(lead >= 0 for _, lead in leads[i : i + 2])]
    if not ahead_at or ahead_at[0] == 0:
        return None
    (before, behind), (after, ahead) = leads[ahead_at[0] - 1], leads[ahead_at[0]]
    share = behind / (behind - ahead) if behind < 0 else 0
    return before * (after / before) ** share


def mailbox(results: Results) -> Iterator[Plot]:
    """Bandwidth over the size, of each layout with all numbers started, and of each number with all layouts; the cost of
    a message over the number of senders."""
    for mode in results.modes("mailbox"):
        every = [row for own in results.select("mailbox", "GB/s", mode).values() for row in own]
        for system in dict.fromkeys(row.system for row in every):
            own = [row for row in every if row.system == system]
            rows = {f"{n} started": [row for row in own if row.senders == n] for n in sorted({row.senders for row in own})}
            if len(rows) > 1 and len(sizes_of(rows)) > 1:
                yield mailbox_lines(mode, system, rows)
        for started in sorted({row.senders for row in every}):
            rows = chosen(every, lambda row: row.senders == started)
            if len(rows) > 1 and len(sizes_of(rows)) > 1:
                yield mailbox_lines(mode, f"{started} started", rows)
        rows = results.select("mailbox", "ns_receive", mode)
        if len({row.senders for own in rows.values() for row in own}) > 1:
            title = "A message of 8 bytes, by senders connected, of which one sends"
            how = f"Logarithmic axes. {better('ns_receive')} Flat is what a doorbell is for."
            yield Plot("mailbox", f"mailbox-receive-{mode}", title, how, line_drawing(title, rows, "ns_receive", "senders"))


def mailbox_lines(mode: str, what: str, rows: dict[str, list[Row]]) -> Plot:
    title = f"Two neighbours, {what}: GB/s, {MODE_TEXT[mode]}"
    how = f"Logarithmic axes. {better('GB/s')} All mailboxes together have the same bytes. Bars: median absolute deviation."
    return Plot("mailbox", f"mailbox-{mode}-{what.replace(' ', '-')}", title, how, line_drawing(title, rows, "GB/s"))


def mpi(results: Results) -> Iterator[Plot]:
    """Over the size of a message, where there are several; else beside each other."""
    for mode in results.modes("mpi"):
        metric = MPI_METRICS.get(mode, "ns_mean")
        for ranks in results.senders("mpi"):
            rows = results.select("mpi", metric, mode, ranks)
            title = f"MPI, {MODE_TEXT[mode]}, {ranks} ranks"
            name = f"mpi-{mode}-{ranks}-ranks"
            sizes = sizes_of(rows)
            if mode in ("latency", "bandwidth") and len(sizes) > 1:
                how = f"Logarithmic axes. {better(metric)} Bars: median absolute deviation."
                yield Plot("mpi", name, title, how, line_drawing(title, rows, metric))
            elif rows:
                panels = [(quantities.size(size) if size else "", at_size(rows, size)) for size in sizes]
                yield Plot("mpi", name, title, better(metric), bar_drawing(title, panels, metric))


MPI_METRICS = {"latency": "ns_p50", "bandwidth": "GB/s", "memory": "shared_bytes"}


def better(metric: str) -> str:
    return "Lower is better." if quantities.lower_is_better(metric) else "Higher is better."


def chosen(rows: list[Row], belongs: Callable[[Row], bool]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in filter(belongs, rows):
        found.setdefault(row.system, []).append(row)
    return {system: sorted(own, key=lambda row: (row.size, row.senders)) for system, own in found.items()}


ROOT_TITLES = {
    "GB/s": "Transfer only, GB/s",
    "fill_GB/s": "Live fill, GB/s",
    "merge_GB/s": "With merge, GB/s",
    "memory_bytes_per_worker": "Memory of a worker that holds a full file",
}
