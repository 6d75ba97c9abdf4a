# SPDX-License-Identifier: Apache-2.0
"""The words of the page."""

import re

import quantities

BENCHES = {
    "stream": (
        "One to one",
        (
            "One process sends, another receives, each on a core of its own. <b>Hand-over</b> is the transport "
            "alone: nobody writes or reads the payload. With the <b>payload written and read</b> the producer writes "
            "every byte of every message and the consumer sums every byte, as a program that has something to say "
            "does."
        ),
    ),
    "latency": (
        "One way",
        (
            "Two processes throw one message to and fro; a figure is half of a round trip. <b>Awake</b>: both look "
            "for it all the time or wait as the transport does by itself. <b>To a sleeper</b>: each waits before it "
            "answers until the other has surely gone to sleep."
        ),
    ),
    "many": (
        "Many to one",
        (
            "Many processes send to one receiver, more of them than there are cores. Nobody is pinned. Memory is the "
            "proportional set size of all processes, message buffers included."
        ),
    ),
    "idle": (
        "One busy connection among idle ones",
        (
            "One receiver has the given number of connections; all messages come over one of them. A receiver that "
            "looks at all of them gets slower with their number; one that is notified does not."
        ),
    ),
    "connect": ("Connecting", "What it takes to connect, and what a connection costs while it stays."),
    "scif": (
        "SCIF",
        (
            "The interface of the Xeon Phi between two processes: messages, one-sided writes and reads of registered "
            "memory, each followed by a signalled word, and plain stores through a mapping."
        ),
    ),
    "zmq": (
        "ZeroMQ",
        (
            "What programs gain that use ZeroMQ and change their endpoints to wherry://: libzmq's own programs for "
            "throughput and latency, unmodified, over Wherry, tcp and ipc; beside them nanomsg, nng, and the native "
            "stream without any messaging library above it. The payload is neither written nor read."
        ),
    ),
    "root": (
        "ROOT",
        (
            "Workers fill trees and one ROOT file comes out. Three figures: <b>transfer only</b>, files that are ready "
            "are handed over and the server reads each byte once; <b>live fill</b>, workers fill and write trees, the "
            "server does the same; <b>with merge</b>, until the output file is closed. Bytes are those of the files as "
            "ordinary ROOT files, whatever is sent for them. <b>Corrected</b>: the stock programs, but the output has "
            "the files' compression, and exact bytes are sent instead of blocks of 2 MiB. The output lies in memory."
        ),
    ),
    "file": (
        "Files",
        (
            "One program reads and writes a file with plain calls, natively and by each of Wherry's paths; a unit is what one "
            "call moves, with one buffer again and again. <b>Hits</b> were read before by another process; at <b>first "
            "touch</b> the kernel's cache has the file and no other; <b>cold</b>: none has it. Writes go over what the file "
            "has, without and with fsync at the end. <b>Used</b>: each byte is summed up, or stored before, in pieces of "
            "64 KiB or with one call for all. Bytes of several processes are in files of their own."
        ),
    ),
    "mailbox": (
        "Mailboxes",
        (
            "A receiver's buffer has a fixed size and a section for each sender. Two processes talk, neighbours on a "
            "ring; the others are connected to both and sleep. All mailboxes together have the same bytes, however many "
            "are started. <b>Equal</b>: the same section for each. <b>Topology</b>: a header of 2 or 3 lines for each, "
            "and both neighbours share the rest. <b>Adaptive</b>: those that send share it. <b>wherry</b> is a stream, "
            "whose memory nobody counts."
        ),
    ),
    "mpi": (
        "MPI",
        (
            "One unmodified MPI program over Wherry, over each MPI's own shared memory and over other providers of "
            "libfabric; each launch measures everything, and launches take turns. Ranks 0 and 1 are neighbours on a "
            "ring of all; the others sleep meanwhile. Halo exchanges, the heat equation and the Fourier transform are of "
            "all ranks. Memory is what all ranks have at the end, less what they had before MPI_Init."
        ),
    ),
    "net": (
        "Between two hosts",
        (
            "One sender, one receiver, each on a host of its own: network namespaces of this machine that a veth pair "
            "joins. <b>ofi-ring</b> is the simplest program over libfabric: <code>fi_writedata</code> into a ring of "
            "the receiver's, copied in and out."
        ),
    ),
    "python": (
        "Python",
        (
            "Arrays of 64-bit words from one Python process to another, as ndarrays on both sides. <b>wherry</b>, "
            "<b>iceoryx2</b> and <b>shared-memory</b> leave the elements in memory that both map; <b>wherry-framed</b> "
            "and <b>pyzmq</b> copy them. Used: the sender fills each array and the receiver sums it up, with numpy."
        ),
    ),
    "limit": (
        "Limits of the machine",
        (
            "Each is the simplest program that does only that: memcpy by one core and by two at once, a two-copy "
            "pipeline through a shared buffer, one copy out of a shared buffer, split copy, where each side copies "
            "half, and slots that are written and read in place."
        ),
    ),
    "death": ("When a peer dies", "Until this side notices that a peer was killed."),
    "copy_between": (
        "Copy kernels, between two cores",
        "One core copies into a ring, the other out of it: the ways that WHERRY_COPY names, and the one in use.",
    ),
    "copy_hot": ("Copy kernels, in the cache", "The library's own ways to copy, within one process."),
    "copy_cold": (
        "Copy kernels, from memory",
        "The same, from a source that is in no cache to a place that is in none.",
    ),
}
GLANCE = (
    "A ratio above 1 means that Wherry is better, for rates and for times alike. ≈: the two differ by less than "
    "their deviations together, so no difference was shown. A stream is compared with peers that copy too, zero-copy "
    "with all. The limit is the best that a minimal program of the same kind reached in the same run: not a proof "
    "that nothing faster exists."
)
SYSTEMS = (
    "Each peer is driven by its own best settings. Versions are those that the libraries themselves gave at run time."
)
METHOD = (
    "Every figure is the median of the samples; the spread is their median absolute deviation, shown where it "
    "exceeds a tenth of the median. Within one run the systems take turns in random order, sample by sample, after a "
    "warm-up sample of each that also chooses how many messages a sample has. Ratios are taken within one run only.",
    "The clock runs from a common start to the last message received. CPU seconds are user and system time of all "
    "processes and threads that take part, in that time. A sample during which other processes kept more than 15 % "
    "of a core busy is taken again, at most twice.",
    "A host moves virtual cores about: two cores of one cache become two threads of one core, or far from each other, and "
    "figures change severalfold. Before and after each sample the two cores are therefore probed for less than a "
    "millisecond: how long a cache line takes to and fro, and how fast one core reads what the other writes through a "
    "small buffer. Probes that differ by less than a factor of about 1.5 are one placement. The placement of most probes "
    "of a run counts; samples from another are taken again, at most twice, when the cores are back.",
    "In place: iceoryx2 and Wherry's zero-copy messages hand over a reference. How many of those a second says "
    "nothing about bytes, so it is given in messages only; compare bytes where the payload is written and read.",
    "KiB, MiB: powers of two. kB, MB, GB: powers of ten.",
)
TRANSPORTS = ("stream", "latency", "many", "idle", "connect")
MACHINE_KEYS = ("cpu", "processor", "cores", "memory_bytes", "kernel", "architecture", "compiler", "governor", "hypervisor")
# Told elsewhere on the page.
NOT_FACTS = (*MACHINE_KEYS, "systems", "not_found", "failed")
SHARES = ("foreign_load_max", "steal_max")


