# SPDX-License-Identifier: Apache-2.0
"""Processes: fork, multiprocessing, the interpreter's end, and free threads."""

import errno
import multiprocessing
import os
import traceback

import numpy
import pytest
import wherry
import workers


def in_child(work):
    """The exit status of a forked child that runs `work`."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(int(work() or 0))
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_leaves_its_parents_objects_alone(pair):
    one, other = pair
    publisher, mailbox, poller = wherry.Publisher(), wherry.Mailbox(), wherry.Poller()
    publisher.listen("wherry://*:*")
    loaned = publisher.loan(100)

    def child():
        for call in (other.receive, lambda: one.send(b"x"), lambda: publisher.loan(1), lambda: mailbox.receive(),
                     lambda: poller.wait(), one.fileno):
            with pytest.raises(wherry.Error, match="parent process") as caught:
                call()
            assert caught.value.errno == errno.EBADF
        for item in (one, other, publisher, mailbox, poller):
            item.close()
        return 0

    assert in_child(child) == 0
    one.send(b"still connected")
    assert other.receive(timeout=60) == b"still connected"
    publisher.publish(loaned)
    for item in (publisher, mailbox, poller):
        item.close()


def test_a_forked_child_connects_itself():
    with wherry.listen("wherry://*:*") as listener:
        address = listener.local
        pid = os.fork()
        if pid == 0:
            with wherry.connect(address, 60) as stream:
                stream.send(b"from the child")
            os._exit(0)
        with listener.accept(timeout=60) as stream:
            assert stream.receive(timeout=60) == b"from the child"
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_fork_beside_a_call_that_waits(pair, in_thread):
    one, other = pair
    receiving = in_thread(other.receive)
    receiving.join(0.05)

    def child():
        other.close()  # whose turn a thread of the parent has
        return 0

    assert in_child(child) == 0
    one.send(b"x")
    assert receiving.result() == b"x"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    context = multiprocessing.get_context(method)
    with wherry.Subscriber() as subscriber:
        subscriber.listen("wherry://*:*")
        processes = [context.Process(target=workers.publish, args=(subscriber.local, number)) for number in range(3)]
        for process in processes:
            process.start()
        taken = sorted(int(subscriber.take(timeout=120).array.sum()) for _ in processes)
        for process in processes:
            process.join(120)
        assert [process.exitcode for process in processes] == [0, 0, 0]
    assert taken == [0, 1000, 2000]


def test_objects_are_not_pickled(pair):
    import pickle

    with pytest.raises(TypeError):
        pickle.dumps(pair[0])


ENDING = """
import sys, threading, time, wherry
kind = sys.argv[1]
listener = wherry.listen("wherry://*:*")
attempt = wherry.start_connect(listener.local)
one = listener.accept(); other = attempt.finish()
subscriber = wherry.Subscriber(); subscriber.listen("wherry://*:*")
mailbox = wherry.Mailbox(); mailbox.listen("wherry://*:*")
def busy():
    while True:
        one.send(b"x" * 100_000); other.receive_all(bytearray(100_000))
def timeouts():
    while True:
        try:
            other.receive(timeout=0.0001)
        except TimeoutError:
            pass
calls = {"receive": other.receive, "take": subscriber.take, "mailbox": mailbox.receive, "accept": listener.accept,
         "busy": busy, "timeouts": timeouts}
threads = [threading.Thread(target=calls[kind], daemon=True) for _ in range(1 if kind != "timeouts" else 4)]
for thread in threads:
    thread.start()
time.sleep(0.1)
framed_view = None
print("end", flush=True)
"""


@pytest.mark.parametrize("kind", ["receive", "take", "mailbox", "accept", "busy", "timeouts"])
def test_the_interpreter_ends_beside_threads_that_wait(python, kind):
    for _ in range(5):
        done = python(ENDING, kind)
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_objects_that_are_left_at_the_end(python):
    done = python(
        "import numpy, wherry\n"
        "listener = wherry.listen('wherry://*:*'); attempt = wherry.start_connect(listener.local)\n"
        "one = wherry.FramedStream(listener.accept()); other = wherry.FramedStream(attempt.finish())\n"
        "one.send(b'abc'); view = numpy.frombuffer(other.receive(), 'u1')\n"
        "publisher = wherry.Publisher(); publisher.listen('wherry://*:*'); loan = publisher.loan((2, 3), 'f4')\n"
        "poller = wherry.Poller(); poller.add(one); cycle = [poller]; cycle.append(cycle); poller.add(other, cycle)\n"
        "print(bytes(view))"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "b'abc'\n", "")


def test_a_killed_subscriber_gives_its_messages_back(peers):
    with wherry.Publisher(pool_bytes=4096) as publisher:
        publisher.listen("wherry://*:*")
        process = peers.code(
            "import sys, time, wherry; s = wherry.Subscriber(); s.connect(sys.argv[1]); m = s.take(); print(len(m), flush=True)\n"
            "time.sleep(1000)",
            publisher.local,
        )
        publisher.admit(1, timeout=60)
        publisher.publish(numpy.zeros(4096, "u1").tobytes())
        assert process.stdout.readline() == "4096\n"
        with pytest.raises(wherry.Timeout):
            publisher.loan(4096, timeout=0.05)
        process.kill()
        assert len(publisher.loan(4096, timeout=60)) == 4096
