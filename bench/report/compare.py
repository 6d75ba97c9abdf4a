# SPDX-License-Identifier: Apache-2.0
"""Wherry beside the best peer and beside what the machine allows, figure by figure, within one run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import quantities
import systems
from results import MODE_TEXT, Results, Row, at_size, reference_size, sizes_of

COPY_LIMITS = ("limit:two-copy", "limit:one-copy", "limit:split-copy")
IN_PLACE_LIMITS = ("limit:in-place",)
AWAKE_LIMITS = ("limit:cache-line",)
ASLEEP_LIMITS = ("limit:futex",)
# ZeroMQ's own ways to another process.
ZMQ_PEERS = ("zmq-tcp", "zmq-ipc")
# Sizes that the table of docs/benchmarks.md shows for what has many.
HEADLINE_SIZES = (64, 1 << 20)


@dataclass(frozen=True)
class Ratio:
    """How many times as good one figure is as another: above 1 is better, whether high or low figures are good."""

    of: Row
    value: float
    within_spread: bool  # The two differ by less than their deviations together: no difference was shown.

    def text(self) -> str:
        return f"{'≈' if self.within_spread else ''}{self.value:.2f}×"


def ratio(mine: Row, other: Row | None) -> Ratio | None:
    if other is None or other.median <= 0 or mine.median <= 0:
        return None
    quotient = mine.median / other.median
    value = 1 / quotient if quantities.lower_is_better(mine.metric) else quotient
    return Ratio(other, value, abs(mine.median - other.median) <= mine.mad + other.mad)


def best(rows: dict[str, Row], counts: Callable[[str], bool]) -> Row | None:
    counted = [row for system, row in rows.items() if counts(system) and row.median > 0]
    if not counted:
        return None
    pick = min if quantities.lower_is_better(counted[0].metric) else max
    return pick(counted, key=lambda row: row.median)


def best_peer(rows: dict[str, Row], in_place: set[str] | None = None) -> Row | None:
    """The best that is not Wherry's; with `in_place` the best of those that copy the payload."""
    return best(rows, lambda system: systems.is_peer(system) and (in_place is None or system not in in_place))


def best_limit(results: Results, rows: dict[str, Row], system: str) -> Row | None:
    """The best that a minimal program of the same kind reached: in place, or into a buffer of the receiver's."""
    metric = next(iter(rows.values())).metric
    if "ns" in metric.split("_"):
        names = ASLEEP_LIMITS if metric.startswith("asleep") else AWAKE_LIMITS
    else:
        names = IN_PLACE_LIMITS if system in results.in_place else COPY_LIMITS
    return best(rows, lambda name: name in names)


@dataclass(frozen=True)
class Comparison:
    """One line of "at a glance"."""

    what: str
    mine: Row
    tcp: Row | None
    peer: Ratio | None
    limit: Ratio | None
    headline: bool  # Worth the table of docs/benchmarks.md.


def comparisons(results: Results) -> Iterator[Comparison]:
    yield from stream(results)
    yield from in_place_hand_overs(results)
    yield from latency(results)
    yield from many(results)
    yield from connect(results)
    yield from zmq(results)


def compare(results: Results, what: str, system: str, rows: dict[str, Row], copying: bool, headline: bool = False):
    """Yields one line if the system was measured. `copying`: peers that hand over in place are no match for it."""
    if system in rows:
        mine = rows[system]
        peer = best_peer(rows, results.in_place if copying else None)
        limit = best_limit(results, rows, system)
        yield Comparison(what, mine, rows.get("tcp"), ratio(mine, peer), ratio(mine, limit), headline)


