# SPDX-License-Identifier: Apache-2.0
"""Endpoints that a program cannot change: WHERRY_ZMQ_MAP carries tcp and ipc connections over Wherry where both ends can,
and leaves them alone where one cannot."""

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forwarder import Forwarder
from own_tests import own_test
from processes import BUILD, DEBIAN_PYTHON, PROGRAM, SHORT, all_succeed, succeed, wait_for_line

MAP = "tcp://127.0.0.1,ipc://"
ENDS = Path(__file__).with_name("ends.py")
COUNT, SIZE = 2000, 5000


def endpoint_over(transport, tmp_path):
    return "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://{tmp_path}/socket"


@pytest.fixture(params=["tcp", "ipc"])
def any_endpoint(request, tmp_path):
    return endpoint_over(request.param, tmp_path)


def end(processes, *arguments, mapped=True, python=sys.executable, env=None, senders=1):
    """One end of a pipeline, as soon as it has said what its endpoint is; (process, endpoint)."""
    command = (PROGRAM, "run", *(("--zmq", MAP) if mapped else ()), "--", python)
    if python == "stock":
        command = (sys.executable,)
    elif python == "debian":
        command = (DEBIAN_PYTHON,)
    process = processes.start(*command, ENDS, *arguments, COUNT, SIZE, senders, env=env, stdin=subprocess.PIPE)
    return process, wait_for_line(process, "endpoint").split()[1]


def over_wherry(processes, process):
    """The payload that `wherry top` says this process has moved, in bytes."""
    top = subprocess.run(
        [PROGRAM, "top", "--once", "--json", "--interval", "0.05"], env=processes.environment, capture_output=True, text=True, check=True
    )
    mine = [each for each in json.loads(top.stdout)["processes"] if each["pid"] == process.pid]
    return sum(endpoint["bytes_sent"] + endpoint["bytes_received"] for each in mine for endpoint in each["endpoints"])


def deliver(processes, endpoint, binds="pull", bound=None, connected=None):
    """Sends everything from one end to the other; the bytes that went over Wherry, as each end counts them."""
    connects = "push" if binds == "pull" else "pull"
    first, name = end(processes, binds, "bind", endpoint, **(bound or {}))
    second, _ = end(processes, connects, "connect", name, **(connected or {}))
    for process in (first, second):
        wait_for_line(process, "done")
    moved = [over_wherry(processes, process) for process in (first, second)]
    for process in (first, second):
        succeed(process)
    return moved


@pytest.mark.parametrize("binds", ["pull", "push"])
def test_both_ends_mapped_meet_over_wherry(processes, any_endpoint, binds):
    assert min(deliver(processes, any_endpoint, binds=binds)) > COUNT * SIZE


@pytest.mark.parametrize("without", ["bound", "connected"])
@pytest.mark.parametrize("transport, other", [("ipc", "not mapped"), ("tcp", "stock"), ("ipc", "debian"), ("tcp", "another job")])
def test_an_end_without_wherry_is_met_over_the_original_transport(processes, tmp_path, without, transport, other):
    if other == "debian" and subprocess.run([DEBIAN_PYTHON, "-c", "import zmq"], capture_output=True).returncode != 0:
        pytest.skip("Debian's python3-zmq is not installed")
    options = {"not mapped": {"mapped": False}, "another job": {"env": {"WHERRY_JOB": f"other-{os.getpid()}"}}}
    assert deliver(processes, endpoint_over(transport, tmp_path), **{without: options.get(other, {"python": other})}) == [0, 0]


def test_messages_from_an_end_without_wherry_hold_no_more_memory_than_ever(processes):
    """Each that a program keeps holds the piece that it was read in, as the program has set ZMQ_IN_BATCH_SIZE."""
    script = Path(__file__).with_name("keeps.py")
    keeping = processes.start(PROGRAM, "run", "--zmq", MAP, "--", sys.executable, script, "pull", "tcp://127.0.0.1:*")
    endpoint = wait_for_line(keeping, "endpoint").split()[1]
    succeed(processes.start(sys.executable, script, "push", endpoint))
    assert int(wait_for_line(keeping, "grown").split()[1]) < 30_000_000  # of 5 million bytes kept, and the sender's own batches
    succeed(keeping)


def test_endpoints_keep_the_scheme_that_programs_check(processes):
    """FairMQ's channels accept tcp:// with a port and ipc:// with a path, and tell their peers the endpoint they are bound to."""
    bound, name = end(processes, "pull", "bind", "tcp://127.0.0.1:*")
    assert re.fullmatch(r"tcp://127\.0\.0\.1:[1-9][0-9]*", name)
    pushing, _ = end(processes, "push", "connect", name)
    # The address that an allow-list knows.
    assert wait_for_line(bound, "from") == "from 127.0.0.1\n"
    for process in (bound, pushing):
        wait_for_line(process, "done")
        succeed(process)


