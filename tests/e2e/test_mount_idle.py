# SPDX-License-Identifier: Apache-2.0
"""wherry mount: a mount that nobody uses takes no CPU, whatever programs have open."""

import os
import time
from pathlib import Path

import pytest
from keeping import opened, write_until_kept
from ring_programs import card, end, here, namespace, server, start  # noqa: F401

SECONDS = 1.5
MOST = 20  # a look every 10 ms would be 150


def wakeups_of(process):
    """How often each thread of the process has waited for something, by its number and name."""
    counts = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        counts[(int(task.name), fields["Name"].strip())] = int(fields["voluntary_ctxt_switches"])
    return counts


def await_idle(server, card):
    """Returns once server, daemon and supervisor have hardly run for a while."""
    processes = {"server": server.process.pid, "daemon": card.daemon(), "supervisor": card.process.pid}
    for _ in range(10):  # delegations, kept writes and rings that nobody uses end after a moment
        before = {name: wakeups_of(pid) for name, pid in processes.items()}
        time.sleep(SECONDS)
        woken = {}
        for name, pid in processes.items():
            for thread, count in wakeups_of(pid).items():
                woken[(name, *thread)] = count - before[name].get(thread, 0)
        if sum(woken.values()) <= MOST:
            return
    pytest.fail(f"still woken in {SECONDS} s: { {thread: count for thread, count in woken.items() if count} }")


def read_often(paths):
    files = [os.open(path, os.O_RDONLY) for path in paths]
    for _ in range(100):
        for file in files:
            os.pread(file, 100, 0)
    return files


def test_nothing_runs_while_nobody_uses_the_mount(server, card, here):  # noqa: F811
    await_idle(server, card)


def test_nothing_runs_for_files_that_are_open(server, card, here):  # noqa: F811
    root = server.root
    for i in range(20):
        (root / f"read {i}").write_text("text")
    readers = read_often([here / f"read {i}" for i in range(20)])
    writer = opened(here / "written")
    content = write_until_kept(writer, root / "written")
    await_idle(server, card)
    assert (here / "written").read_bytes() == content
    for file in [*readers, writer]:
        os.close(file)


def test_nothing_runs_for_a_ring_that_is_not_used(server, card, here):  # noqa: F811
    program = start(server, here, "begin('file'); say()")
    assert program.stdout.readline() == "ready\n"
    await_idle(server, card)
    end(program)
