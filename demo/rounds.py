# SPDX-License-Identifier: Apache-2.0
"""Rounds of the transports in turns; after each, diff compares what arrived with what was sent."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ending import Problem, messages, repeat_end
from fleet import Fleet
from room import remove
from screen import Estimate, Screen
from snapshot import Snapshot

DIFFERENCES_SHOWN = 10
TRANSPORTS = ("wherry", "tcp")


@dataclass
class Course:
    """What all rounds have in common."""

    program: Path
    snapshot: Snapshot
    shares: list[Path]  # for each shipper a file with the names of what it hands over
    work: Path
    in_memory: bool
    durable: bool  # the collector waits for the disk, whatever the transport

    def run(self, count: int, screen: Screen) -> dict[str, list[dict]]:
        rounds: dict[str, list[dict]] = {name: [] for name in TRANSPORTS}
        estimate = Estimate((count + 1) * len(TRANSPORTS))
        # The first round pays for memory that the machine has not used yet; it is not counted.
        for number in range(count + 1):
            title = f"round {number} of {count}" if number else "warm-up"
            done = {}
            # The second one finds the memory that the first has just freed, so they take turns at it.
            for name in sorted(TRANSPORTS, reverse=number % 2 == 0):
                with screen.progress(lambda: f"{title}, {name}: {estimate.text()}"):
                    done[name] = self._run_one(name)
                estimate.one_more()
            screen.say(f"{title}: wherry {done['wherry']['GB/s']:.3f} GB/s, tcp {done['tcp']['GB/s']:.3f} GB/s; both verified by diff -r")
            if number:
                for name in TRANSPORTS:
                    rounds[name].append(done[name])
        return rounds

    def _run_one(self, name: str) -> dict:
        destination = self.work / "arrived"
        size = self.snapshot.bytes
        with free_address(name) as address:
            fleet = Fleet(self.program, address, self.durable)
            seconds = fleet.run(self.snapshot.base, size, self.shares, destination)
        verify(self.snapshot.base, destination)
        remove(destination)
        if not self.in_memory:
            os.sync()  # No round pays for writing back what the one before it wrote.
        return {"seconds": seconds, "GB/s": size / seconds / 1e9, "cpu_s": fleet.cpu_seconds}


@contextlib.contextmanager
def free_address(transport: str) -> Iterator[str]:
    """Stays free for the collector, which may bind beside a socket that holds the port and does not listen."""
    if transport == "wherry":
        yield "wherry://0:2000"
        return
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{holder.getsockname()[1]}"


def verify(sent: Path, arrived: Path) -> None:
    """An independent tool compares; it knows nothing of what the shippers and the collector believe."""
    differences = messages()
    try:
        status = subprocess.run(["diff", "-rq", "--no-dereference", sent, arrived], stdin=subprocess.DEVNULL, stdout=differences,
                                stderr=differences, env=os.environ | {"LC_ALL": "C"}).returncode
    except FileNotFoundError as error:
        raise Problem("no program 'diff' to compare what arrived; it is in the package diffutils") from error
    if status != 0:  # 1: something differs. 2: something could not be read.
        repeat_end(differences, DIFFERENCES_SHOWN)
        raise Problem("diff found that what arrived is not what was sent")
