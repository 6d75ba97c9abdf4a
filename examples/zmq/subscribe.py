#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Subscribes to one instrument and tells what it has read.

    wherry run --node 1 -- python3 subscribe.py wherry://0:2001 pressure
"""

import sys

import zmq

endpoint, topic = sys.argv[1], sys.argv[2].encode()

with zmq.Context() as context, context.socket(zmq.SUB) as socket:
    socket.setsockopt(zmq.SUBSCRIBE, b"end")
    socket.setsockopt(zmq.SUBSCRIBE, topic)
    socket.connect(endpoint)
    readings = []
    while True:
        name, value = socket.recv_multipart()
        if name == b"end":
            break
        readings.append(int(value))
    print(f"{topic.decode()}: {len(readings)} readings from {min(readings)} to {max(readings)}")
