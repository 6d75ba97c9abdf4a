# SPDX-License-Identifier: Apache-2.0
"""A bad cable between two interfaces of this network namespace: bad_cable.py ONE OTHER [OPTION...].

Frames that come in on one interface go out on the other: some not at all (--loss), some twice (--double), each after --delay
seconds and up to --jitter more, so that later ones overtake. Prints "ready", then runs until it is killed.
"""

import argparse
import heapq
import random
import select
import socket
import time

ETH_P_ALL = 3
FRAME = 65536
MOST_QUEUED = 4096  # frames; more are lost, as in a switch


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs=2)
    for option in ("--loss", "--double", "--delay", "--jitter"):
        parser.add_argument(option, type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    Cable(parser.parse_args()).run()


class Cable:
    def __init__(self, options):
        self.options, self.random = options, random.Random(options.seed)
        ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for _ in options.names]
        for end, name in zip(ends, options.names, strict=True):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            end.bind((name, 0))
        self.other = {ends[0]: ends[1], ends[1]: ends[0]}
        self.queue, self.count = [], 0

    def run(self):
        print("ready", flush=True)
        while True:
            wait = max(0, self.queue[0][0] - time.monotonic()) if self.queue else None
            for end in select.select(list(self.other), [], [], wait)[0]:
                frame, address = end.recvfrom(FRAME)
                if address[2] != socket.PACKET_OUTGOING:
                    self.take(frame, self.other[end])
            self.deliver()

    def take(self, frame, to):
        if self.random.random() < self.options.loss or len(self.queue) >= MOST_QUEUED:
            return
        for _ in range(2 if self.random.random() < self.options.double else 1):
            due = time.monotonic() + self.options.delay + self.options.jitter * self.random.random()
            self.count += 1
            heapq.heappush(self.queue, (due, self.count, to, frame))

    def deliver(self):
        while self.queue and self.queue[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(self.queue)
            try:
                to.send(frame)
            except OSError:
                pass  # the interface is down, or its queue is full: lost


if __name__ == "__main__":
    main()