@pytest.mark.parametrize(
    "bind, connect, env",
    [("tcp://*:{}", "tcp://localhost:{}", {}), ("tcp://127.0.0.1:{}", "tcp://127.0.0.1:{}", {}), ("tcp://*:{}", "tcp://127.0.0.1:{}", {"IPV6": "1"})],
    ids=str,
)
def test_who_is_bound_to_every_interface_is_reached_over_wherry_by_loopback(processes, port, bind, connect, env):
    bound, _ = end(processes, "pull", "bind", bind.format(port), env=env)
    pushing, _ = end(processes, "push", "connect", connect.format(port))
    for process in (bound, pushing):
        wait_for_line(process, "done")
    assert over_wherry(processes, bound) > COUNT * SIZE
    all_succeed([bound, pushing])


def test_through_a_forwarded_port_the_ends_find_each_other(processes):
    """What a port is forwarded to is asked, not what its number says."""
    bound, name = end(processes, "pull", "bind", "tcp://127.0.0.1:*")
    with Forwarder(int(name.rpartition(":")[2])) as forwarder:
        pushing, _ = end(processes, "push", "connect", f"tcp://127.0.0.1:{forwarder.port}")
        for process in (bound, pushing):
            wait_for_line(process, "done")
        assert over_wherry(processes, bound) > COUNT * SIZE
        all_succeed([bound, pushing])


def unrelated_listener(processes):
    """(a program that listens for one peer, its address, an offer as if that were the port of a bound end)"""
    listener = processes.start(PROGRAM, "pipe", "--listen", "wherry://*:*")
    address = wait_for_line(listener, "wherry pipe: listening").split()[-1]
    node, port = map(int, address.rpartition("/")[2].split(":"))
    return listener, address, dict(enumerate(struct.pack(">HH", node, port), start=40))


def over_tcp(processes, bound, offer):
    """Messages between two ends both of which are mapped; that which is bound to this port has its offer altered."""
    with Forwarder(bound, offer) as forwarder:
        pull = traffic(processes, "pull", f"tcp://127.0.0.1:{bound}", bind=1, count=100, handshake=3000, wherry=0)
        wait_for_line(pull, "ready")
        push = traffic(processes, "push", f"tcp://127.0.0.1:{forwarder.port}", count=100, handshake=3000)
        assert "received 100" in all_succeed([pull, push])[0]


def test_a_join_that_meets_silence_goes_back_to_tcp(processes, port):
    """Here because the port that the bound end names leads to a program that stands still."""
    silent, _, offer = unrelated_listener(processes)
    silent.send_signal(signal.SIGSTOP)
    over_tcp(processes, port, offer)


def test_an_end_on_another_machine_leaves_alone_who_has_its_port_on_this_one(processes, port):
    """It is on another one as far as its offer says."""
    listener, address, offer = unrelated_listener(processes)
    over_tcp(processes, port, {**offer, **dict(enumerate(b"else", start=60))})
    peer = processes.start(PROGRAM, "pipe", address, stdin=subprocess.PIPE)
    peer.communicate("all of it")
    assert succeed(listener) == "all of it"


def traffic(processes, role, endpoint, **options):
    """What a receiver takes must have come over Wherry, unless the options say otherwise."""
    if role == "pull":
        options = {"wherry": 1, **options}
    command = [BUILD / "bin/traffic", role, endpoint, *(f"{name}={value}" for name, value in options.items())]
    return processes.start(*command, env={"WHERRY_ZMQ_MAP": MAP})


