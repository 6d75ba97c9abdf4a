# SPDX-License-Identifier: Apache-2.0
"""Kills of the processes of a mount at its fault points, and programs whose writes can be checked afterwards."""

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from program import PROGRAM
from serving import MOUNT_PROGRAM, NO_PASSTHROUGH, Mount
from waiting import WATCHDOG, wait_until


class FaultPlan:
    """src/file/mount/layout/fault_plan.hpp"""

    HEADER, PASSED, MOST = struct.Struct("<24s4i"), struct.Struct("<24s2i"), 64

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(self.HEADER.size + self.MOST * self.PASSED.size))
        self.file = open(path, "r+b")
        self.memory = None

    def attach(self):
        """Call it once the mount has the file."""
        self.memory = mmap.mmap(self.file.fileno(), 0)

    def kill(self, point, times=1, others=(), spares=False):
        """Arms a point: the process that gets there the `times`-th time kills `others`, and itself unless it `spares` itself."""
        assert point.encode() in self.passed(), point
        others = [*others, 0, 0][:2]
        self.HEADER.pack_into(self.memory, 0, point.encode(), *others, int(spares), 0)
        self.memory[36:40] = struct.pack("<i", times)

    def has_killed(self):
        return struct.unpack_from("<i", self.memory, 36)[0] == 0

    def passed(self):
        entries = (self.PASSED.unpack_from(self.memory, at) for at in range(self.HEADER.size, len(self.memory) - self.PASSED.size + 1, self.PASSED.size))
        return {name.rstrip(b"\0"): times for name, times, _ in entries}


class FaultyMount(Mount):
    """A mount whose processes have a fault plan."""

    def __init__(self, server, directory, plan):
        self.plan = plan
        super().__init__(server, directory)
        plan.attach()

    def command(self, server, directory, options):
        passthrough = 0 if NO_PASSTHROUGH in server.mount_options else 1
        return [MOUNT_PROGRAM, f"address={server.address}", f"directory={directory}", "timeout-ms=60000", f"passthrough={passthrough}",
                f"fault-plan={self.plan.path}"]

    def processes(self):
        """The supervisor before its daemons."""
        word = f"fault-plan={self.plan.path}".encode()
        found = [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/cmdline") if word in _words(file)]
        return sorted(found, key=lambda process: process != self.process.pid)

    def kill(self):
        """Also what is left of a mount of which some processes have been killed."""
        while found := self.processes():
            for process in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            subprocess.run(["umount", "--lazy", "--force", self.directory], stderr=subprocess.DEVNULL, check=False)
        self.process.communicate(timeout=WATCHDOG)


def _words(file):
    with contextlib.suppress(OSError):
        return file.read_bytes().split(b"\0")
    return []


RECORD = 64
SLOTS = 4096  # records of a file that is written at offsets


def record(number):
    return number.to_bytes(8, "little") * (RECORD // 8)


class Writer:
    """A program that writes numbered records, in order, and notes in shared memory which writes and fsyncs have returned.

    `append`: each at the end of the file, which is opened with O_APPEND. `write`: at offsets, again from the beginning
    of the file after SLOTS records.
    """

    SCRIPT = r"""
import errno, mmap, os, struct, sys
path, notes, how = sys.argv[1:]
with open(notes, "r+b") as file:
    shared = mmap.mmap(file.fileno(), 24)
file = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if how == "append" else 0), 0o644)
rest = number = 0
call = "none"
try:
    while shared[16] == 0 or rest < 300:
        call, data = "write", struct.pack("<Q", number) * 8
        written = os.write(file, data) if how == "append" else os.pwrite(file, data, number % 4096 * 64)
        assert written == 64, written
        number += 1
        rest += shared[16]
        shared[0:8] = struct.pack("<Q", number)
        if number % 1009 == 0:
            call = "fsync"
            os.fsync(file)
            shared[8:16] = struct.pack("<Q", number)
    call = "fsync"
    os.fsync(file)
    shared[8:16] = struct.pack("<Q", number)
    call = "close"
    os.close(file)
except OSError as error:
    sys.exit(f"{call}: {errno.errorcode[error.errno]}")
"""

    def __init__(self, server, folder, notes, root, how, by_ring):
        self.how, self.notes = how, notes
        name = f"{how}-{'ring' if by_ring else 'calls'}"
        self.host_file = root / name
        notes.write_bytes(bytes(24))
        with open(notes, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 24)
        runner = [PROGRAM, "run", "--files", folder, "--"] if by_ring else []
        self.process = subprocess.Popen([*map(str, runner), sys.executable, "-c", self.SCRIPT, str(folder / name), str(notes), how],
                                        env=server.env, stderr=subprocess.PIPE, text=True)

    def written(self):
        return struct.unpack_from("<Q", self.shared, 0)[0]

    def synced(self):
        return struct.unpack_from("<Q", self.shared, 8)[0]

    def end(self):
        """Lets it write some more, and close the file. Returns the call and the error with which it has ended; empty: none."""
        self.shared[16] = 1
        errors = self.process.communicate(timeout=WATCHDOG)[1]
        assert self.process.returncode in (0, 1) and "Traceback" not in errors, errors
        return errors.strip().splitlines()[-1] if self.process.returncode else ""

    def state(self, count):
        """The file after so many records."""
        if self.how == "append":
            return b"".join(map(record, range(count)))
        first = max(0, count - SLOTS)
        slots = sorted(range(first, count), key=lambda number: number % SLOTS)
        return b"".join(map(record, slots))

    def records(self, content):
        """How many records a file has got, in order; of the one that follows it may have the beginning."""
        numbers = [int.from_bytes(content[at:at + 8], "little") for at in range(0, len(content) - RECORD + 1, RECORD)]
        last = numbers.index(max(numbers)) if numbers else -1
        whole = last >= 0 and content[last * RECORD:(last + 1) * RECORD] == record(numbers[last])
        count = 0 if last < 0 else numbers[last] + (1 if whole else 0)
        there = bytearray(self.state(count))
        begin = count * RECORD if self.how == "append" else count % SLOTS * RECORD
        part = next((bytes for bytes in range(RECORD, 0, -1) if content[begin:begin + bytes] == record(count)[:bytes]), 0)
        there[begin:begin + part] = record(count)[:part]
        assert content == bytes(there), f"{self.host_file.name}: not the state after {count} records"
        return count

    def check(self, complete):
        content = self.host_file.read_bytes()
        count = self.records(content)
        written, synced = self.written(), self.synced()
        assert (written if complete else synced) <= count <= written + (0 if complete else 1), (self.host_file.name, count, written, synced)
        assert not complete or content == self.state(count)


def writers(server, folder, notes, root):
    made = [Writer(server, folder, notes / f"{how}-{by_ring}", root, how, by_ring) for how in ("write", "append") for by_ring in (False, True)]
    for one in made:
        wait_until(lambda: one.written() > 2000 or one.process.poll() is not None, "writes")
    return made
