# SPDX-License-Identifier: Apache-2.0
"""What large messages cost in memory and in faults."""

import mmap
import os
import re
import resource
import time
from pathlib import Path

import pytest
from processes import BUILD, wait_for_line

MEGABYTE = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def faults_so_far():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def zeros_come_as_a_huge_page():
    """Not if the settings forbid it, nor if memory is so fragmented that the kernel finds no place for its huge page of zeros.
    Once found it stays as long as this process, and serves all others."""
    pages = 4 * MEGABYTE // PAGE
    with mmap.mmap(-1, 4 * MEGABYTE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        before = faults_so_far()
        assert not any(memory[page * PAGE] for page in range(pages))
        # A half of it is a huge page, wherever it begins.
        return faults_so_far() - before < pages * 3 // 4


def own_memory(pid):
    """Bytes of memory that are this process's alone, without the rings that it shares."""
    return 1024 * int(re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M).group(1))


@pytest.mark.parametrize("kilobytes", [256, 1024])
def test_a_message_that_nobody_has_written_costs_its_sender_no_fault_for_each_page(processes, kilobytes):
    if not zeros_come_as_a_huge_page():
        pytest.skip("the system has no huge page of zeros")
    count = 256 * 1024 // kilobytes
    local = processes.start(BUILD / "bin/local_thr", "wherry://*:2000", 1024 * kilobytes, count)
    remote = processes.start(BUILD / "bin/remote_thr", "wherry://0:2000", 1024 * kilobytes, count)
    remote.stdout.read()
    _, status, usage = os.wait4(remote.pid, 0)
    remote.returncode = os.waitstatus_to_exitcode(status)
    assert remote.returncode == 0
    local.communicate(timeout=100)
    # With one for each page there are 65536. Starting a program takes a few hundred.
    assert usage.ru_minflt < 8192


@pytest.mark.parametrize("role", ["push", "pull"])
def test_memory_of_large_messages_goes_back_to_the_system_when_none_come_any_more(processes, role):
    common = {"count": 100, "size": MEGABYTE, "idle": 600_000}
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, **common)
    push = processes.traffic("push", "wherry://0:2000", **common)
    wait_for_line(pull, "received")
    wait_for_line(push, "sent")
    watched = push if role == "push" else pull
    # Each has a few buffers of its own: the program's message, and two batches of libzmq's.
    give_up = time.monotonic() + 100
    while own_memory(watched.pid) > 6 * MEGABYTE:
        assert time.monotonic() < give_up, own_memory(watched.pid)
        time.sleep(0.2)
    assert watched.poll() is None
