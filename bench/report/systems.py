# SPDX-License-Identifier: Apache-2.0
"""How each system looks, the same in every plot, and which is Wherry, a peer or a limit.

Wherry is blue and thick. The peers a reader will look for have a colour of Okabe and Ito's palette or near it, which
people who see few colours can tell apart, and a marker, for those who see none. All others are thin and grey and carry
their name at the end of the line; so do limits, dashed. A name that is not in the table is grey: a new peer needs no
change here.
"""

import re
from dataclasses import dataclass

# Light and dark form of every colour; a plot is drawn in the light ones, the page exchanges them (svg.py).
INK = ("#222222", "#e8e8e8")
FAINT = ("#e3e3e3", "#3a3f44")
GREY = ("#a3a3a3", "#767676")
GREY_TEXT = ("#6f6f6f", "#a0a0a0")
LIMIT = ("#8c8c8c", "#909090")
PAPER = ("#fefefe", "#16191c")

# name: (colours, marker). The order is that of tables.
WHERRY = {
    "wherry": (("#0072b2", "#4fb0ec"), "o"),
    "wherry-reserve": (("#56a4d9", "#9cd3fb"), "s"),
    "wherry-zerocopy": (("#1f3a93", "#93a8ff"), "D"),
    "wherry-tscif": (("#3fa7c4", "#86d5ea"), "D"),
}
COLOURED = {
    "ucx": (("#d18f00", "#f0b429"), "^"),
    "ofi-shm": (("#009e73", "#2fc79b"), "v"),
    "mpich": (("#cc79a7", "#e39cc4"), "P"),
    "ompi": (("#9a5b80", "#c08aa9"), "X"),
    "iceoryx2": (("#d55e00", "#ff8a3c"), "h"),
    "aeron-ipc": (("#7a6a00", "#cbb93a"), "*"),
    "tcp": (("#4d4d4d", "#c9c9c9"), "x"),
    "unix": (("#4e4e4e", "#cacaca"), "+"),
}
# Where messaging libraries are what is asked about (`wherry bench zmq`), they have colours too.
MESSAGING = {
    "zmq-wherry": (("#117733", "#4fc27b"), "s"),
    "zmq-tcp": (("#c44601", "#ff9a66"), "^"),
    "zmq-ipc": (("#e5a100", "#f5c451"), "v"),
    "nanomsg-tcp": (("#882255", "#d06fa4"), "P"),
    "nanomsg-ipc": (("#bb6699", "#e6a3c8"), "X"),
    "nng-tcp": (("#5a5a5a", "#b9b9b9"), "x"),
    "nng-ipc": (("#8a8a6a", "#c4c4a0"), "+"),
}
# What `wherry bench root` compares.
ROOT = {
    "tsocket-tcp": (("#c0392b", "#ff8f80"), "^"),
    "tsocket-unix": (("#b8860b", "#e6c35c"), "v"),
    "tsocket-tcp-corrected": (("#8e44ad", "#cf9ae6"), "P"),
    "tsocket-unix-corrected": (("#2e7d32", "#7fcf83"), "X"),
    "hadd": (("#5d4037", "#c4a597"), "s"),
    "tbuffermerger": (("#00796b", "#5fc9bb"), "h"),
    "rntuple": (("#546e7a", "#a9c1cc"), "*"),
}
# What `wherry bench file` compares.
FILE = {
    "native": (("#4f4f4f", "#cbcbcb"), "x"),
    "two-copies": (("#7a6a4f", "#d6c8ad"), "P"),
    "wherry-run-kernel": (("#8a9a5b", "#b9c98a"), "v"),
    "wherry-run-cache": (("#0a6fae", "#58b4ea"), "s"),
    "wherry-run-auto": (("#16408f", "#8fa9fb"), "o"),
    "wherry-api-kernel": (("#6a4c93", "#b79be0"), "v"),
    "wherry-api-cache": (("#2a9d8f", "#6fd6c9"), "s"),
    "wherry-api-auto": (("#1b7f3b", "#63cf86"), "o"),
    "wherry-api-host": (("#c2185b", "#f06fa5"), "D"),
    "wherry-mount": (("#1d3557", "#7aa6d6"), "d"),
    "wherry-mount-run": (("#00838f", "#6fd3dc"), "H"),
    "wherry-mount-requests": (("#6d6875", "#b5b0bd"), "8"),
    "wherry-mount-card": (("#4f5d75", "#a3b1cc"), "v"),
    "wherry-mount-cache": (("#7209b7", "#c77dff"), "s"),
    "wherry-mount-host": (("#9d0208", "#f28482"), "D"),
    "wherry-mount-auto": (("#2f6f4e", "#8fd0ac"), "o"),
    "sshfs": (("#5c6bc0", "#aab4ec"), "*"),
    "fuse-cached": (("#c77b1e", "#f0b063"), "^"),
    "fuse-through": (("#a04000", "#e59866"), ">"),
    "fuse-direct": (("#7b5b2e", "#c9a66b"), "P"),
}
# What `wherry bench mailbox` compares; and one layout with more and more processes.
MAILBOX = {
    "mailbox-topology-2": (("#0b5fa5", "#5cb0f2"), "o"),
    "mailbox-topology-3": (("#3a8fb7", "#8acdee"), "s"),
    "mailbox-adaptive": (("#1b7a4b", "#61c795"), "D"),
    "mailbox-equal": (("#b0413e", "#f08c88"), "v"),
    "2 started": (("#163a5f", "#9ec5ee"), "o"),
    "12 started": (("#2f6f8f", "#86c6e2"), "s"),
    "24 started": (("#c98a1b", "#f2c26b"), "^"),
    "48 started": (("#b5502b", "#f29a76"), "v"),
    "96 started": (("#7d3c6b", "#d191bd"), "X"),
}
# What `wherry bench python` compares.
PYTHON = {
    "python-wherry": (("#0d6b8c", "#5fbfe0"), "o"),
    "python-wherry-framed": (("#1f7a5c", "#66cba8"), "s"),
    "python-pyzmq-tcp": (("#c2500a", "#fb9b6a"), "^"),
    "python-pyzmq-ipc": (("#d99a06", "#f2c65c"), "v"),
    "python-iceoryx2": (("#8c2d62", "#d678a8"), "P"),
    "python-shared-memory": (("#5e5e66", "#bcbcc4"), "x"),
}
# What `wherry bench mpi` compares beside mpich and ompi.
MPI = {
    "wherry-mpich-adaptive": (("#0073b3", "#50b1ed"), "o"),
    "wherry-mpich-topology": (("#0a4f8a", "#74b6f0"), "s"),
    "wherry-mpich-equal": (("#7fb2d9", "#b8d9f2"), "D"),
    "wherry-ompi-adaptive": (("#1d7d4d", "#63c897"), "o"),
    "wherry-ompi-topology": (("#115c37", "#86d6ae"), "s"),
    "wherry-ompi-equal": (("#8cc2a4", "#c3e4d1"), "D"),
    "mpich-yield": (("#b893a5", "#dcb8cc"), "P"),
    "mpich-ofi-shm": (("#d09000", "#f1b52a"), "^"),
    "mpich-ofi-tcp": (("#5e5e5e", "#bababa"), "x"),
    "ompi-ofi-tcp": (("#6e6e6e", "#b0b0b0"), "+"),
}
OTHERS = ("pipe", "zmq-wherry", "zmq-tcp", "zmq-ipc", "nanomsg-tcp", "nanomsg-ipc", "nng-tcp", "nng-ipc", "ofi-tcp")
LIMITS = (
    *("memcpy-1", "memcpy-2", "kernel-copy", "two-copy", "one-copy", "split-copy", "in-place"),
    *("cache-line", "futex", "eventfd"),
)
LIMIT_PREFIX = "limit:"
DASHES = {
    "two-copy": (5, 2),
    "one-copy": (1, 1.5),
    "split-copy": (6, 2, 1, 2),
    "in-place": (3, 1.5),
    "memcpy-1": (2, 4),
}
RANK = {
    name: rank
    for rank, name in enumerate([*WHERRY, *COLOURED, *OTHERS, *ROOT, *FILE, *MAILBOX, *MPI, *PYTHON, *(LIMIT_PREFIX + name for name in LIMITS)])
}


