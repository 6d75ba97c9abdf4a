# SPDX-License-Identifier: Apache-2.0
"""wherry.Publisher and wherry.Subscriber: arrays in shared memory."""

import errno
import gc
import struct

import numpy
import pytest
import wherry
from peers import output_of

HEADER = struct.Struct("<IIIHHQ16s24x8Q")  # docs/python-reference.md
MAGIC = 0x59525241


@pytest.fixture
def joined():
    """A publisher and a subscriber in this process."""
    with wherry.Publisher(pool_bytes=1 << 20) as publisher, wherry.Subscriber(queue=4) as subscriber:
        publisher.listen("wherry://*:*")
        subscriber.start_connect(publisher.local)
        assert publisher.admit(1, timeout=60) == 1
        assert subscriber.admit(1, timeout=60) == 1
        yield publisher, subscriber


@pytest.mark.parametrize("dtype", ["<f8", ">u2", "c8", "?", "S7", "U2", "M8[ns]", "f2"])
def test_an_array_is_taken_where_it_was_written(joined, dtype):
    publisher, subscriber = joined
    expected = numpy.arange(24).reshape(2, 3, 4).astype(dtype)
    loaned = publisher.loan((2, 3, 4), dtype)
    assert loaned.ctypes.data % 64 == 0
    loaned[:] = expected
    publisher.publish(loaned)
    assert not loaned.flags.writeable
    message = subscriber.take()
    assert message.is_array and message.shape == (2, 3, 4) and message.dtype == expected.dtype.str
    taken = message.array
    assert taken.dtype == expected.dtype and (taken == expected).all()
    assert not taken.flags.writeable
    with pytest.raises(ValueError):
        taken[0] = taken[1]


def test_other_data_is_copied(joined):
    publisher, subscriber = joined
    grid = numpy.arange(12, dtype="i4").reshape(3, 4)[:, ::2]
    publisher.publish(grid)
    assert (subscriber.take().array == grid).all()
    publisher.publish(b"plain bytes")
    message = subscriber.take()
    assert bytes(message) == b"plain bytes" and not message.is_array and len(message) == 11
    publisher.publish(numpy.zeros((100, 1000), "u4"))
    assert subscriber.take().array.sum() == 0
    with pytest.raises(TypeError):
        publisher.publish("text")


def test_shapes_of_nothing_and_of_one(joined):
    publisher, subscriber = joined
    for shape in ((), (0,), (3, 0, 2), 5):
        loaned = publisher.loan(shape, "i2")
        loaned[...] = 7
        publisher.publish(loaned)
        taken = subscriber.take().array
        assert taken.shape == loaned.shape and (taken == 7).all()


def test_the_buffer_protocol_and_dlpack(joined):
    publisher, subscriber = joined
    publisher.publish(numpy.arange(6, dtype="f8").reshape(2, 3))
    message = subscriber.take()
    view = memoryview(message)
    assert view.shape == (2, 3) and view.format == "d" and view.readonly and view.tolist()[1] == [3.0, 4.0, 5.0]
    assert (numpy.asarray(message) == message.array).all()
    shared = numpy.from_dlpack(message)
    assert shared.ctypes.data == message.array.ctypes.data and not shared.flags.writeable
    with pytest.raises(BufferError):
        message.release()
    del view, shared
    gc.collect()
    message.release()
    with pytest.raises(ValueError, match="released"):
        memoryview(message)


def test_the_header_is_as_documented(joined):
    publisher, subscriber = joined
    raw = publisher.loan(HEADER.size + 16)
    raw[: HEADER.size] = numpy.frombuffer(HEADER.pack(1, MAGIC, 128, 2, 0, 16, b"<u2", 2, 4, 0, 0, 0, 0, 0, 0), "u1")
    raw[HEADER.size :] = numpy.arange(8, dtype="<u2").view("u1")
    publisher.publish(raw)
    taken = subscriber.take()
    assert taken.is_array and (taken.array == numpy.arange(8).reshape(2, 4)).all()


@pytest.mark.parametrize(
    "field, value",
    [("dimensions", 9), ("header", 64), ("header", 1 << 20), ("data", 17), ("dtype", b"|O8"), ("dtype", b"<f0"),
     ("dtype", b"x" * 16), ("dtype", b"<u99999999"), ("shape", 1 << 63), ("shape", 1 << 62), ("dtype", b"<M8[,\"]"), ("elements", 9),
     ("elements", 1 << 40)],
)
def test_a_header_that_lies_is_refused(joined, field, value):
    publisher, subscriber = joined
    fields = {"header": 128, "dimensions": 1, "data": 16, "dtype": b"<u2", "shape": 8, field: value}
    if field == "elements":  # more than the message has, and every field says so
        fields |= {"data": 2 * value, "shape": value}
    header = HEADER.pack(1, MAGIC, fields["header"], fields["dimensions"], 0, fields["data"], fields["dtype"],
                         fields["shape"], 0, 0, 0, 0, 0, 0, 0)
    publisher.publish(header + bytes(16))
    with pytest.raises(wherry.Error) as caught:
        subscriber.take()
    assert caught.value.errno == errno.EPROTO
    publisher.publish(b"the next is taken")
    assert bytes(subscriber.take()) == b"the next is taken"


