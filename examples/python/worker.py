# SPDX-License-Identifier: Apache-2.0
# worker.py: waits for a host (host.py, or examples/cpp/host.cc) and sends it a line.
import wherry

with wherry.connect("wherry://0:2000", timeout=10) as stream:
    stream.send(b"hello from a card, in Python\n")
