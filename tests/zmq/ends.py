# SPDX-License-Identifier: Apache-2.0
"""One end of a pipeline that keeps tcp:// or ipc:// for its endpoint: `ends.py pull|push bind|connect ENDPOINT COUNT SIZE SENDERS`. With
IPV6 in the environment its socket is one of IPv6.

Prints its endpoint, says "done" after the COUNT messages of each sender, one sender after the other, and stays until its
standard input ends."""

import os
import sys

import zmq

role, how, endpoint, count, size, senders = *sys.argv[1:4], *map(int, sys.argv[4:])


def message(number):
    return number.to_bytes(8, "big") + bytes([number % 251]) * (size - 8)


with zmq.Context() as context, context.socket(zmq.PULL if role == "pull" else zmq.PUSH) as socket:
    socket.setsockopt(zmq.IPV6, "IPV6" in os.environ)
    getattr(socket, how)(endpoint)
    print("endpoint", socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode(), flush=True)
    for _ in range(senders):
        for number in range(count):
            if role == "push":
                socket.send(message(number))
                continue
            received = socket.recv(copy=False)
            assert received.bytes == message(number)
            if number == 0:
                print("from", received.get("Peer-Address"), flush=True)
        print("done", flush=True)
    sys.stdin.read()