def test_an_array_is_published_once(joined):
    publisher, subscriber = joined
    loaned = publisher.loan(10, "u1")
    publisher.publish(loaned)
    with pytest.raises(ValueError, match="published already"):
        publisher.publish(loaned)
    subscriber.take()


def test_memory_comes_back_with_the_last_array(joined):
    publisher, subscriber = joined
    size = publisher.pool_bytes // 2
    for number in range(20):
        loaned = publisher.loan(size, timeout=60)
        loaned[:] = number
        publisher.publish(loaned, timeout=60)
        del loaned
        taken = subscriber.take(timeout=60).array
        assert (taken == number).all()
        del taken
    for _ in range(20):
        publisher.loan(size, timeout=60)  # given up unpublished


def test_loans_that_are_all_held_are_an_error(joined):
    publisher, _ = joined
    held = publisher.loan(publisher.pool_bytes)
    with pytest.raises(wherry.Error, match="release loans") as caught:
        publisher.loan(1)
    assert caught.value.errno == errno.ENOBUFS
    del held
    with pytest.raises(wherry.Error) as caught:
        publisher.loan(publisher.pool_bytes + 1)
    assert caught.value.errno == errno.EMSGSIZE


def test_a_publish_that_waits_for_a_full_queue_times_out(joined):
    publisher, subscriber = joined
    with pytest.raises(wherry.Timeout):
        for _ in range(10):
            publisher.publish(b"x", timeout=0.01)
    with pytest.raises(wherry.Timeout):
        for _ in range(10):
            subscriber.take(timeout=0.01)
    assert subscriber.try_take() is None


def test_arrays_outlive_publisher_and_subscriber():
    publisher = wherry.Publisher(pool_bytes=1 << 20)
    publisher.listen("wherry://*:*")
    subscriber = wherry.Subscriber()
    subscriber.start_connect(publisher.local)
    publisher.admit(1, timeout=60)
    subscriber.admit(1, timeout=60)
    published, kept = publisher.loan(1000, "i4"), publisher.loan(1000, "i4")
    published[:] = 5
    kept[:] = 6
    publisher.publish(published)
    taken = subscriber.take(timeout=60).array
    publisher.close()
    with pytest.raises(EOFError):
        subscriber.take(timeout=60)
    subscriber.close()
    del publisher, subscriber
    gc.collect()
    assert (published == 5).all() and (kept == 6).all() and (taken == 5).all()
    kept[:] = 7  # its memory is still a loan


def test_a_published_array_outlives_its_publisher_alone(joined):
    publisher, subscriber = joined
    published = publisher.loan(100_000, "i4")
    published[:] = 5
    publisher.publish(published)
    publisher.close()
    assert (subscriber.take(timeout=60).array == 5).all()
    with pytest.raises(EOFError):
        subscriber.take(timeout=60)
    subscriber.close()
    gc.collect()
    assert (published == 5).all()


def test_iterating_ends_with_the_publisher(joined):
    publisher, subscriber = joined
    for number in range(3):
        publisher.publish(bytes([number]))
    publisher.close()
    assert [bytes(message) for message in subscriber] == [b"\0", b"\1", b"\2"]
    for call in (lambda: publisher.loan(1), lambda: publisher.publish(b"")):
        with pytest.raises(wherry.Error) as caught:
            call()
        assert caught.value.errno == errno.EBADF


def test_a_subscriber_that_may_lose_messages():
    with wherry.Publisher(pool_bytes=1 << 20) as publisher, wherry.Subscriber(queue=2, drop_oldest=True) as subscriber:
        subscriber.listen("wherry://*:*")
        publisher.start_connect(subscriber.local)
        subscriber.admit(1, timeout=60)
        publisher.admit(1, timeout=60)
        for number in range(10):
            publisher.publish(bytes([number]), timeout=60)
        assert bytes(subscriber.take()) == bytes([8])
        assert subscriber.dropped == 8 and subscriber.publishers == 1 and publisher.subscribers == 1


def test_subscribers_in_other_languages(peers):
    for program in ("cpp_subscribe", "c_subscribe"):
        with wherry.Publisher() as publisher:
            publisher.listen("wherry://*:2000")
            process = peers.example(program)
            publisher.admit(1, timeout=60)
            loaned = publisher.loan(1000)
            loaned[:] = 42
            publisher.publish(loaned)
        assert output_of(process) == "1000 bytes of 42\n"


def test_publishers_in_other_languages(peers):
    for program in ("cpp_publish", "c_publish"):
        process = peers.example(program, 1, node=0)
        with wherry.Subscriber() as subscriber:
            subscriber.connect("wherry://0:2000", timeout=60)
            taken = [(len(message), message.array[0]) for message in subscriber]
        assert taken == [(1 << 20, number) for number in range(10)]
        output_of(process)


def test_a_killed_publisher(peers):
    with wherry.Subscriber() as subscriber:
        subscriber.listen("wherry://*:*")
        process = peers.code(
            "import sys, time, wherry; p = wherry.Publisher(); p.connect(sys.argv[1]); p.publish(b'last'); time.sleep(1000)",
            subscriber.local,
        )
        message = subscriber.take(timeout=60)
        process.kill()
        with pytest.raises(wherry.ConnectionReset):
            subscriber.take(timeout=60)
        assert bytes(message) == b"last"
