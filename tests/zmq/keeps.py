# SPDX-License-Identifier: Apache-2.0
"""`keeps.py push|pull ENDPOINT`: the one sends 20000 messages of 5000 bytes, the other keeps one in fifty of them and prints
how many bytes its memory has grown by."""

import os
import sys

import zmq

COUNT, SIZE = 20000, 5000


def resident():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


role, endpoint = sys.argv[1:]
with zmq.Context() as context, context.socket(zmq.PULL if role == "pull" else zmq.PUSH) as socket:
    if role == "push":
        socket.connect(endpoint)
        for _ in range(COUNT):
            socket.send(bytes(SIZE))
    else:
        socket.setsockopt(zmq.RCVHWM, 1)  # more waits in the kernel, and is read in pieces as large as may be
        socket.bind(endpoint)
        print("endpoint", socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode(), flush=True)
        before = resident()
        kept = []
        for number in range(COUNT):
            message = socket.recv(copy=False)
            if number % 50 == 0:
                kept.append(message)
        print("grown", resident() - before, flush=True)
