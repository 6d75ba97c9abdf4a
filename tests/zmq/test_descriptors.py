# SPDX-License-Identifier: Apache-2.0
"""What a connection costs in descriptors, and what happens without."""

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PROGRAM, succeed, wait_for_line

SCRIPT = Path(__file__).with_name("many_connections.py")


def start(processes, limit, *arguments, env=None):
    def limit_descriptors():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    return processes.start(
        PROGRAM, "run", "--", sys.executable, SCRIPT, *arguments, stdin=subprocess.PIPE, preexec_fn=limit_descriptors, env=env
    )


def test_a_thousand_connections_of_a_process_fit_into_4096_descriptors(processes):
    pull = start(processes, 4096, "pull", 1000)
    wait_for_line(pull, "ready")
    push = start(processes, 4096, "push", 1000, 1000)
    for process, verb in ((pull, "received"), (push, "sent")):
        line = wait_for_line(process, verb)
        used = int(re.search(r"descriptors (\d+)", line).group(1))
        assert line.startswith(f"{verb} 1000 ") and used <= 4 * 1000 + 8, line


def test_with_too_few_descriptors_as_many_work_as_fit_and_the_others_are_reported(processes):
    """Sixteen for what a process has besides, eight for both ends of a connection, one for each socket."""
    both = start(processes, 16 + 64 + 4 + 8 * 32, "both", 64)
    assert succeed(both) == "received 16 refused True\n"


def test_connecting_without_descriptors_tells_the_monitor_so(processes):
    pull = start(processes, 4096, "pull", 30)
    wait_for_line(pull, "ready")
    push = start(processes, 16 + 4 * 45, "push", 60, 30)
    assert wait_for_line(push, "sent").endswith(" errors EMFILE\n")
    assert wait_for_line(pull, "received").startswith("received 30 ")


@pytest.mark.parametrize("how", [("push", 90, 90), ("in_turn", 90)], ids=lambda how: how[0])
@pytest.mark.parametrize("limits", [(256, 4096), (4096, 256)], ids=["bound", "connecting"])
def test_mapped_connections_leave_descriptors_to_those_over_tcp(processes, port, limits, how):
    """With five for each, as long as there are any, nothing would come of the fiftieth."""
    env = {"ENDPOINT": f"tcp://127.0.0.1:{port}", "WHERRY_ZMQ_MAP": "tcp://"}
    pull = start(processes, limits[0], "pull", 90, env=env)
    wait_for_line(pull, "ready")
    start(processes, limits[1], *how, env=env)
    received, descriptors = re.fullmatch(r"received (\d+) descriptors (\d+)\n", wait_for_line(pull, "received")).groups()
    assert int(received) == 90
    if how[0] == "in_turn":
        assert int(descriptors) > 90 + 4 * 10  # some are over Wherry


def test_a_forked_child_that_has_closed_all_descriptors_can_connect(processes):
    assert succeed(processes.python(Path(__file__).with_name("forked.py"))) == "heard\nheard\n"


@pytest.mark.parametrize("fabric", ["inproc", "inproc-put", "faulty+inproc", "faulty+shm", "faulty+inproc-put"])
def test_other_fabrics_carry_messages_too(processes, fabric):
    """Not all have a descriptor of its own for what the peer rings."""
    command = (PROGRAM, "run", "--", sys.executable, Path(__file__).with_name("talk.py"))
    assert succeed(processes.start(*command, env={"WHERRY_FABRIC": fabric})) == "all heard\n"
