# SPDX-License-Identifier: Apache-2.0
"""Threads: the GIL is given up while a call waits, and no call is disturbed by another's, or by a signal."""

import gc
import signal
import subprocess
import threading

import numpy
import pytest
import wherry
from peers import output_of


def waits(thread):
    """Whether a thread is still in its call, after other threads could run."""
    thread.join(0.05)
    return thread.is_alive()


# Calls that block without limit on one end, each with the call of the other end that completes it.
@pytest.fixture
def blocked(in_thread):
    """Starts a call in a thread, and sees that this thread runs meanwhile."""

    def start(call, *arguments):
        thread = in_thread(call, *arguments)
        assert waits(thread), thread.error or thread.value
        return thread

    return start


def test_streams_give_the_gil_up(pair, blocked):
    one, other = pair
    for call, expected in ((other.receive, b"x"), (lambda: other.receive_into(bytearray(9)), 1), (other.wait_readable, 1)):
        thread = blocked(call)
        one.send(b"x")
        assert thread.result() == expected
    other.receive()
    size = 2 * one.send_capacity
    sending = blocked(one.send, bytes(size))
    place = bytearray(size)
    assert other.receive_all(place, timeout=60) == size and sending.result() == size


def test_setting_up_gives_the_gil_up(blocked):
    with wherry.listen("wherry://*:*") as listener:
        accepting = blocked(listener.accept)
        connected = wherry.connect(listener.local, 60)
        accepting.result().close()
        connected.close()
        address = listener.local
    connecting = blocked(wherry.connect, address, 60)
    with wherry.listen(address) as listener:
        listener.accept(timeout=60).close()
    connecting.result().close()


def test_messages_give_the_gil_up(framed_pair, blocked):
    one, other = framed_pair
    receiving = blocked(other.receive_bytes)
    one.send(b"x")
    assert receiving.result() == b"x"
    with wherry.Publisher(pool_bytes=4096) as publisher, wherry.Subscriber(queue=1) as subscriber:
        publisher.listen("wherry://*:*")
        connecting = blocked(subscriber.connect, publisher.local)
        publisher.admit(1, timeout=60)
        connecting.result()
        taking = blocked(lambda: bytes(subscriber.take()))
        publisher.publish(b"taken")
        assert taking.result() == b"taken"
        publisher.publish(b"queued")
        publishing = blocked(publisher.publish, b"waits for the queue")
        assert bytes(subscriber.take()) == b"queued"
        publishing.result()


def test_an_array_that_dies_beside_a_take_gives_its_memory_back(blocked):
    with wherry.Publisher(pool_bytes=4096) as publisher, wherry.Subscriber(queue=4) as subscriber:
        publisher.listen("wherry://*:*")
        subscriber.start_connect(publisher.local)
        publisher.admit(1, timeout=60)
        subscriber.admit(1, timeout=60)
        publisher.publish(bytes(4096))
        held = subscriber.take(timeout=60).array
        taking = blocked(subscriber.take)
        loaning = blocked(publisher.loan, 4096)
        del held  # in this thread, while the other takes
        publisher.publish(loaning.result())
        assert len(taking.result()) == 4096


@pytest.mark.parametrize("end", ["close", "cancel"])
def test_a_call_of_another_thread_is_ended(pair, blocked, end):
    one, other = pair
    receiving = blocked(other.receive)
    getattr(other, end)()
    with pytest.raises(wherry.Cancelled, match="ended the call"):
        receiving.result()
    assert other.closed == (end == "close")
    if end == "close":
        with pytest.raises(wherry.BrokenPipe):
            while True:
                one.send(bytes(10_000), timeout=60)


def test_a_listener_is_closed_beside_its_accept(blocked):
    listener = wherry.listen("wherry://*:*")
    accepting = blocked(listener.accept)
    listener.close()
    with pytest.raises(wherry.Cancelled):
        accepting.result()


