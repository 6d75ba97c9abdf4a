# SPDX-License-Identifier: Apache-2.0
"""wherry.FramedStream: whole messages, in place."""

import errno

import numpy
import pytest
import wherry
from peers import output_of


def test_messages_arrive_whole(framed_pair):
    one, other = framed_pair
    for message in (b"one", b"", bytes(100_000)):
        assert one.send(message) == len(message)
        assert other.receive() == message
    assert other.try_receive() is None


def test_the_end_is_no_message(framed_pair):
    one, other = framed_pair
    one.send(b"last")
    one.close()
    assert list(other) == [b"last"]
    with pytest.raises(EOFError):
        other.receive()


def test_a_view_ends_with_the_next_receive(framed_pair):
    one, other = framed_pair
    one.send(b"one")
    one.send(b"two")
    view = other.receive()
    assert view == b"one" and view.readonly
    assert other.receive_bytes() == b"two"
    with pytest.raises(ValueError):
        view[0]


def test_the_next_receive_waits_for_the_arrays(framed_pair):
    one, other = framed_pair
    one.send(b"one")
    one.send(b"two")
    shown = numpy.frombuffer(other.receive(), "u1")
    with pytest.raises(BufferError, match="delete the array"):
        other.receive()
    assert bytes(shown) == b"one"
    del shown
    assert other.receive() == b"two"


def test_a_view_outlives_its_stream(framed_pair):
    one, other = framed_pair
    one.send(b"kept")
    shown = numpy.frombuffer(other.receive(), "u1")
    other.close()
    one.close()
    assert bytes(shown) == b"kept"


def test_held_messages_come_at_once(framed_pair):
    one, other = framed_pair
    one.hold()
    one.send(b"a")
    one.send(b"b")
    assert other.try_receive() is None
    one.flush()
    assert [other.receive_bytes(), other.receive_bytes()] == [b"a", b"b"]


def test_reserve_and_commit(framed_pair):
    one, other = framed_pair
    room = one.reserve(10)
    room[:3] = b"abc"
    one.commit(3)
    assert other.receive() == b"abc"
    with pytest.raises(ValueError):
        room[0]


def test_a_message_that_is_too_large(framed_pair):
    one, _ = framed_pair
    with pytest.raises(wherry.Error, match="larger ring") as caught:
        one.send(bytes(one.max_send + 1))
    assert caught.value.errno == errno.EMSGSIZE


def test_a_timeout_sends_nothing(framed_pair):
    one, other = framed_pair
    with pytest.raises(wherry.Timeout):
        other.receive(timeout=0.01)
    sent = 0
    while one.try_send(bytes(one.max_send // 3)) is not None:
        sent += 1
    with pytest.raises(wherry.Timeout):
        one.send(bytes(one.max_send // 3), timeout=0.01)
    for _ in range(sent):
        other.receive_bytes(timeout=60)
    one.send(b"behind")
    assert other.receive() == b"behind"


@pytest.mark.parametrize("dtype", ["<f8", ">i4", "u1", "c16", "S5", "U3", "M8[ms]", "?"])
def test_arrays_keep_dtype_and_shape(framed_pair, dtype):
    one, other = framed_pair
    sent = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
    one.send_array(sent)
    received = other.receive_array()
    assert received.dtype == sent.dtype and received.shape == sent.shape
    assert (received == sent).all()
    received[0, 0, 0] = sent[1, 1, 1]  # it is the caller's own


def test_what_is_no_array(framed_pair):
    one, other = framed_pair
    with pytest.raises(TypeError, match="cannot be sent"):
        one.send_array(numpy.array([object()]))
    with pytest.raises(TypeError, match="cannot be sent"):
        one.send_array(numpy.zeros(2, [("a", "i4"), ("b", "f8")]))
    with pytest.raises(TypeError, match="ndarray"):
        one.send_array(b"abc")
    one.send(b"no header")
    with pytest.raises(wherry.Error) as caught:
        other.receive_array()
    assert caught.value.errno == errno.EPROTO


def test_a_stream_is_taken_over_and_given_back(pair):
    one, other = pair
    framed = wherry.FramedStream(one)
    assert one.closed
    with pytest.raises(wherry.Error):
        one.send(b"x")
    one = framed.release()
    assert framed.closed
    one.send(b"bytes")
    assert other.receive() == b"bytes"


def test_a_program_in_another_language(peers):
    for program in ("cpp_framed", "c_framed"):
        with wherry.listen("wherry://*:2000") as listener:
            process = peers.example(program, "one", "and two")
            with wherry.FramedStream(listener.accept(timeout=60)) as messages:
                assert list(messages) == [b"one", b"and two"]
            output_of(process)
        process = peers.example(program, node=0)
        with wherry.FramedStream(wherry.connect("wherry://0:2000", timeout=60)) as messages:
            messages.send(b"from Python")
        assert output_of(process) == "from Python\n"
