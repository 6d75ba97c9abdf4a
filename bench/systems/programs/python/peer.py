# SPDX-License-Identifier: Apache-2.0
"""peer.py WAY SENDERS CORES NAME: arrays from one Python process to another, as a peer of `wherry bench python`.

This process receives; a child of it sends. bench/systems/programs/README.md has the lines that are exchanged with `wherry
bench`, and ways.py the ways to send an array.
"""

import multiprocessing
import os
import sys
import time

from ways import WAYS

# Both bytes of a pattern and sums of arrays are words of 64 bits, as in bench/harness/touch.hpp.
WORD = (1 << 64) - 1


def pattern(message):
    return (message + 1) * 0x9E3779B97F4A7C15 & WORD


def main():
    way, _, cores, name = sys.argv[1:]
    pin(cores, 0)
    shared = WAYS[way].shared()
    orders, ours = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=send_samples, args=(way, cores, name, shared, ours), daemon=True)
    child.start()
    print("processes", os.getpid(), child.pid, flush=True)
    print("version", WAYS[way].version(), flush=True)
    receive_samples(WAYS[way], name, shared, orders)
    child.join()


def pin(cores, index):
    """"0,1": the receiver's core and the sender's."""
    if cores:
        os.sched_setaffinity(0, {int(cores.split(",")[index])})


def receive_samples(way, name, shared, sender):
    receiving, size = None, 0
    for number, line in enumerate(sys.stdin):
        words = line.split()
        if words == ["end"]:
            break
        _, question, *numbers = words
        if question != "stream":
            sys.exit(f"no answer to '{question}'")
        wanted, messages, warm_up, touched = map(int, numbers)
        address = None  # as before
        if wanted != size:
            if receiving is not None:
                receiving.close()
            receiving, size = way.Receiver(f"{name}-{number}", wanted, shared), wanted
            address = receiving.address
        sender.send((address, size, messages, warm_up, touched))
        receive(receiving, warm_up, touched)
        print("ready", flush=True)
        sys.stdin.readline()
        begin = time.monotonic()
        sender.send("go")
        total = receive(receiving, messages, touched)
        seconds = time.monotonic() - begin
        if sender.recv() != total:
            sys.exit("what was received is not what was sent")
        print("done", seconds, flush=True)
    sender.send(None)
    if receiving is not None:
        receiving.close()


def receive(receiving, messages, touched):
    """The sum of all words of these messages."""
    total = 0
    for _ in range(messages):
        array = receiving.receive()
        if touched:
            total += int(array.sum())
        del array
        receiving.release()
    return total & WORD


def send_samples(way, cores, name, shared, receiver):
    pin(cores, 1)
    sending = None
    while (order := receiver.recv()) is not None:
        address, size, messages, warm_up, touched = order
        if address is not None:
            if sending is not None:
                sending.close()
            sending = WAYS[way].Sender(address, size, shared)
        send(sending, size, warm_up, touched)
        receiver.recv()
        receiver.send(send(sending, size, messages, touched))
    if sending is not None:
        sending.close()


def send(sending, size, messages, touched):
    """The sum of all words of these messages, as the receiver will find it."""
    total = 0
    for message in range(messages):
        array = sending.prepare()
        if touched:
            word = pattern(message)
            array.fill(word)
            total += word * (size // 8)
        del array
        sending.send()
    sending.finish()
    return total & WORD


if __name__ == "__main__":
    main()
