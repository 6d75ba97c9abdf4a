# SPDX-License-Identifier: Apache-2.0
# server.py COUNT: answers COUNT clients at once in a loop of asyncio; server.py send TEXT: is such a client.
import asyncio
import sys

from wherry import aio


async def answer(stream: aio.Stream) -> None:
    async with stream:
        async for received in stream:
            await stream.send(received.upper())


async def serve(count: int) -> None:
    with aio.listen("wherry://*:2000") as listener:
        async with asyncio.TaskGroup() as clients:
            for _ in range(count):
                clients.create_task(answer(await listener.accept()))


async def ask(text: str) -> None:
    async with await aio.connect("wherry://0:2000") as stream:
        await stream.send(text.encode())
        stream.finish_sending()
        async for received in stream:
            print(received.decode())


if sys.argv[1] == "send":
    asyncio.run(ask(sys.argv[2]))
else:
    asyncio.run(serve(int(sys.argv[1])))
