# SPDX-License-Identifier: Apache-2.0
"""wherry.aio: the calls that wait, in a loop of asyncio."""

import asyncio
import os

import numpy
import pytest
import wherry
from wherry import aio


def run(main):
    return asyncio.run(asyncio.wait_for(main, 120))


async def connected(listener):
    connecting = asyncio.create_task(aio.connect(listener.wrapped.local, 60))
    accepted = await listener.accept()
    return accepted, await connecting


def test_both_sides_in_one_loop():
    async def main():
        with aio.listen("wherry://*:*") as listener:
            one, other = await connected(listener)
            async with one, other:
                data = os.urandom(8_000_000)  # more than the ring holds: both wait in turn
                sending = asyncio.create_task(one.send(data))
                received = bytearray()
                while len(received) < len(data):
                    received += await other.receive(1 << 20)
                assert received == data and await sending == len(data)
                one.finish_sending()
                assert await other.receive() == b""

    run(main())


def test_every_kind_of_buffer_is_sent():
    async def main():
        with aio.listen("wherry://*:*") as listener:
            one, other = await connected(listener)
            grid = numpy.arange(12, dtype="i4").reshape(3, 4)
            for data in (grid, grid[:, ::2], grid[:0], b"", bytearray(b"abc")):
                expected = numpy.asarray(data).tobytes() if isinstance(data, numpy.ndarray) else bytes(data)
                assert await one.send(data) == len(expected)
                if expected:
                    assert await other.receive() == expected
            one.close()
            other.close()

    run(main())


def test_other_tasks_run_while_one_waits():
    async def main():
        with aio.listen("wherry://*:*") as listener:
            one, other = await connected(listener)
            receiving = asyncio.create_task(other.receive())
            for _ in range(10):
                await asyncio.sleep(0)
            assert not receiving.done()
            await one.send(b"now")
            assert await receiving == b"now"
            one.close()
            other.close()

    run(main())


def test_a_wait_that_is_cancelled_loses_nothing():
    async def main():
        with aio.listen("wherry://*:*") as listener:
            one, other = await connected(listener)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(other.receive(), 0.01)
            await one.send(b"kept")
            assert await other.receive() == b"kept"
            one.close()
            other.close()

    run(main())


def test_messages_and_arrays():
    async def main():
        with aio.listen("wherry://*:*") as listener:
            one, other = await connected(listener)
            sender, receiver = aio.FramedStream(one), aio.FramedStream(other)
            for message in (b"one", b"", b"three"):
                await sender.send(message)
            assert await receiver.receive() == b"one"
            sender.close()
            assert [message async for message in receiver] == [b"", b"three"]
            receiver.close()
        with wherry.Publisher(pool_bytes=1 << 20) as publisher, wherry.Subscriber() as subscriber:
            publisher.listen("wherry://*:*")
            subscriber.start_connect(publisher.local)
            publisher.admit(1, timeout=60)
            taking = asyncio.create_task(aio.Subscriber(subscriber).take())
            await asyncio.sleep(0)
            publisher.publish(b"taken")
            assert bytes(await taking) == b"taken"
            publisher.close()
            assert [message async for message in aio.Subscriber(subscriber)] == []

    run(main())


def test_connect_waits_for_its_listener_and_no_longer():
    async def main():
        with pytest.raises(ConnectionRefusedError):
            await aio.connect("wherry://0:65001", 0)
        connecting = asyncio.create_task(aio.connect("wherry://0:2000", 60))
        await asyncio.sleep(0.05)
        with aio.listen("wherry://*:2000") as listener:
            accepted = await listener.accept()
            (await connecting).close()
            accepted.close()
            with pytest.raises(TimeoutError) as caught:
                await aio.connect("wherry://0:2000", 0.05)  # nobody accepts
            assert isinstance(caught.value, wherry.Error) and caught.value.address

    run(main())
