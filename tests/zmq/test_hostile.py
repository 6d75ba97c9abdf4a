# SPDX-License-Identifier: Apache-2.0
"""A peer that is no ZeroMQ, or no Wherry, costs its own connection and nothing else."""

import pytest
from processes import PROGRAM, all_succeed, succeed, wait_for_line

HOSTILE = PROGRAM.parent / "zmq_hostile"


@pytest.mark.parametrize("how", ["head", "tail", "finished", "size", "command"])
def test_a_peer_that_breaks_a_rule_is_dropped_and_the_next_is_served(processes, how):
    push = processes.traffic("push", "wherry://*:2000", bind=1, count=5000, size=1000, hwm=100)
    hostile = processes.start(HOSTILE, how, "wherry://0:2000")
    assert succeed(hostile) == "dropped\n"
    assert push.poll() is None, push.stdout.read()
    # What the hostile peer was sent is lost, as with any peer that dies.
    pull = processes.traffic("pull", "wherry://0:2000", count=5000, size=1000, hwm=100, gaps=1)
    all_succeed([push, pull])
