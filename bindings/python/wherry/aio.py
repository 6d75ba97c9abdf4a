# SPDX-License-Identifier: Apache-2.0
"""The blocking calls of wherry as coroutines for asyncio. Each waits on the descriptor of its object.

One task receives from an object at a time, and one sends. A task that is cancelled while it waits has moved no bytes, except
those of a send that were accepted before.
"""

import asyncio
import collections.abc
import types
import typing

from . import _native
from .errors import Timeout

if typing.TYPE_CHECKING:
    from ._native import Buffer

__all__ = ["FramedStream", "Listener", "Stream", "Subscriber", "connect", "listen"]

_Result = typing.TypeVar("_Result")


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)


async def _until(attempt: collections.abc.Callable[[], _Result | None], descriptor: int) -> _Result:
    """Repeats a non-blocking call until it returns a value other than None."""
    while (result := attempt()) is None:
        await _wait_readable(descriptor)
    return result


class _Connection:
    """A stream of either kind. An async context manager, which closes it."""

    def __init__(self, wrapped: _native.Connection) -> None:
        self._connection = wrapped

    async def __aenter__(self) -> typing.Self:
        return self

    async def __aexit__(self, *args: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def cancel(self) -> None:
        self._connection.cancel()

    def finish_sending(self) -> None:
        self._connection.finish_sending()

    @property
    def peer(self) -> _native.Peer:
        return self._connection.peer


class Stream(_Connection):
    """wherry.Stream for asyncio. `wrapped` is the stream itself, for non-blocking calls."""

    def __init__(self, wrapped: _native.Stream) -> None:
        super().__init__(wrapped)
        self.wrapped = wrapped

    async def send(self, buffer: "Buffer") -> int:
        """Returns once all bytes were accepted."""
        view = memoryview(typing.cast(typing.Any, buffer))
        total = view.nbytes
        if total == 0:
            return 0
        rest = (view if view.c_contiguous else memoryview(view.tobytes())).cast("B")
        while True:
            sent = self.wrapped.try_send(rest)
            rest = rest[sent or 0 :]
            if not rest:
                return total
            await _wait_readable(self.wrapped.send_descriptor())

    async def receive(self, size: int = 65536) -> bytes:
        """Returns bytes that have arrived, at most size; b'' at the end."""
        return await _until(lambda: self.wrapped.try_receive(size), self.wrapped.fileno())

    def __aiter__(self) -> typing.Self:
        return self

    async def __anext__(self) -> bytes:
        if received := await self.receive():
            return received
        raise StopAsyncIteration


class FramedStream(_Connection):
    """wherry.FramedStream for asyncio. Takes over the stream."""

    def __init__(self, stream: Stream | _native.Stream) -> None:
        self.wrapped = _native.FramedStream(stream.wrapped if isinstance(stream, Stream) else stream)
        super().__init__(self.wrapped)

    async def send(self, buffer: "Buffer") -> int:
        """Returns once the whole message was accepted."""
        return await _until(lambda: self.wrapped.try_send(buffer), self.wrapped.send_descriptor())

    async def receive(self) -> memoryview:
        """Returns the next message, in place until the next call that receives. Raises EOFError at the end."""
        return await _until(self.wrapped.try_receive, self.wrapped.fileno())

    def __aiter__(self) -> typing.Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return bytes(await self.receive())
        except EOFError:
            raise StopAsyncIteration from None


class Subscriber:
    """wherry.Subscriber for asyncio. Iterating takes messages until the end."""

    def __init__(self, wrapped: _native.Subscriber) -> None:
        self.wrapped = wrapped

    async def take(self) -> _native.Message:
        """Returns the next message. Raises EOFError at the end."""
        return await _until(self._try_take, self.wrapped.fileno())

    def _try_take(self) -> _native.Message | None:
        message = self.wrapped.try_take()
        if message is not None:
            return message
        self.wrapped.admit()  # the descriptor also reports new publishers
        return self.wrapped.try_take()

    def __aiter__(self) -> typing.Self:
        return self

    async def __anext__(self) -> _native.Message:
        try:
            return await self.take()
        except EOFError:
            raise StopAsyncIteration from None


class Listener:
    """wherry.Listener for asyncio. Iterating accepts connections. A context manager, which frees the port."""

    def __init__(self, wrapped: _native.Listener) -> None:
        self.wrapped = wrapped

    async def accept(self) -> Stream:
        return Stream(await _until(self.wrapped.try_accept, self.wrapped.fileno()))

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.wrapped.close()

    def __aiter__(self) -> typing.Self:
        return self

    async def __anext__(self) -> Stream:
        return await self.accept()


def listen(address: str, *, ring_bytes: int = 0) -> Listener:
    return Listener(_native.listen(address, ring_bytes=ring_bytes))


async def connect(address: str, timeout: float | None = None, *, ring_bytes: int = 0) -> Stream:
    """As wherry.connect. The timeout, in seconds, limits the wait for a listener and for its answer."""
    attempt = _native.start_connect(address, timeout, ring_bytes=ring_bytes)
    try:
        return Stream(await asyncio.wait_for(_until(attempt.try_finish, attempt.fileno()), timeout))
    except Timeout:
        raise
    except TimeoutError:
        return Stream(attempt.finish(0))  # connected by now, or raises Timeout with the reason
