# SPDX-License-Identifier: Apache-2.0
"""A sender in a memory cgroup pays for the pages of the receiver's ring that it writes first: that is bounded, by default
by a part of what it may have, or by WHERRY_PEER_RING."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest
from collecting import WATCHDOG
from program import PROGRAM, environment

MIB = 1 << 20
# Less than the ring of 64 MiB; a program with AddressSanitizer needs more itself.
MOST = (48 if "ASAN_OPTIONS" in os.environ else 32) * MIB


def own_groups():
    """Directories in which a memory cgroup may be made, of the first version and of the second, with the files that bound its
    memory and its swap; the first version counts both together in the latter."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            yield Path("/sys/fs/cgroup/memory") / path.lstrip("/"), "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
        if number == "0":
            yield Path("/sys/fs/cgroup") / path.lstrip("/"), "memory.max", "memory.swap.max"


@pytest.fixture
def limited_group():
    """Makes a memory cgroup with a limit, and no swap beyond it; gives the file that takes the numbers of its processes."""
    made = []

    def make(limit):
        for parent, limit_file, swap_file in own_groups():
            group = parent / f"wherry-{uuid.uuid4().hex[:12]}"
            try:
                group.mkdir()
                made.append(group)
                (group / limit_file).write_text(str(limit))
                if (group / swap_file).exists():  # not without accounting of swap
                    (group / swap_file).write_text("0" if swap_file == "memory.swap.max" else str(limit))
                return group / "cgroup.procs"
            except OSError:
                continue
        return pytest.skip("no memory cgroup can be made here")

    yield make
    for group in made:
        group.rmdir()


def send_through_a_large_ring(limited_group, **sender):
    """Twice the ring of 64 MiB, by a process that may not have so much. Whether it all arrived."""
    job = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}", WHERRY_RING="64M", WHERRY_SPLIT="0")
    group = limited_group(MOST)
    listening = [PROGRAM, "pipe", "--listen", "wherry://*:*"]
    receiver = subprocess.Popen(listening, env=job, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    address = receiver.stderr.readline().decode().strip().removeprefix("wherry pipe: listening on ")
    into = f"echo $$ > {group} && exec {PROGRAM} pipe {address}"
    with open("/dev/zero", "rb") as zeros:
        head = subprocess.Popen(["head", "-c", str(128 * MIB)], stdin=zeros, stdout=subprocess.PIPE)
        shell = subprocess.Popen(["sh", "-c", into], env={**job, "WHERRY_RING": "64K", **sender}, stdin=head.stdout)
        head.stdout.close()
        received = sum(len(block) for block in iter(lambda: receiver.stdout.read(MIB), b""))
    codes = [process.wait(timeout=WATCHDOG) for process in (shell, receiver, head)]
    receiver.stdout.close()
    receiver.stderr.close()
    return codes[:2] == [0, 0] and received == 128 * MIB


@pytest.mark.parametrize("bound", ["1M", "4M"], ids=["small pages", "huge pages"])
def test_a_bound_on_the_peers_ring_keeps_a_sender_within_its_memory(limited_group, bound):
    assert send_through_a_large_ring(limited_group, WHERRY_PEER_RING=bound)


def test_by_default_a_sender_stays_within_its_memory(limited_group):
    assert send_through_a_large_ring(limited_group)


def test_a_bound_beyond_its_memory_lets_it_pay_for_the_whole_ring(limited_group):
    assert not send_through_a_large_ring(limited_group, WHERRY_PEER_RING="1G")
