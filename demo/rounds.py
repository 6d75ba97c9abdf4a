# SPDX-License-Identifier: Apache-2.0
"""Rounds of the transports in turns; after each, diff compares what arrived with what was sent."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ending import Problem, messages, repeat_end
from fleet import Fleet
from room import remove
from screen import Estimate, Screen
from snapshot import Snapshot
from transports import Transport

DIFFERENCES_SHOWN = 10


@dataclass
class Course:
    """What all rounds have in common."""

    transports: list[Transport]  # Wherry first
    snapshot: Snapshot
    shares: list[Path]  # for each shipper a file with the names of what it hands over
    work: Path
    in_memory: bool

    def run(self, count: int, screen: Screen) -> dict[str, list[dict]]:
        rounds: dict[str, list[dict]] = {transport.name: [] for transport in self.transports}
        estimate = Estimate((count + 1) * len(self.transports))
        # The first round pays for memory that the machine has not used yet; it is not counted.
        for number in range(count + 1):
            title = f"round {number} of {count}" if number else "warm-up"
            done = {}
            # The second one finds the memory that the first has just freed, so they take turns at it.
            for transport in sorted(self.transports, key=lambda one: one.name, reverse=number % 2 == 0):
                with screen.progress(lambda: f"{title}, {transport.name}: {estimate.text()}"):
                    done[transport.name] = self._run_one(transport)
                estimate.one_more()
            speeds = ", ".join(f"{name} {done[name]['GB/s']:.3f} GB/s" for name in rounds)
            screen.say(f"{title}: {speeds}; {'both' if len(rounds) == 2 else 'all'} verified by diff -r")
            if number:
                for name in rounds:
                    rounds[name].append(done[name])
        return rounds

    def _run_one(self, transport: Transport) -> dict:
        destination = self.work / "arrived"
        size = self.snapshot.bytes
        with transport.address() as address:
            fleet = Fleet(transport, address)
            seconds = fleet.run(self.snapshot.base, size, self.shares, destination)
        verify(self.snapshot.base, destination)
        remove(destination)
        if not self.in_memory:
            os.sync()  # No round pays for writing back what the one before it wrote.
        return {"seconds": seconds, "GB/s": size / seconds / 1e9, "cpu_s": fleet.cpu_seconds}


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