@dataclass(frozen=True)
class Look:
    colour: str
    text: str
    marker: str
    width: float
    dashes: tuple[float, ...] | None
    layer: int


def is_wherry(system: str) -> bool:
    return re.match(r"(python-)?wherry($|-)", system) is not None


def is_limit(system: str) -> bool:
    return system.startswith(LIMIT_PREFIX)


def is_peer(system: str) -> bool:
    return not is_wherry(system) and not is_limit(system)


def short(system: str) -> str:
    """The name without "limit:", where a heading or a dash already marks limits."""
    return system.removeprefix(LIMIT_PREFIX)


def in_order(systems) -> list[str]:
    """Wherry's first, then peers, then limits; what the tables above do not name comes last of its kind."""

    def place(system: str) -> tuple:
        kind = 0 if is_wherry(system) else 2 if is_limit(system) else 1
        return (kind, RANK.get(system, len(RANK)), system)

    return sorted(systems, key=place)


def look(system: str, bench: str = "") -> Look:
    """In the plots of that question."""
    if is_limit(system):
        dashes = DASHES.get(short(system), (4, 3))
        return Look(LIMIT[0], GREY_TEXT[0], "", 1.3, dashes, 2)
    if system in WHERRY:
        (light, _), marker = WHERRY[system]
        return Look(light, light, marker, 2.8, None, 5)
    if system in COLOURED:
        (light, _), marker = COLOURED[system]
        return Look(light, light, marker, 1.4, None, 4)
    if bench == "zmq" and system in MESSAGING:
        (light, _), marker = MESSAGING[system]
        return Look(light, light, marker, 2.4 if system == "zmq-wherry" else 1.4, None, 4)
    if system in ROOT:
        (light, _), marker = ROOT[system]
        return Look(light, light, marker, 1.4, None, 4)
    if system in FILE:
        (light, _), marker = FILE[system]
        return Look(light, light, marker, 2.0 if is_wherry(system) else 1.4, None, 4)
    if system in MAILBOX | MPI | PYTHON:
        (light, _), marker = (MAILBOX | MPI | PYTHON)[system]
        return Look(light, light, marker, 2.0 if is_wherry(system) else 1.4, None, 4)
    if is_wherry(system):
        return Look(WHERRY["wherry"][0][0], WHERRY["wherry"][0][0], "", 2.8, None, 5)
    return Look(GREY[0], GREY_TEXT[0], "", 0.9, None, 3)


def lettering(system: str, bench: str = "") -> dict[str, str]:
    """How a plot writes the name."""
    return {
        "color": look(system, bench).text,
        "fontweight": "bold" if is_wherry(system) else "normal",
        "fontstyle": "italic" if is_limit(system) else "normal",
    }


def colour_pairs() -> dict[str, tuple[str, str]]:
    """Every colour of a plot by the name of its CSS variable: (light, dark). No two light ones are the same."""
    pairs = {"ink": INK, "faint": FAINT, "grey": GREY, "grey-text": GREY_TEXT, "limit": LIMIT, "paper": PAPER}
    pairs |= {system: colours for system, (colours, _) in (WHERRY | COLOURED | MESSAGING | ROOT | FILE | MAILBOX | MPI | PYTHON).items()}
    return pairs
