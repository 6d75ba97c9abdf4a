# SPDX-License-Identifier: Apache-2.0
"""many_connections.py ROLE CONNECTIONS [ENOUGH]: `pull` receives one number over each of them, `push` opens them from one socket and
sends, `in_turn` opens each once the one before it is established, `both` has both ends, a socket for each connection. Prints what that cost. If ENOUGH of them are, `push` goes on until its monitor
has told of an error. Runs under `wherry run`. ENDPOINT of the environment is an endpoint to use instead of wherry://."""

import errno
import os
import sys

import zmq
from zmq.utils.monitor import recv_monitor_message

ENDPOINT = os.environ.get("ENDPOINT", "wherry://0:2000")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def watch(monitor, handshakes, fails):
    """Until the monitor has told of so many, and of an error if one is to come. Returns errors, as errno knows them."""
    errors = set()
    while handshakes > 0 or (fails and not errors):
        event = recv_monitor_message(monitor)
        handshakes -= event["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
        if event["event"] == zmq.EVENT_CONNECT_DELAYED and event["value"] != errno.EINPROGRESS:
            errors.add(errno.errorcode[event["value"]])
    return sorted(errors)


def pull(context, connections):
    socket = context.socket(zmq.PULL)
    socket.bind(ENDPOINT)
    before = descriptors()
    print("ready", flush=True)
    received = {socket.recv() for _ in range(connections)}
    print("received", len(received), "descriptors", descriptors() - before, flush=True)
    sys.stdin.read()


def push(context, connections, enough):
    socket = context.socket(zmq.PUSH)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    monitor = socket.get_monitor_socket()
    before = descriptors()
    for _ in range(connections):
        socket.connect(ENDPOINT)
    errors = watch(monitor, enough, fails=enough < connections)
    for number in range(enough):
        socket.send(b"%d" % number)
    print("sent", enough, "descriptors", descriptors() - before, "errors", *errors, flush=True)
    sys.stdin.read()


def in_turn(context, connections):
    socket = context.socket(zmq.PUSH)
    monitor = socket.get_monitor_socket()
    for _ in range(connections):
        socket.connect(ENDPOINT)
        watch(monitor, 1, fails=False)
    for number in range(connections):
        socket.send(b"%d" % number)
    print("sent", connections, flush=True)
    sys.stdin.read()


def both(context, connections):
    """With fewer descriptors than all of them need: what fits must work."""
    receiver = context.socket(zmq.PULL)
    accepts = receiver.get_monitor_socket(zmq.EVENT_ACCEPT_FAILED)
    receiver.bind("wherry://*:2000")
    senders = [context.socket(zmq.PUSH) for _ in range(connections)]
    for number, sender in enumerate(senders):
        sender.connect(ENDPOINT)
        sender.send(b"%d" % number)
    received = {receiver.recv() for _ in range(connections // 4)}
    print("received", len(received), "refused", bool(accepts.poll(60000)), flush=True)


context = zmq.Context()
context.set(zmq.MAX_SOCKETS, 4000)
context.setsockopt(zmq.LINGER, 0)
{"pull": pull, "push": push, "in_turn": in_turn, "both": both}[sys.argv[1]](context, *map(int, sys.argv[2:]))
os._exit(0)
