# SPDX-License-Identifier: Apache-2.0
"""wherry.Stream: what is sent arrives, from Python, C++ and C."""

import array
import errno
import os
import select
import subprocess

import numpy
import pytest
import wherry
from peers import PROGRAM, output_of


def test_bytes_arrive_in_order(pair):
    one, other = pair
    assert one.send(b"hello ") == 6
    assert one.send(bytearray(b"world")) == 5
    assert other.receive() == b"hello world"
    assert other.try_receive() is None
    one.close()
    assert other.receive() == b"" and other.try_receive() == b""


def test_more_than_a_ring_holds_arrives(pair, in_thread):
    one, other = pair
    data = numpy.arange(3_000_000, dtype="<u4")
    assert data.nbytes > one.send_capacity
    sending = in_thread(one.send, data)
    received = numpy.zeros_like(data)
    assert other.receive_all(received) == data.nbytes
    assert sending.result() == data.nbytes
    assert (received == data).all()


def test_receive_all_ends_short_at_the_end(pair):
    one, other = pair
    one.send(b"abc")
    one.finish_sending()
    place = bytearray(10)
    assert other.receive_all(place) == 3
    assert place == b"abc" + bytes(7)


def test_receive_into_every_kind_of_buffer(pair):
    one, other = pair
    for place in (bytearray(3), array.array("B", bytes(3)), numpy.zeros(3, "u1"), memoryview(bytearray(3))):
        one.send(b"abc")
        assert other.receive_into(place) == 3
        assert bytes(place) == b"abc"


def test_receive_takes_at_most_its_size(pair):
    one, other = pair
    one.send(b"abcdef")
    assert other.receive(4) == b"abcd"
    assert other.receive(4) == b"ef"


def test_a_read_only_array_is_sent_and_not_received_into(pair):
    one, other = pair
    frozen = numpy.arange(4, dtype="u1")
    frozen.flags.writeable = False
    one.send(frozen)
    assert other.receive() == bytes(range(4))
    one.send(b"x")
    for place in (frozen, b"abc", memoryview(b"abc")):
        with pytest.raises(BufferError, match="read-only"):
            other.receive_into(place)
    assert other.receive() == b"x"


def test_an_array_with_gaps_is_sent_in_order_and_not_received_into(pair):
    one, other = pair
    grid = numpy.arange(12, dtype="u1").reshape(3, 4)
    for gaps in (grid[:, ::2], grid.T, grid[::-1]):
        one.send(gaps)
        assert other.receive() == gaps.tobytes()
        one.send(b"x")
        with pytest.raises(BufferError, match="contiguous"):
            other.receive_into(gaps)
        other.receive()


@pytest.mark.parametrize("wrong", ["text", 3, None, [1, 2]])
def test_what_is_no_buffer_is_refused(pair, wrong):
    one, other = pair
    with pytest.raises(TypeError):
        one.send(wrong)
    with pytest.raises(TypeError):
        other.receive_into(wrong)


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_wrong_timeout_is_refused(pair, timeout):
    with pytest.raises(ValueError, match="0 or more seconds"):
        pair[0].receive(timeout=timeout)


def test_a_timeout_is_one_of_every_kind(pair):
    with pytest.raises(wherry.Timeout) as caught:
        pair[0].receive(timeout=0.01)
    assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ETIMEDOUT and caught.value.operation == "receive"
    with pytest.raises(wherry.Timeout):
        pair[0].receive(timeout=0)


def test_a_send_that_times_out_tells_how_much_went(pair):
    one, other = pair
    with pytest.raises(wherry.Timeout) as caught:
        one.send(bytes(2 * one.send_capacity), timeout=0.01)
    assert caught.value.moved == one.send_capacity
    received = 0
    while part := other.try_receive():
        received += len(part)
    assert received == caught.value.moved


def test_try_send_takes_a_part_and_then_nothing(pair):
    one, other = pair
    assert one.try_send(bytes(2 * one.send_capacity)) == one.send_capacity
    assert one.try_send(b"x") is None


def test_errors_say_what_to_do():
    with pytest.raises(wherry.ConnectionRefused, match="start a listener|nobody listens|no listener") as caught:
        wherry.connect("wherry://0:65000", timeout=0)
    assert isinstance(caught.value, ConnectionRefusedError)
    assert caught.value.errno == errno.ECONNREFUSED
    assert caught.value.address == "wherry://0:65000" and caught.value.advice
    assert caught.value.advice in str(caught.value)
    with pytest.raises(wherry.Error, match="an address looks like wherry://") as caught:
        wherry.listen("tcp://0:1")
    assert caught.value.errno == errno.EINVAL


