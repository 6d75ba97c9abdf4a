#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many workers on a card hand their files to the host, over Wherry and, with the same program, over TCP.

One round of one transport: a collector on node 0, N shippers on node 1 that each hand over a share of one tree, all at
once; then `diff -r` says whether what arrived is what was sent. Rounds of the two transports alternate; medians are
printed. CPU seconds are those of all the shippers and the collector, as the kernel accounts them.
"""

import argparse
import heapq
import json
import os
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORTH_SHOWING = 500_000_000  # bytes; a smaller tree gets generated files beside it
GENERATED_FILES_PER_SHIPPER = 10
GENERATED_FILE_BYTES = 2_000_000
PATIENCE = 600  # seconds for one round: a watchdog, not a claim
MEMORY = Path("/dev/shm")
ROOM = 4_000_000_000  # bytes to keep free there, for generated files and for whatever else the machine does


class Tree:
    """What is handed over: (path relative to base, bytes) of everything that can be read."""

    def __init__(self, base: Path):
        self.base = base
        self.entries: list[tuple[str, int]] = []
        self.skipped = 0
        self.regular: list[str] = []
        self.bytes = 0

    def add(self, top: str) -> None:
        self._add_entry(top)
        for folder, folders, files in os.walk(self.base / top):
            for name in sorted(folders + files):
                self._add_entry(os.path.relpath(os.path.join(folder, name), self.base))

    def _add_entry(self, path: str) -> None:
        full = self.base / path
        status = full.lstat()
        regular, link = stat.S_ISREG(status.st_mode), stat.S_ISLNK(status.st_mode)
        if not (regular or link or stat.S_ISDIR(status.st_mode)) or not (link or os.access(full, os.R_OK)):
            self.skipped += 1
            return
        self.entries.append((path, status.st_size if regular else 0))
        if regular:
            self.regular.append(path)
            self.bytes += status.st_size

    def shares(self, count: int) -> list[list[str]]:
        """Deals the entries out, the largest first and each to whoever has least, so that all finish together."""
        loads = [(0, index) for index in range(count)]
        shares: list[list[str]] = [[] for _ in range(count)]
        for path, size in sorted(self.entries, key=lambda entry: -entry[1]):
            load, index = heapq.heappop(loads)
            shares[index].append(path)
            # An entry costs something even when it is empty.
            heapq.heappush(loads, (load + size + 20_000, index))
        return shares


def cpu_seconds(usage) -> float:
    return usage.ru_utime + usage.ru_stime


def reap(collector: subprocess.Popen, shippers: list[subprocess.Popen]) -> list[tuple[int, float]]:
    """Waits for all; exit status and CPU seconds of each. When a shipper fails, the collector need not wait for it."""
    running = {process.pid: process for process in [collector, *shippers]}
    ended = []
    while running:
        pid, status, usage = os.wait4(-1, 0)
        if process := running.pop(pid, None):
            process.returncode = os.waitstatus_to_exitcode(status)
            ended.append((process.returncode, cpu_seconds(usage)))
            if process.returncode != 0 and process is not collector and collector.pid in running:
                collector.terminate()
        elif collector.pid in running:  # The watchdog ended: this takes far too long.
            collector.kill()
    return ended


def run_round(program: Path, tree: Tree, shares: list[Path], destination: Path, address: str, log: Path) -> dict:
    destination.mkdir(parents=True)
    environment = os.environ | {"WHERRY_JOB": f"demo-{os.getpid()}", "WHERRY_NODE": "0"}
    with open(log, "wb") as errors:
        collector = subprocess.Popen(
            [program, "collect", "--listen", address, "--into", destination, "--expect", str(len(shares)), "--quiet"],
            stdout=errors, stderr=errors, env=environment)
        begin = time.monotonic()
        shippers = [
            subprocess.Popen(
                [program, "run", "--node", "1", "--", program, "ship", "--to", address, "--wait", "30", "--quiet",
                 "--name", f"worker {index}", "-C", tree.base, "--no-recursion", "-0", "--files-from", share],
                stdout=errors, stderr=errors, env=environment)
            for index, share in enumerate(shares)
        ]
        watchdog = subprocess.Popen(["sleep", str(PATIENCE)])
        try:
            ended = reap(collector, shippers)
            seconds = time.monotonic() - begin
        finally:
            for process in [watchdog, collector, *shippers]:
                if process.poll() is None:
                    process.kill()
                    process.wait()
    if any(status != 0 for status, _ in ended):
        sys.stderr.write(log.read_text(errors="replace")[-4000:])
        failed = sum(status != 0 for status, _ in ended)
        sys.exit(f"demo: over {address} {failed} of {len(ended)} processes failed; their messages are above")
    return {"seconds": seconds, "GB/s": tree.bytes / seconds / 1e9, "cpu_s": sum(cpu for _, cpu in ended)}


def verify(tree: Tree, tops: list[str], destination: Path) -> str:
    """An independent tool compares what arrived with what was sent; its name. Ends the program if they differ."""
    if tree.skipped == 0:
        commands = [["diff", "-r", "--no-dereference", tree.base / top, destination / top] for top in tops]
        tool = "diff -r"
    else:  # diff would report what was left out; so compare exactly the files that were sent.
        manifest = destination.with_name("manifest")
        names = b"".join(os.fsencode(path) + b"\0" for path in tree.regular)
        with open(manifest, "wb") as sums:
            subprocess.run(["xargs", "-0", "sha256sum", "--"], input=names, stdout=sums, cwd=tree.base, check=True)
        commands = [["sha256sum", "--check", "--quiet", "--strict", manifest]]
        tool = "sha256sum"
    for command in commands:
        if subprocess.run(command, cwd=destination).returncode != 0:
            sys.exit(f"demo: {tool} found a difference between what was sent and what arrived")
    return tool


def generate(folder: Path, shippers: int) -> str:
    """Files of random bytes; the folder's name relative to /."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(shippers * GENERATED_FILES_PER_SHIPPER):
        (folder / f"{index}.dat").write_bytes(os.urandom(GENERATED_FILE_BYTES))
    return str(folder.resolve().relative_to("/"))


