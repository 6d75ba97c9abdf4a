# SPDX-License-Identifier: Apache-2.0
"""Sends itself a message, and once more in a forked child that has closed all descriptors, as a daemon does. Runs under
`wherry run`."""

import os
import sys

import zmq


def talk():
    with zmq.Context() as context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("wherry://*:*")
        push.connect(pull.getsockopt(zmq.LAST_ENDPOINT))
        push.send(b"heard")
        print(pull.recv().decode(), flush=True)


talk()
child = os.fork()
if child == 0:
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    talk()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