def test_a_peer_that_is_gone(pair):
    one, other = pair
    one.close()
    with pytest.raises(wherry.BrokenPipe, match="has closed or died"):
        for _ in range(1000):
            other.send(bytes(10_000), timeout=60)


def test_a_closed_stream_refuses_every_call(pair):
    one, _ = pair
    assert not one.closed
    one.close()
    one.close()
    assert one.closed
    for call in (one.receive, one.fileno, one.finish_sending, one.counters, one.cancel, one.peek):
        with pytest.raises(wherry.Error) as caught:
            call()
        assert caught.value.errno == errno.EBADF


def test_views_of_the_ring(pair):
    one, other = pair
    (room,) = one.reserve(5)
    room[:] = b"abcde"
    assert one.commit(5) == 5
    with pytest.raises(ValueError):
        room[0]
    assert other.wait_readable() == 5
    (view,) = other.peek()
    assert view == b"abcde" and view.readonly
    other.consume(2)
    with pytest.raises(ValueError):
        view[0]
    assert bytes(other.peek()[0]) == b"cde"


def test_consume_waits_for_the_arrays_over_its_views(pair):
    one, other = pair
    one.send(b"abc")
    shown = numpy.frombuffer(other.peek()[0], "u1")
    with pytest.raises(BufferError, match="delete the array"):
        other.consume(3)
    del shown
    other.consume(3)
    assert other.peek() == []


def test_a_view_outlives_its_stream(pair):
    one, other = pair
    one.send(b"abc")
    shown = numpy.frombuffer(other.peek()[0], "u1")
    other.close()
    one.close()
    assert bytes(shown) == b"abc"


def test_descriptors_are_readable_when_there_is_something_to_do(pair):
    one, other = pair
    assert select.select([other], [], [], 0)[0] == []
    one.send(b"x")
    assert select.select([other], [], [], 60)[0] == [other]
    while one.try_send(bytes(100_000)) is not None:
        pass
    assert select.select([one.send_descriptor()], [], [], 0)[0] == []
    while other.try_receive(1 << 20) is not None:
        pass
    assert select.select([one.send_descriptor()], [], [], 60)[0] != []


def test_addresses_and_counters(pair):
    one, other = pair
    assert one.peer.pid == os.getpid() and one.peer.uid == os.geteuid()
    one.send(b"abc")
    other.receive()
    assert other.counters()["bytes_received"] == 3 and one.counters()["bytes_sent"] == 3
    assert one.local.startswith("wherry+shm://0:")


@pytest.mark.parametrize("worker, line", [("cpp_worker", b"hello from a card\n"), ("c_worker", b"hello from a card, in C\n")])
def test_a_worker_in_another_language(peers, worker, line):
    with wherry.listen("wherry://*:2000") as listener:
        process = peers.example(worker)
        with listener.accept(timeout=60) as stream:
            received = b""
            while part := stream.receive(timeout=60):
                received += part
        assert received == line
        assert stream.closed
        output_of(process)


@pytest.mark.parametrize("host", ["cpp_host", "c_host"])
def test_a_host_in_another_language(peers, host):
    process = peers.example(host, node=0)
    with wherry.connect("wherry://0:2000", timeout=60) as stream:
        stream.send(b"from Python\n")
    assert output_of(process) == "from Python\n"


def test_the_program_wherry_at_the_other_end(peers):
    with wherry.listen("wherry://*:*") as listener:
        process = peers.start(PROGRAM, "pipe", listener.local, stdin=subprocess.PIPE)
        process.stdin.write("through a pipe")
        process.stdin.close()
        process.stdin = None
        with listener.accept(timeout=60) as stream:
            assert b"".join(iter(lambda: stream.receive(timeout=60), b"")) == b"through a pipe"
    assert process.wait(60) == 0


def test_a_killed_peer(peers):
    with wherry.listen("wherry://*:*") as listener:
        process = peers.code(
            "import sys, time, wherry; s = wherry.connect(sys.argv[1]); s.send(b'last words'); time.sleep(1000)",
            listener.local,
        )
        with listener.accept(timeout=60) as stream:
            assert stream.receive(timeout=60) == b"last words"
            process.kill()
            with pytest.raises(wherry.ConnectionReset, match="died"):
                stream.receive(timeout=60)
