#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tail of a pipeline: pulls pieces of work until it has them all.

    wherry run --node 1 -- python3 pull.py wherry://0:2000 1000
"""

import sys

import zmq

endpoint, count = sys.argv[1], int(sys.argv[2])

with zmq.Context() as context, context.socket(zmq.PULL) as socket:
    socket.connect(endpoint)
    total = 0
    for number in range(count):
        piece = socket.recv_pyobj()
        if piece["number"] != number:
            sys.exit(f"piece {piece['number']} instead of {number}")
        total += len(piece["payload"])
    print(f"{count} pieces, {total} bytes, in order")
