# SPDX-License-Identifier: Apache-2.0
"""Made-up results of the shape that `wherry bench` writes, for the tests: no measurement of anything."""

import random

SIZES = [64, 4096, 65536, 1 << 20, 1 << 24, 1 << 27]
# GB/s of large messages and ns of a message of no size: (handover), and how much touching costs.
SPEEDS = {
    "wherry": (16, 25),
    "wherry-reserve": (20, 20),
    "tcp": (3, 2000),
    "unix": (3.6, 1100),
    "pipe": (2.6, 380),
    "zmq-tcp": (2.4, 580),
    "zmq-ipc": (2.8, 410),
    "nanomsg-tcp": (1.6, 1600),
    "nanomsg-ipc": (2.4, 1500),
    "nng-tcp": (1.5, 20000),
    "nng-ipc": (1.9, 20000),
    "ucx": (13, 66),
    "ofi-shm": (14, 225),
    "ofi-tcp": (3.9, 5200),
    "mpich": (11, 700),
    "ompi": (10, 190),
    "aeron-ipc": (3.8, 400),
    "limit:memcpy-1": (24, 2),
    "limit:two-copy": (13.5, 45),
    "limit:one-copy": (19, 120),
    "limit:split-copy": (25, 1800),
}
IN_PLACE = {"wherry-zerocopy": 9e6, "iceoryx2": 1.45e6, "limit:in-place": 12e6}
MESSAGING = {"zmq-wherry": (5, 300), "wherry": (16, 25), "zmq-tcp": (2.4, 580), "zmq-ipc": (2.8, 410), "nng-ipc": (2, 2e4)}
ROOT = {"wherry": 6, "tsocket-tcp": 2, "tsocket-unix": 2.5, "tsocket-unix-corrected": 2.6, "hadd": 1.4}
FILE = {"native": (16, 110), "wherry-run-kernel": (16, 115), "wherry-run-cache": (22, 15), "wherry-run-auto": (21, 16), "wherry-api-cache": (22, 14), "wherry-api-host": (15, 900), "wherry-mount-cache": (3, 20), "wherry-mount-card": (3, 200), "wherry-mount-host": (15, 4000), "fuse-direct": (3, 20000)}
MAILBOX = {"mailbox-equal": 0.05, "mailbox-topology-2": 0.9, "mailbox-adaptive": 0.85}
PYTHON = {"python-wherry": 5000, "python-wherry-framed": 3000, "python-pyzmq-tcp": 10000, "python-iceoryx2": 7000}
MPI = {"mpich": 900, "mpich-ofi-tcp": 5500, "wherry-mpich-adaptive": 700, "ompi": 400, "wherry-ompi-topology": 450}
LATENCIES = {
    "wherry": 190,
    "aeron-ipc": 263,
    "ucx": 421,
    "ompi": 487,
    "iceoryx2": 686,
    "mpich": 926,
    "unix": 23290,
    "tcp": 30196,
    "pipe": 24698,
    "zmq-ipc": 58802,
    "wherry-zerocopy": 240,
    "limit:cache-line": 140,
    "limit:futex": 29640,
    "limit:eventfd": 28300,
}


def results(seed: int = 1) -> dict:
    """One file with rows of every question."""
    dice = random.Random(seed)
    rows: list[dict] = []

    def add(bench, system, mode, senders, size, metric, value):
        spread = abs(dice.gauss(0, 0.04))
        version = "" if system.startswith(("wherry", "limit:")) else "1.2.3"
        rows.append(
            {
                "bench": bench,
                "system": system,
                "version": version,
                "mode": mode,
                "senders": senders,
                "size": size,
                "metric": metric,
                "median": value * dice.uniform(0.93, 1.07),
                "mad": value * spread,
                "n": 5,
            }
        )

    for bench, senders, sizes in (("stream", [1], SIZES), ("many", [8, 60], [65536, 2 << 20, 8 << 20])):
        for count in senders:
            for size in sizes:
                add_throughput(add, bench, count, size)
    for system, (gigabytes, overhead) in MESSAGING.items():
        for size in SIZES:
            rate = 1 / (overhead / size + 1 / gigabytes)
            add("zmq", system, "handover", 1, size, "GB/s", rate)
            add("zmq", system, "handover", 1, size, "cpu_s_per_GB", 2 / rate)
            add("zmq", system, "handover", 1, size, "ns_mean", 100 * overhead)
    for system, overhead in PYTHON.items():
        for size in (4096, 65536, 1 << 20):
            add("python", system, "handover", 1, size, "msgs/s", 1e9 / (overhead + size / 10))
            add("python", system, "touched", 1, size, "GB/s", size / (overhead + size / 5))
    for system, nanoseconds in LATENCIES.items():
        for size in (8, 64, 1024, 4096, 65536):
            add_latency(add, system, nanoseconds, size)
    for count in (1, 10, 100, 1000):
        for system, nanoseconds, memory in (("wherry", 1.2e5, 1.5e4), ("tcp", 3e4, 5e4), ("unix", 1.5e4, 4e4)):
            add("connect", system, "handover", count, 0, "connect_ns", nanoseconds * (1 + count / 4000))
            add("connect", system, "handover", count, 0, "memory_bytes_per_connection", memory)
    add_root(add)
    add_file(add)
    add_mailbox(add)
    add_mpi(add)
    return {"environment": environment(), "rows": rows}