def heading(bench: str) -> str:
    return BENCHES[bench][0] if bench in BENCHES else bench


def about(bench: str) -> str:
    return BENCHES[bench][1] if bench in BENCHES else ""


def machine(environment: dict) -> list[str]:
    """The machine in a few words."""
    words = [value_text(key, environment[key]) for key in ("cpu", "processor") if key in environment]
    if "cores" in environment:
        words.append(f"{environment['cores']} cores")
    if isinstance(environment.get("memory_bytes"), (int, float)):
        words.append(quantities.byte_count(environment["memory_bytes"]))
    if "kernel" in environment:
        words.append(f"Linux {environment['kernel']}")
    return words or ["Unknown machine"]


def facts(environment: dict, keys) -> list[tuple[str, str]]:
    return [(key.replace("_", " "), value_text(key, environment[key])) for key in keys if key in environment]


def run_facts(environment: dict) -> list[tuple[str, str]]:
    return facts(environment, [key for key in environment if key not in NOT_FACTS])


def value_text(key: str, value: object) -> str:
    if key == "processor" and isinstance(value, dict):
        return processor(value)
    if key == "placement" and isinstance(value, dict):
        return placement(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if key in SHARES:
        return f"{100 * value:.0f} % of a core"
    if key.endswith("bytes"):
        return quantities.byte_count(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def processor(facts: dict) -> str:
    """Make, family and model of a core, and its caches with the cores that share them."""
    kind = [str(facts.get("make") or "unknown make")]
    kind += [f"{key} {facts[key]}" for key in ("family", "model") if facts.get(key)]
    caches = []
    for cache in facts.get("caches", []):
        shared = f" of cores {cache['cores']}" if re.search("[-,]", cache["cores"]) else ""
        caches.append(f"{cache['name']} {quantities.size(cache['bytes'])}{shared}")
    return " ".join(kind) + (f": {', '.join(caches)}" if caches else "")


def placement(facts: dict) -> str:
    """Which placement of the two cores counts, and what became of samples from others."""
    if "not_probed" in facts:
        return f"not probed: {facts['not_probed']}"
    if "counted" not in facts:
        return "not known: the cores were never free to be probed"
    seen = [facts["counted"], *facts.get("others", [])]
    probes = sum(one["probes"] for one in seen)

    def text(one: dict) -> str:
        share = f"{100 * one['probes'] / probes:.0f} %"
        return f"{quantities.digits(one['round_trip_ns'])} ns, {quantities.digits(one['copy_GB/s'])} GB/s ({share})"

    parts = [f"cores {' and '.join(map(str, facts['cores']))}: {text(seen[0])} of {probes} probes"]
    if seen[1:]:
        parts.append("also " + ", ".join(map(text, seen[1:])))
    parts += [
        f"{facts[key]} samples {what}"
        for key, what in (("retaken", "taken again for it"), ("elsewhere", "count that were taken elsewhere"))
        if facts.get(key)
    ]
    return "; ".join(parts)