def test_an_object_stays_while_a_thread_is_in_its_call(pair, blocked):
    one, other = pair
    other_ends = [wherry.FramedStream(other)]
    receiving = blocked(lambda: bytes(other_ends.pop().receive()))
    gc.collect()
    wherry.FramedStream(one).send(b"still there")
    assert receiving.result() == b"still there"


def test_threads_take_turns(pair, in_thread):
    one, other = pair
    size, senders = 500_000, 4
    threads = [in_thread(one.send, bytes([number]) * size) for number in range(senders)]
    place = numpy.empty(size * senders, "u1")
    assert other.receive_all(place, timeout=60) == place.size
    for thread in threads:
        assert thread.result() == size
    changes = numpy.flatnonzero(numpy.diff(place))
    assert (changes + 1).tolist() == [size, 2 * size, 3 * size]  # no message was cut by another


def test_a_turn_that_does_not_come_times_out(pair, blocked):
    one, other = pair
    receiving = blocked(other.receive)
    with pytest.raises(wherry.Timeout, match="another thread"):
        other.receive(timeout=0.01)
    one.send(b"x")
    receiving.result()


INTERRUPTED = """
import os, signal, sys, threading, wherry
call = sys.argv[1]
listener = wherry.listen("wherry://*:*", ring_bytes=4096)
attempt = wherry.start_connect(listener.local)
one = listener.accept(); other = attempt.finish()
publisher = wherry.Publisher(pool_bytes=4096); publisher.listen("wherry://*:*")
subscriber = wherry.Subscriber(queue=1); subscriber.start_connect(publisher.local)
publisher.admit(1); subscriber.admit(1)
mailbox = wherry.Mailbox(); mailbox.listen("wherry://*:*")
def publish():
    while True:
        publisher.publish(b"x")
def loan():
    publisher.publish(bytes(4096)); taken = subscriber.take(); publisher.loan(4096)
def send_framed():
    framed = wherry.FramedStream(one)
    while True:
        framed.send(b"x")
calls = {
    "accept": listener.accept, "connect": lambda: wherry.connect("wherry://0:64999", float("inf")),
    "receive": one.receive, "receive_all": lambda: one.receive_all(bytearray(10)), "send": lambda: other.send(bytes(1 << 24)),
    "wait_readable": one.wait_readable, "framed": lambda: wherry.FramedStream(one).receive(), "framed_send": send_framed,
    "take": subscriber.take, "publish": publish, "loan": loan, "admit": lambda: publisher.admit(2),
    "poller": wherry.Poller().wait, "mailbox": mailbox.receive, "mailbox_wait": mailbox.wait,
    "mailbox_send": lambda: wherry.Mailbox().send(0, b""),
}
if call == "mailbox_send":
    sender = wherry.Mailbox(); to = sender.connect(mailbox.local)
    calls[call] = lambda: sender.send(to, bytes(1 << 20))
if call == "joining":
    silent = wherry.listen("wherry://*:*"); lonely = wherry.Subscriber()
    calls[call] = lambda: lonely.connect(silent.local)
if call == "turn":
    threading.Thread(target=one.receive, daemon=True).start()
    calls[call] = lambda: one.receive()
print("ready", flush=True)
try:
    calls[call]()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize(
    "call",
    ["accept", "connect", "receive", "receive_all", "send", "wait_readable", "framed", "framed_send", "take", "publish", "loan",
     "admit", "poller", "mailbox", "mailbox_wait", "mailbox_send", "turn", "joining"],
)
def test_control_c_ends_every_call_that_waits(peers, call):
    process = peers.code(INTERRUPTED, call, node=0)
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGINT)
    assert output_of(process) == "interrupted\n"


def test_a_signal_handler_that_returns_ends_no_wait(pair):
    one, other = pair
    ran = []

    def handle(*_):
        ran.append(threading.current_thread())
        one.send(b"from the handler")

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert other.receive(timeout=60) == b"from the handler"
        assert ran == [threading.main_thread()]
    finally:
        signal.signal(signal.SIGALRM, before)
