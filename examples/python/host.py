# SPDX-License-Identifier: Apache-2.0
# host.py: prints what one worker sends.
import sys

import wherry

with wherry.listen("wherry://*:2000") as listener, listener.accept() as stream:
    while received := stream.receive():
        sys.stdout.buffer.write(received)
