# SPDX-License-Identifier: Apache-2.0
"""What is made again and again leaves nothing behind: no memory, descriptor or mapping, and no object of Python's."""

import gc
import os
import tracemalloc

import numpy
import wherry

ROUNDS = 100_000 if os.environ.get("WHERRY_SOAK") else 10_000


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def mappings():
    with open("/proc/self/maps") as file:
        return sum(1 for _ in file)


def grows(work, rounds):
    """Bytes of memory, descriptors, mappings and bytes of Python's objects that `rounds` calls leave, after some that warm up."""
    for _ in range(rounds // 10):
        work()
    gc.collect()
    tracemalloc.start()
    before = resident_bytes(), descriptors(), mappings(), tracemalloc.get_traced_memory()[0]
    for _ in range(rounds):
        work()
    gc.collect()
    after = resident_bytes(), descriptors(), mappings(), tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return [late - early for early, late in zip(before, after, strict=True)]


def test_connects_leave_nothing():
    with wherry.listen("wherry://*:*", ring_bytes=4096) as listener:

        def connect():
            attempt = wherry.start_connect(listener.local, ring_bytes=4096)
            with listener.accept(timeout=60) as one, attempt.finish(60) as other:
                one.send(b"x")
                assert other.receive() == b"x"
                other.fileno()

        resident, files, maps, traced = grows(connect, ROUNDS)
    assert files == 0 and maps < 20
    assert resident < 100 * ROUNDS, f"{resident / ROUNDS} bytes a connection"
    assert traced < 100_000


def test_messages_and_failures_leave_nothing():
    with wherry.Publisher(pool_bytes=1 << 20) as publisher, wherry.Subscriber() as subscriber:
        publisher.listen("wherry://*:*")
        subscriber.start_connect(publisher.local)
        publisher.admit(1, timeout=60)
        subscriber.admit(1, timeout=60)
        data = numpy.zeros(1000)

        def exchange():
            publisher.publish(data)
            loaned = publisher.loan((10, 10), "f4")
            publisher.publish(loaned)
            for _ in range(2):
                message = subscriber.take(timeout=60)
                numpy.asarray(message)
            try:
                subscriber.take(timeout=0)
            except wherry.Timeout:
                pass
            try:
                wherry.connect("wherry://0:64998", timeout=0)
            except wherry.ConnectionRefused:
                pass

        resident, files, maps, traced = grows(exchange, ROUNDS // 5)
    assert files == 0 and maps < 20 and traced < 100_000
    assert resident < 20 * ROUNDS, resident