def add_root(add) -> None:
    """Every number of workers at one size, every size with one number of workers, one of each with the Higgs tree."""
    for system, gigabytes in ROOT.items():
        for workers, size in ((1, 2 << 20), (4, 2 << 20), (60, 2 << 20), (4, 65536), (4, 8 << 20)):
            for prefix, share in (("", 1), ("fill_", 0.5), ("merge_", 0.2)):
                rate = share * gigabytes * size / (size + 1e5)
                add("root", system, "processes", workers, size, prefix + "GB/s", rate)
                add("root", system, "processes", workers, size, prefix + "cpu_s_per_GB", 2 / rate)
            add("root", system, "processes", workers, size, "memory_bytes_per_worker", 1e7 + 3 * size)
        add("root", system, "processes-higgs", 4, 1960000, "merge_GB/s", gigabytes / 10)


def add_file(add) -> None:
    """Every size with one process, every number of processes at one size."""
    for system, (gigabytes, overhead) in FILE.items():
        for mode in ("hit", "hit-threads", "first", "cold", "write"):
            filled = 3 if (mode, system) == ("first", "wherry-api-cache") else gigabytes
            for processes, size in ((1, 512), (1, 65536), (1, 1 << 24), (8, 65536), (48, 65536)):
                rate = 1 / (overhead / size + 1 / filled)
                add("file", system, mode, processes, size, "GB/s", rate)
                add("file", system, mode, processes, size, "cpu_s_per_GB", 1 / rate)
        add("file", system, "random-read", 1, 4096, "GB/s", 1 / (overhead / 4096 + 1 / gigabytes))


def add_mailbox(add) -> None:
    """Two numbers of processes started with two sizes, and two numbers of senders."""
    for system, share in MAILBOX.items():
        for started, left in ((2, 1), (48, share)):
            for size in (64, 65536):
                add("mailbox", system, "handover", started, size, "GB/s", 10 * left * size / (size + 1000))
                add("mailbox", system, "handover", started, size, "ns_p50", 300 + size / 10 / left)
        add("mailbox", system, "handover", 48, 64, "share_of_fewest", share)
        for connected in (2, 1000):
            add("mailbox", system, "handover", connected, 8, "ns_receive", 60)


def add_mpi(add) -> None:
    for system, nanoseconds in MPI.items():
        for ranks in (2, 48):
            for size in (8, 65536):
                add("mpi", system, "latency", ranks, size, "ns_p50", nanoseconds + size / 10)
                add("mpi", system, "bandwidth", ranks, size, "GB/s", size / (nanoseconds + size / 10))
            for mode in ("halo-1", "heat"):
                add("mpi", system, mode, ranks, 1024, "ns_mean", 20 * ranks * nanoseconds)
            add("mpi", system, "memory", ranks, 0, "shared_bytes", 1e6 * ranks)


def add_throughput(add, bench: str, senders: int, size: int) -> None:
    for system, (gigabytes, overhead) in SPEEDS.items():
        if bench == "many" and system.startswith("limit:"):
            continue
        paging = 1 / (1 + size / (1 << 28))
        for mode, share in (("handover", 1.0), ("touched", 0.55)):
            rate = share * paging / (overhead / size + 1 / gigabytes) / (1 if senders == 1 else 1.5)
            add(bench, system, mode, senders, size, "GB/s", rate)
            add(bench, system, mode, senders, size, "msgs/s", rate * 1e9 / size)
            add(bench, system, mode, senders, size, "cpu_s_per_GB", 2 / rate)
            add(bench, system, mode, senders, size, "switches_per_GB", 1e4 / rate)
    for system, messages in IN_PLACE.items():
        if bench == "many" and system.startswith("limit:"):
            continue
        touched = 1 / (1e9 / messages / size + 1 / 16)
        add(bench, system, "handover", senders, size, "msgs/s", messages)
        add(bench, system, "touched", senders, size, "GB/s", touched)
        add(bench, system, "touched", senders, size, "cpu_s_per_GB", 2 / touched)


def add_latency(add, system: str, nanoseconds: float, size: int) -> None:
    if system in ("limit:futex", "limit:eventfd", "limit:cache-line") and size != 64:
        return
    median = nanoseconds + size / 12
    if system not in ("limit:futex", "limit:eventfd"):
        for metric, factor in (("ns_p50", 1), ("ns_p99", 2.2), ("ns_p99.9", 40), ("ns_max", 300)):
            add("latency", system, "handover", 1, size, metric, median * factor)
    if system != "limit:cache-line":
        for metric, factor in (("asleep_ns_p50", 1), ("asleep_ns_p99", 2.5)):
            add("latency", system, "handover", 1, size, metric, max(median, 25000) * factor)


def environment() -> dict:
    systems = {system: {"version": "1.2.3", "settings": f"the best calls of {system}"} for system in SPEEDS}
    return {
        "cpu": "Made-up CPU",
        "processor": {
            "make": "Maker",
            "family": "6",
            "model": "7",
            "caches": [
                {"name": "L1d", "bytes": 48 << 10, "cores": "0"},
                {"name": "L2", "bytes": 2 << 20, "cores": "0"},
                {"name": "L3", "bytes": 32 << 20, "cores": "0-1"},
            ],
        },
        "cores": 2,
        "kernel": "6.1.0",
        "architecture": "x86_64",
        "memory_bytes": 16 << 30,
        "samples": 5,
        "seed": 1,
        "foreign_load_max": 0.031,
        "retaken": 2,
        "placement": {
            "cores": [0, 1],
            "counted": {"round_trip_ns": 115.4, "copy_GB/s": 50.34, "probes": 75},
            "others": [{"round_trip_ns": 530.2, "copy_GB/s": 24.1, "probes": 25}],
            "retaken": 12,
            "elsewhere": 1,
        },
        "systems": systems,
        "not_found": {"openmpi": "no mpicc"},
    }
