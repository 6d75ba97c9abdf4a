# SPDX-License-Identifier: Apache-2.0
"""Sends itself messages within one process. Runs under `wherry run`."""

import zmq

COUNT, TOGETHER = 5000, 100

with zmq.Context() as context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
    pull.bind("wherry://*:*")
    push.connect(pull.getsockopt(zmq.LAST_ENDPOINT))
    for first in range(0, COUNT, TOGETHER):
        for number in range(first, first + TOGETHER):
            push.send(number.to_bytes(4, "little") * 1000)
        for number in range(first, first + TOGETHER):
            assert pull.recv() == number.to_bytes(4, "little") * 1000
print("all heard", flush=True)