def describe(rounds: dict[str, list[dict]], quantity: str) -> dict[str, float]:
    return {name: statistics.median(one[quantity] for one in done) for name, done in rounds.items()}


def print_result(rounds: dict[str, list[dict]]) -> dict:
    speed, cpu, seconds = (describe(rounds, quantity) for quantity in ("GB/s", "cpu_s", "seconds"))
    print(f"\n{'':10}{'seconds':>10}{'GB/s':>10}{'CPU s':>10}   (medians of {len(rounds['wherry'])} rounds)")
    for name in rounds:
        print(f"{name:10}{seconds[name]:10.2f}{speed[name]:10.3f}{cpu[name]:10.2f}")
    ratio = {"throughput": speed["wherry"] / speed["tcp"], "cpu": cpu["wherry"] / cpu["tcp"]}
    print(f"\nwherry moves {ratio['throughput']:.2f} times what TCP moves, with {ratio['cpu']:.2f} times its CPU seconds")
    return {"rounds": rounds, "median": {"GB/s": speed, "cpu_s": cpu, "seconds": seconds}, "ratio": ratio}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=Path("/usr/share"), help="what to hand over (default: %(default)s)")
    parser.add_argument("--program", type=Path, required=True, help="the wherry program")
    parser.add_argument("--shippers", type=int, default=60, help="workers on the card (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each transport (default: %(default)s)")
    parser.add_argument("--work", type=Path,
                        help="where copies go; room for one of the tree (default: memory, /dev/shm, if there is room: a disk's moods"
                        " would hide the difference; else the temporary folder)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


def room_in_memory(needed: int) -> Path | None:
    try:
        return MEMORY if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= needed else None
    except OSError:
        return None


def main() -> int:
    arguments = parse_arguments()
    if not arguments.tree.is_dir():
        sys.exit(f"demo: {arguments.tree} is no folder; name one with files in it")
    program = arguments.program.resolve()
    tree = Tree(Path("/"))  # names relative to /, so that generated files fit beside the tree
    tops = [str(arguments.tree.resolve().relative_to("/"))]
    tree.add(tops[0])
    work = Path(tempfile.mkdtemp(prefix="wherry-demo-", dir=arguments.work or room_in_memory(ROOM + 2 * tree.bytes)))
    try:
        if tree.bytes < WORTH_SHOWING:
            print(f"{arguments.tree} holds {tree.bytes / 1e6:.0f} MB; generating files beside it", flush=True)
            tops.append(generate(work / "generated", arguments.shippers))
            tree.add(tops[1])
        print(f"{arguments.shippers} shippers on card 1 hand {len(tree.regular)} files, {tree.bytes / 1e6:.0f} MB, to a collector on the host"
              + (f" ({tree.skipped} entries that are no files, or not readable, are left out)" if tree.skipped else ""), flush=True)
        shares = []
        for index, share in enumerate(tree.shares(arguments.shippers)):
            shares.append(work / f"share.{index}")
            shares[-1].write_bytes(b"".join(os.fsencode(path) + b"\0" for path in share))
        warm(tree)
        rounds = run_rounds(arguments, program, tree, tops, shares, work)
        result = print_result(rounds) | {"shippers": arguments.shippers, "files": len(tree.regular), "bytes": tree.bytes}
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    finally:
        shutil.rmtree(work)
    return 0


def warm(tree: Tree) -> None:
    """Reads everything once, so that no round pays for the disk."""
    for path, size in tree.entries:
        if size:
            with open(tree.base / path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def run_rounds(arguments, program: Path, tree: Tree, tops: list[str], shares: list[Path], work: Path) -> dict[str, list[dict]]:
    port = 20000 + os.getpid() % 20000
    addresses = {"wherry": "wherry://0:2000", "tcp": f"tcp://127.0.0.1:{port}"}
    rounds: dict[str, list[dict]] = {name: [] for name in addresses}
    # The first round pays for memory that the machine has not used yet; it is not counted.
    for number in range(arguments.rounds + 1):
        # Whoever goes second finds the memory that the first has just freed, so they take turns at it.
        for name in sorted(addresses, reverse=number % 2 == 0):
            destination = work / "arrived"
            one = run_round(program, tree, shares, destination, addresses[name], work / "log")
            tool = verify(tree, tops, destination)
            title = f"round {number}" if number else "warm-up"
            print(f"{title}  {name:7} {one['seconds']:6.2f} s  {one['GB/s']:.3f} GB/s  {one['cpu_s']:6.2f} CPU s"
                  f"  verified by {tool}", flush=True)
            shutil.rmtree(destination)
            os.sync()  # No round pays for writing back what the one before it wrote.
            if number:
                rounds[name].append(one)
    return rounds


if __name__ == "__main__":
    sys.exit(main())