@pytest.mark.parametrize("options", [{"size": 64}, {"size": 1 << 20}, {"size": 3000, "hwm": 1, "ring": 4096, "pause": 300}, {"size": 10000, "curve": 1}], ids=str)
def test_mapped_messages_arrive_whole_and_in_order(processes, any_endpoint, port, options):
    count = max(20, (200_000 if options["size"] < 1000 else 2000) // SHORT // (1 + options["size"] // 100_000))
    endpoint = any_endpoint.replace("*", str(port))
    pull = traffic(processes, "pull", endpoint, bind=1, count=count, **options)
    push = traffic(processes, "push", endpoint, count=count, **options)
    assert f"received {count}" in all_succeed([pull, push])[0]


def test_sixty_mapped_senders_and_one_receiver(processes, tmp_path):
    endpoint = f"ipc://{tmp_path}/socket"
    pull = traffic(processes, "pull", endpoint, bind=1, senders=60, count=100, size=5000)
    pushes = [traffic(processes, "push", endpoint, sender=sender, count=100, size=5000) for sender in range(60)]
    assert "received 6000" in all_succeed([pull, *pushes])[0]


@pytest.mark.parametrize("victim", ["bound", "connected"])
def test_a_killed_mapped_end_is_replaced_and_the_other_goes_on(processes, any_endpoint, port, victim):
    endpoint = any_endpoint.replace("*", str(port))
    count = 100_000
    pull_binds = {"bind": 1} if victim == "bound" else {}
    push_binds = {} if victim == "bound" else {"bind": 1}
    push = traffic(processes, "push", endpoint, count=count, size=1000, hwm=100, **push_binds)
    for _ in range(3):
        pull = traffic(processes, "pull", endpoint, count=10**9, size=1000, hwm=100, gaps=1, pause=100_000, **pull_binds)
        wait_for_line(pull, "ready")
        time.sleep(0.1)
        pull.kill()
        pull.wait()
    pull = traffic(processes, "pull", endpoint, count=count, size=1000, hwm=100, gaps=1, **pull_binds)
    all_succeed([push, pull])


@pytest.mark.parametrize(
    "name", ["last_endpoint", "metadata", "monitor", "pair_ipc", "reqrep_tcp", "security_null", "security_plain", "spec_req", "srcfd", "term_endpoint"]
)
def test_libzmqs_own_tests_of_tcp_see_no_difference(name, tmp_path):
    """Unlike wherry://, for which functions of some of these cannot pass (suite.txt)."""
    own_test(f"test_{name}", tmp_path, WHERRY_ZMQ_MAP="tcp://,ipc://")


OFFER = b"wherry\x01" + struct.pack(">HH", 0, 0) + bytes(16)  # and the place, which a peer knows from the other end's
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00"
READY = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"


def receive(peer, bytes):
    data = b""
    while len(data) < bytes:
        more = peer.recv(bytes - len(data))
        if not more:
            break
        data += more
    return data


@pytest.mark.parametrize("how", ["goes on over tcp", "is gone", "is silent", "comes with the wrong token"])
def test_a_peer_that_offers_wherry_and_then_does_something_else_costs_only_itself(processes, port, how):
    if how == "comes with the wrong token" and not Path(PROGRAM).exists():
        pytest.skip("this build has no program wherry, which is the stranger")
    endpoint = f"tcp://127.0.0.1:{port}"
    # A third of it is for joining: with a silent peer the whole of that is waited for, and a good one must not need more.
    handshake = 15000 if how == "is silent" else 30000
    pull = traffic(processes, "pull", endpoint, bind=1, senders=1, count=100, size=16, handshake=handshake)
    wait_for_line(pull, "ready")
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(GREETING[:12])
        answer = receive(peer, 64)
        peer.sendall(GREETING[12:] + OFFER + answer[60:])
        assert answer[33:40] == b"wherry\x01" and answer[42:44] != b"\0\0"
        if how == "goes on over tcp":
            peer.sendall(READY)
            assert b"READY" in receive(peer, 8)
        elif how == "comes with the wrong token":
            node, at = struct.unpack(">HH", answer[40:44])
            stranger = processes.start(PROGRAM, "pipe", f"wherry://{node}:{at}", stdin=subprocess.PIPE)
            with contextlib.suppress(BrokenPipeError):  # it may have been refused by then
                stranger.stdin.write("x" * 100)
                stranger.stdin.close()
            stranger.wait(60)
        elif how == "is silent":
            assert b"READY" in receive(peer, 8)
        elif how == "is gone":
            peer.close()
        push = traffic(processes, "push", endpoint, count=100, size=16)
        assert "received 100" in all_succeed([pull, push])[0]


def test_a_connection_that_has_ended_leaves_no_descriptor(processes, any_endpoint):
    bound, name = end(processes, "pull", "bind", any_endpoint, senders=4)
    before = open_descriptors(bound)
    for _ in range(4):
        pushing, _ = end(processes, "push", "connect", name)
        wait_for_line(bound, "done")
        assert len(open_descriptors(bound)) > len(before)
        succeed(pushing)
        while open_descriptors(bound) != before:  # the watchdog ends it
            time.sleep(0.01)
    succeed(bound)


def open_descriptors(process):
    """All but of shared memory: the statistics, which the library keeps from its first stream on."""
    folder = Path(f"/proc/{process.pid}/fd")
    files = []
    for descriptor in os.listdir(folder):
        try:
            files.append(os.readlink(folder / descriptor))
        except FileNotFoundError:
            pass  # closed meanwhile
    return sorted(file for file in files if not file.startswith("/memfd:"))
