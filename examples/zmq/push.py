#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The head of a pipeline: hands numbered pieces of work to whoever pulls.

    wherry run -- python3 push.py wherry://*:2000 1000
"""

import sys

import zmq

endpoint, count = sys.argv[1], int(sys.argv[2])

with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
    socket.bind(endpoint)
    for number in range(count):
        socket.send_pyobj({"number": number, "payload": bytes(10_000)})
