# SPDX-License-Identifier: Apache-2.0
"""Messages between real processes: none lost, none twice, all in order, whatever gets in the way."""

import os
import re
import signal
import time

import pytest
from processes import BUILD, SHORT, all_succeed, cpu_seconds, settled_cpu_seconds, succeed, wait_for_line

SEED = int(os.environ.get("WHERRY_TEST_SEED", "1"))
# `make soak` raises it: 10^8 messages through each ring.
SMALL_MESSAGES = int(os.environ.get("WHERRY_ZMQ_MESSAGES", "1000000")) // SHORT


def one_way(processes, sender=None, receiver=None, **both):
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, **both, **(receiver or {}))
    push = processes.traffic("push", "wherry://0:2000", **both, **(sender or {}))
    return all_succeed([pull, push], timeout=None)


@pytest.mark.parametrize("ring", [4 << 10, 64 << 10, 1 << 20])
def test_small_messages_never_stall_whatever_the_ring_and_the_pauses(processes, ring):
    one_way(processes, count=SMALL_MESSAGES, size=64, ring=ring, pause=500, seed=SEED)


@pytest.mark.parametrize("size, count", [(16, 100000), (33, 100000), (4096, 50000), (65535, 5000), (262144, 1000), (1 << 20, 500)])
def test_every_size_of_message_arrives_whole(processes, size, count):
    one_way(processes, count=count // SHORT, size=size)


def test_messages_larger_than_a_gigabyte_in_all_and_than_the_ring_each(processes):
    one_way(processes, count=4, size=300_000_001, hwm=1)


def test_a_high_water_mark_of_one(processes):
    one_way(processes, count=5000 // SHORT, size=3000, ring=4096, hwm=1, pause=300, seed=SEED)


def test_curve_encrypts_over_wherry(processes):
    one_way(processes, count=5000 // SHORT, size=10000, curve=1)


def test_both_sides_blocked_drain_in_both_directions_at_once(processes):
    sides = [
        processes.traffic("both", "wherry://*:2000", bind=1, count=400, size=300_000, hwm=2, ring=1 << 20),
        processes.traffic("both", "wherry://0:2000", count=400, size=300_000, hwm=2, ring=1 << 20),
    ]
    blocked_after = [int(re.search(r"blocked after (\d+)", output).group(1)) for output in all_succeed(sides)]
    # The second may find that the first has begun to read.
    assert 0 < min(blocked_after) < 50


def test_sixty_senders_and_one_receiver(processes):
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, senders=60, count=300, size=5000)
    pushes = [processes.traffic("push", "wherry://0:2000", sender=sender, count=300, size=5000) for sender in range(60)]
    assert "received 18000" in all_succeed([pull, *pushes])[0]


def test_what_a_sender_has_sent_survives_its_end(processes):
    """A message counts as sent once it is in the receiver's memory: linger does not wait for the receiver to read."""
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, count=100, size=1000, idle=0)
    wait_for_line(pull, "ready")
    pull.send_signal(signal.SIGSTOP)
    push = processes.traffic("push", "wherry://0:2000", count=100, size=1000, linger=0, idle=500)
    # Connecting needs the receiver's thread once.
    pull.send_signal(signal.SIGCONT)
    succeed(push)
    succeed(pull)


def test_a_killed_receiver_is_replaced_and_the_sender_goes_on(processes):
    push = processes.traffic("push", "wherry://0:2000", count=200000, size=1000, hwm=100)
    for _ in range(3):
        # So slow that most is left to send when it is killed.
        pull = processes.traffic(
            "pull", "wherry://*:2000", bind=1, count=10**9, size=1000, hwm=100, gaps=1, pause=100_000
        )
        wait_for_line(pull, "ready")
        time.sleep(0.3)
        pull.kill()
        pull.wait()
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, count=200000, size=1000, hwm=100, gaps=1)
    all_succeed([push, pull])


def test_a_killed_sender_leaves_a_receiver_that_serves_the_next(processes):
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, count=50000, senders=4, size=1000, gaps=1)
    wait_for_line(pull, "ready")
    for sender in range(3):
        push = processes.traffic("push", "wherry://0:2000", count=10**9, sender=sender, size=1000, pause=300_000)
        time.sleep(0.3)
        push.kill()
        push.wait()
    # The three had sent some, and the receiver waits for all of four: it lives, and takes the fourth's.
    push = processes.traffic("push", "wherry://0:2000", count=50000, sender=3, size=1000)
    assert "sent" in succeed(push)
    assert pull.poll() is None


@pytest.mark.parametrize("size", [64, 100_000])
def test_a_blocked_sender_uses_no_cpu(processes, size):
    # So large a ring that filling it takes the sender's thread several turns: it polls between them, and must stop.
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, count=10**9, size=size, hwm=10, ring=4 << 20)
    wait_for_line(pull, "ready")
    push = processes.traffic("push", "wherry://0:2000", count=10**9, size=size, hwm=10)
    time.sleep(0.5)
    pull.send_signal(signal.SIGSTOP)
    # Once it has really come to an end with filling: on a busy machine it may only have looked so.
    used = 1
    while used > 0.03:
        before = settled_cpu_seconds(push)[push.pid]
        time.sleep(3)
        used = cpu_seconds(push.pid) - before
        print(used, "s of CPU in 3 s")
        assert push.poll() is None


def test_idle_connections_use_no_cpu(processes):
    pull = processes.traffic("pull", "wherry://*:2000", bind=1, senders=20, count=1, idle=600000)
    pushes = [processes.traffic("push", "wherry://0:2000", sender=sender, count=1, idle=600000) for sender in range(20)]
    wait_for_line(pull, "received")
    before = settled_cpu_seconds(pull, *pushes)
    time.sleep(3)
    for pid, seconds in before.items():
        assert cpu_seconds(pid) - seconds <= 0.02


def test_debians_own_throughput_program_gives_figures(processes):
    local = processes.start(BUILD / "bin/local_thr", "scif://2000", 1000, 100000)
    remote = processes.start(BUILD / "bin/remote_thr", "scif://0:2000", 1000, 100000)
    assert "mean throughput" in all_succeed([local, remote])[0]