def stream(results: Results) -> Iterator[Comparison]:
    for mode in results.modes("stream"):
        rows = {metric: results.select("stream", metric, mode) for metric in ("GB/s", "msgs/s", "cpu_s_per_GB")}
        for size in sizes_of(rows["GB/s"]):
            small = size <= 256
            at = at_size(rows["msgs/s" if small else "GB/s"], size)
            what = f"stream, {quantities.size(size)}"
            if mode == "handover":
                yield from compare(results, what, "wherry", at, True, True)
            elif not small:
                what += ", " + MODE_TEXT[mode]
                yield from compare(results, what, "wherry", at, True)
                yield from compare(results, what + ", zero-copy", "wherry-zerocopy", at, False, size >= 65536)
        for size in sizes_of(rows["cpu_s_per_GB"]):
            what = f"CPU time of a stream, {quantities.size(size)}, {MODE_TEXT[mode]}"
            if size > 256:
                yield from compare(
                    results,
                    what,
                    "wherry",
                    at_size(rows["cpu_s_per_GB"], size),
                    True,
                    mode == "handover" and size in HEADLINE_SIZES,
                )


def in_place_hand_overs(results: Results) -> Iterator[Comparison]:
    rows = {
        system: own
        for system, own in results.select("stream", "msgs/s", "handover").items()
        if system in results.in_place
    }
    for size in sizes_of(rows):
        what = f"zero-copy hand-over, {quantities.size(size)}"
        yield from compare(results, what, "wherry-zerocopy", at_size(rows, size), False, size in HEADLINE_SIZES)


def latency(results: Results) -> Iterator[Comparison]:
    for mode in results.modes("latency"):
        for metric, what in LATENCIES.items():
            rows = results.select("latency", metric, mode)
            if not rows:
                continue
            awake = metric.startswith("ns_")
            for size in dict.fromkeys([reference_size(rows), *(LATENCY_SIZES if awake else ())]):
                at = at_size(rows, size)
                text = f"one way, {quantities.size(size)}, {what}"
                yield from compare(results, text, "wherry", at, False, mode == "handover")


LATENCY_SIZES = (64, 4096)
LATENCIES = {
    "ns_p50": "both awake, median",
    "ns_p99": "both awake, 99 of 100",
    "ns_p99.9": "both awake, 999 of 1000",
    "asleep_ns_p50": "to a sleeper, median",
}


def many(results: Results) -> Iterator[Comparison]:
    for senders in results.senders("many"):
        for mode in results.modes("many"):
            rows = results.select("many", "GB/s", mode, senders)
            for size in sizes_of(rows):
                at = at_size(rows, size)
                what = f"{senders} senders, {quantities.size(size)}, {MODE_TEXT[mode]}"
                yield from compare(
                    results, what, "wherry", at, mode == "handover", mode == "handover" and size == 2 << 20
                )
                yield from compare(results, what + ", zero-copy", "wherry-zerocopy", at, False)
        memory = results.select("many", "memory_bytes_per_connection", "handover", senders)
        for size in sizes_of(memory)[:1]:
            what = f"{senders} senders, memory of each, all processes together"
            yield from compare(results, what, "wherry", at_size(memory, size), False)


def connect(results: Results) -> Iterator[Comparison]:
    rows = results.select("connect", "connect_ns")
    for count in results.senders("connect")[-1:]:
        at = {system: row for system, own in rows.items() for row in own if row.senders == count}
        yield from compare(results, f"connect and accept, each of {count:,}", "wherry", at, False, True)


def zmq(results: Results) -> Iterator[Comparison]:
    """ZeroMQ over Wherry beside ZeroMQ over its own transports: what a program gains that changes its endpoints."""
    for metric, what in (("GB/s", "ZeroMQ"), ("cpu_s_per_GB", "CPU time of ZeroMQ")):
        rows = results.select("zmq", metric, "handover")
        for size in sizes_of(rows):
            at = at_size(rows, size)
            if "zmq-wherry" in at:
                mine, peer = at["zmq-wherry"], best(at, lambda system: system in ZMQ_PEERS)
                headline = metric == "GB/s" and size in (4096, 1 << 20)
                text = f"{what}, {quantities.size(size)}"
                yield Comparison(text, mine, at.get("zmq-tcp"), ratio(mine, peer), None, headline)
