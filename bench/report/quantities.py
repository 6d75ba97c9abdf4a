# SPDX-License-Identifier: Apache-2.0
"""Figures as people read them: three digits and a unit."""

import math


def size(count: int) -> str:
    """Bytes as "64 B", "4 KiB", "1 MiB", "1.96 MB": with the largest unit that divides them, rounded if none does."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} B" if count < 100_000 else byte_count(count)


def digits(value: float) -> str:
    """Three significant digits, without an exponent: 0.0312, 3.12, 31.2, 3120."""
    if value == 0:
        return "0"
    # Rounded first: 9.996 has one digit before the point, and 10.0 two.
    rounded = float(f"{value:.3g}")
    places = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:.{max(places, 0)}f}"


def scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """With the largest unit of which it is at least one, once rounded: 999.7 ns is 1.00 µs."""
    rounded = float(f"{value:.3g}")
    factor, unit = next(((factor, unit) for factor, unit in units if rounded >= factor), units[-1])
    return f"{digits(value / factor)} {unit}"


def nanoseconds(value: float) -> str:
    return scaled(value, ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")))


def per_second(value: float) -> str:
    return scaled(value, ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1, "/s")))


def byte_count(value: float) -> str:
    """Bytes that were measured, not chosen: in thousands."""
    return scaled(value, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def quantity(value: float, metric: str) -> str:
    """A figure of this metric with its unit."""
    if metric.endswith("GB/s"):
        return f"{digits(value)} GB/s"
    if metric == "msgs/s":
        return per_second(value)
    if "ns" in metric.split("_"):
        return nanoseconds(value)
    if "bytes" in metric:
        return byte_count(value)
    if metric.endswith("cpu_s_per_GB"):
        return f"{digits(value)} s/GB"
    if metric == "switches_per_GB":
        return f"{digits(value)} /GB"
    return digits(value)


def lower_is_better(metric: str) -> bool:
    return not metric.endswith(("GB/s", "msgs/s", "share_of_fewest"))


def noise(median: float, mad: float) -> str:
    """A spread that a reader must know of: "±14 %" where the deviation is above a tenth of the median."""
    if median <= 0 or mad / median <= 0.1:
        return ""
    return f"±{100 * mad / median:.0f} %"
