# SPDX-License-Identifier: Apache-2.0
"""What ends a connection between two hosts, and what does not: dead peers, stopped ones, cut cables, crashes.

More complaints of users of other networks: see test_network_complaints.py.
"""

import array
import os
import signal
import threading
import time

import pytest
from two_hosts import PIECE, result
from waiting import WATCHDOG, wait_until

MIB = 1 << 20


class Flow:
    """Numbers that count up, from the far host to the near one, which writes them to a file: a gap, a doubled or a changed one
    shows."""

    def __init__(self, hosts, env=None):
        self.file = hosts.folder / "received"
        with open(self.file, "wb") as output:
            self.receiver = hosts.listen(hosts.near, stdout=output, env=env)
        self.sender = hosts.connect(hosts.far, "--wait", WATCHDOG, env=env)
        self.count = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.feed)
        self.thread.start()

    def feed(self):
        """About 10 MB a second until it is stopped, or the sender has ended."""
        try:
            while not self.stopping.is_set():
                self.sender.stdin.write(array.array("Q", range(self.count, self.count + 8192)).tobytes())
                self.count += 8192
                time.sleep(0.005)
            self.sender.stdin.close()
        except BrokenPipeError:
            pass

    def wait_for(self, more):
        wanted = self.received() + more
        wait_until(lambda: self.received() >= wanted or self.receiver.poll() is not None, "the flow")
        assert self.receiver.poll() is None, self.receiver.stderr.read().decode()

    def received(self):
        return self.file.stat().st_size

    def stop(self):
        self.stopping.set()
        self.thread.join(timeout=WATCHDOG)

    def results(self):
        """Exit status of the sender and of the receiver, and what they said."""
        try:
            sender, receiver = result(self.sender), result(self.receiver)
        finally:
            self.stopping.set()
        self.thread.join(timeout=WATCHDOG)
        return sender[0], receiver[0], sender[1] + receiver[1]

    def is_gapless(self):
        data = self.file.read_bytes()
        return data == array.array("Q", range(len(data) // 8 + 1)).tobytes()[:len(data)]


def test_a_cut_of_three_seconds_is_no_end(hosts):
    flow = Flow(hosts)
    flow.wait_for(MIB)
    hosts.ip(hosts.near, "link set near0 down")
    time.sleep(3)
    hosts.ip(hosts.near, "link set near0 up")
    flow.wait_for(4 * MIB)
    flow.stop()
    assert flow.results() == (0, 0, "")
    assert flow.is_gapless() and flow.received() == 8 * flow.count


def test_a_cut_of_eight_seconds_ends_both_sides_without_a_gap(hosts):
    flow = Flow(hosts)
    flow.wait_for(MIB)
    hosts.ip(hosts.near, "link set near0 down")
    time.sleep(8)  # the limit of silence is 5 s
    hosts.ip(hosts.near, "link set near0 up")
    assert flow.results()[:2] == (1, 1)
    assert flow.is_gapless() and flow.received() < 8 * flow.count


def test_a_cut_ends_idle_connections_on_both_sides(hosts):
    idle = {"WHERRY_HOST_TIMEOUT": "1000"}
    receiver = hosts.listen(hosts.near, env=idle)
    sender = hosts.connect(hosts.far, "--wait", WATCHDOG, env=idle)
    sender.stdin.write(PIECE)
    sender.stdin.flush()
    assert receiver.stdout.read(len(PIECE)) == PIECE
    hosts.ip(hosts.far, "link set far0 down")
    assert result(receiver)[0] == 1
    sender.stdin.close()  # the sender sleeps in its read
    assert result(sender)[0] == 1


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_peer_that_is_stopped_lives(hosts, side):
    flow = Flow(hosts, env={"WHERRY_HOST_TIMEOUT": "1000"})
    flow.wait_for(MIB)
    stopped = getattr(flow, side)
    stopped.send_signal(signal.SIGSTOP)
    time.sleep(3)  # three times the limit: that it lives has to last
    assert flow.receiver.poll() is None and flow.sender.poll() is None
    stopped.send_signal(signal.SIGCONT)
    flow.wait_for(4 * MIB)
    flow.stop()
    assert flow.results() == (0, 0, "")
    assert flow.is_gapless() and flow.received() == 8 * flow.count


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_peer_that_is_killed_ends_the_other_side(hosts, side):
    # So long a limit of silence that it is not what ends it.
    flow = Flow(hosts, env={"WHERRY_HOST_TIMEOUT": "600000"})
    flow.wait_for(MIB)
    getattr(flow, side).kill()
    codes = flow.results()[:2]
    assert codes == ((-signal.SIGKILL, 1) if side == "sender" else (1, -signal.SIGKILL))
    assert flow.is_gapless()


def test_a_host_that_disappears_ends_the_other_side(hosts):
    flow = Flow(hosts, env={"WHERRY_HOST_TIMEOUT": "1000"})
    flow.wait_for(MIB)
    hosts.ip(hosts.far, "link del far0")  # so that nothing says good-bye
    hosts.far.kill()
    flow.sender.kill()
    hosts.far.wait(timeout=WATCHDOG)
    assert flow.results()[:2] == (-signal.SIGKILL, 1)
    assert flow.is_gapless()


ROUNDS = 100 if "WHERRY_SOAK" in os.environ else 10


def test_a_listener_that_was_killed_listens_again_at_once(hosts):
    """On a range that has a port for the rendezvous, and one for data: whatever a crash holds back is missed."""
    two_ports = {"WHERRY_PORTS": "47000-47001"}
    for _ in range(ROUNDS):
        listener = hosts.listen(hosts.near, env=two_ports)
        connector = hosts.connect(hosts.far, "--wait", WATCHDOG, env=two_ports)
        connector.stdin.write(PIECE)
        connector.stdin.flush()
        assert listener.stdout.read(len(PIECE)) == PIECE, listener.stderr.read().decode()
        listener.kill()
        connector.stdin.close()
        assert result(connector)[0] == 1
        assert listener.wait(timeout=WATCHDOG) == -signal.SIGKILL
    hosts.carry(hosts.near, hosts.far, env=two_ports)
