#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Publishes readings of two instruments, once so many subscribers are there.

    wherry run -- python3 publish.py wherry://*:2001 1
"""

import sys

import zmq

endpoint, subscribers = sys.argv[1], int(sys.argv[2])

with zmq.Context() as context, context.socket(zmq.XPUB) as socket:
    socket.setsockopt(zmq.XPUB_VERBOSE, 1)
    socket.bind(endpoint)
    for _ in range(2 * subscribers):
        socket.recv()  # a subscription; each subscriber has two
    for second in range(100):
        socket.send_multipart([b"temperature", b"%d" % (20 + second % 5)])
        socket.send_multipart([b"pressure", b"%d" % (1000 + second)])
    socket.send_multipart([b"end", b""])
