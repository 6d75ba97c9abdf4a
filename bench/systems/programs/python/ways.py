# SPDX-License-Identifier: Apache-2.0
"""Ways to send an array of 64-bit words to another process in Python, each by its own packages, which are imported on use.

Each has `shared()`, what both processes inherit, `version()`, and two classes. `Receiver(name, size, shared)` has an address
for the sender; its `receive()` returns an array, valid until `release()`. `Sender(address, size, shared)` has `prepare()`, the
array to fill, and `send()`, which sends it; when `finish()` has returned, all are on their way.
"""

import ctypes
import importlib.metadata
import multiprocessing
import os
from multiprocessing import resource_tracker, shared_memory

import numpy as np

# How many messages may be on their way, where the way leaves that to the program.
DEPTH = 4


class Way:
    PACKAGE = ""

    @staticmethod
    def shared():
        return None

    @classmethod
    def version(cls):
        return importlib.metadata.version(cls.PACKAGE) if cls.PACKAGE else "Python's own"

    class Receiver:
        def release(self):
            pass

    class Sender:
        def finish(self):
            pass


class Published(Way):
    """wherry.Publisher: the array lies in memory that both processes map."""

    @staticmethod
    def version():
        import wherry

        return wherry.__version__

    class Receiver(Way.Receiver):
        def __init__(self, name, size, shared):
            import wherry

            self.subscriber = wherry.Subscriber(queue=DEPTH)
            self.subscriber.listen("wherry://*:*")
            self.address = self.subscriber.local
            self.joined = False
            self.message = None

        def receive(self):
            if not self.joined:
                self.subscriber.admit(1)
                self.joined = True
            self.message = self.subscriber.take()
            return self.message.array

        def release(self):
            self.message = None

        def close(self):
            self.subscriber.close()

    class Sender(Way.Sender):
        def __init__(self, address, size, shared):
            import wherry

            self.words = size // 8
            self.publisher = wherry.Publisher(pool_bytes=max(1 << 20, 2 * DEPTH * size))
            self.publisher.connect(address)
            self.array = None

        def prepare(self):
            self.array = self.publisher.loan(self.words, "uint64")
            return self.array

        def send(self):
            self.publisher.publish(self.array)
            self.array = None

        def close(self):
            self.publisher.close()


class Framed(Way):
    """wherry.FramedStream: copied into the stream's ring, read there."""

    version = Published.version

    class Receiver(Way.Receiver):
        def __init__(self, name, size, shared):
            import wherry

            self.listener = wherry.listen("wherry://*:*", ring_bytes=max(1 << 20, 2 * DEPTH * size))
            self.address = self.listener.local
            self.stream = None

        def receive(self):
            if self.stream is None:
                import wherry

                self.stream = wherry.FramedStream(self.listener.accept())
            return np.frombuffer(self.stream.receive(), "uint64")

        def close(self):
            self.stream.close()
            self.listener.close()

    class Sender(Way.Sender):
        def __init__(self, address, size, shared):
            import wherry

            self.stream = wherry.FramedStream(wherry.connect(address))
            self.array = np.empty(size // 8, "uint64")

        def prepare(self):
            return self.array

        def send(self):
            self.stream.send(self.array)

        def close(self):
            self.stream.close()


class ZeroMQ(Way):
    """pyzmq PUSH and PULL. Large arrays are not copied by Python, as its documentation has it: the sender has a few in turn."""

    PACKAGE = "pyzmq"

    class Receiver(Way.Receiver):
        def __init__(self, name, size, shared):
            import zmq

            self.socket = zmq.Context.instance().socket(zmq.PULL)
            self.socket.bind(self.place(name))
            self.address = self.socket.last_endpoint.decode()
            self.copy = size < zmq.COPY_THRESHOLD

        def receive(self):
            return np.frombuffer(self.socket.recv(copy=self.copy), "uint64")

        def close(self):
            self.socket.close(linger=0)

    class Sender(Way.Sender):
        def __init__(self, address, size, shared):
            import zmq

            self.socket = zmq.Context.instance().socket(zmq.PUSH)
            self.socket.connect(address)
            self.copy = size < zmq.COPY_THRESHOLD
            self.arrays = [np.empty(size // 8, "uint64") for _ in range(1 if self.copy else DEPTH)]
            self.trackers = [None] * len(self.arrays)
            self.next = 0

        def prepare(self):
            if self.trackers[self.next] is not None:
                self.trackers[self.next].wait()
            return self.arrays[self.next]

        def send(self):
            if self.copy:
                self.socket.send(self.arrays[0])
                return
            self.trackers[self.next] = self.socket.send(self.arrays[self.next], copy=False, track=True)
            self.next = (self.next + 1) % len(self.arrays)

        def close(self):
            self.socket.close()


class ZeroMQTcp(ZeroMQ):
    class Receiver(ZeroMQ.Receiver):
        @staticmethod
        def place(name):
            return "tcp://127.0.0.1:*"


class ZeroMQIpc(ZeroMQ):
    class Receiver(ZeroMQ.Receiver):
        @staticmethod
        def place(name):
            return f"ipc://{os.environ.get('TMPDIR', '/tmp')}/{name}"


class SharedMemory(Way):
    """multiprocessing.shared_memory, as many slots as DEPTH, and two semaphores that count free and full ones."""

    @staticmethod
    def shared():
        resource_tracker.ensure_running()  # one for both processes
        context = multiprocessing.get_context("fork")
        return context.Semaphore(DEPTH), context.Semaphore(0)

    class End:
        def __init__(self, memory, size, shared):
            self.memory = memory
            self.free, self.full = shared
            self.slots = [np.frombuffer(memory.buf, "uint64", size // 8, slot * size) for slot in range(DEPTH)]
            self.number = 0

        def slot(self):
            return self.slots[self.number % DEPTH]

        def close(self):
            self.slots = []
            self.memory.close()

    class Receiver(End):
        def __init__(self, name, size, shared):
            super().__init__(shared_memory.SharedMemory(name, create=True, size=size * DEPTH), size, shared)
            self.address = name

        def receive(self):
            self.full.acquire()
            return self.slot()

        def release(self):
            self.number += 1
            self.free.release()

        def close(self):
            super().close()
            self.memory.unlink()

    class Sender(End):
        def __init__(self, address, size, shared):
            super().__init__(shared_memory.SharedMemory(address), size, shared)

        def prepare(self):
            self.free.acquire()
            return self.slot()

        def send(self):
            self.number += 1
            self.full.release()

        def finish(self):
            pass


class Iceoryx2(Way):
    """iceoryx2, publish-subscribe of slices. It has no call that waits for a message, so both sides look and yield.

    With its back-pressure alone it was seen to hang (bench/systems/programs/iceoryx2): a sender counts what came back. Slices are
    of bytes: those of 8-byte words tell their length in bytes (0.10.0).
    """

    PACKAGE = "iceoryx2"

    @staticmethod
    def shared():
        return multiprocessing.get_context("fork").RawValue(ctypes.c_uint64, 0)

    @staticmethod
    def service(name):
        import iceoryx2

        iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
        # Names and a place of its own: a peer that is killed leaves files behind, which `wherry bench` removes.
        config = iceoryx2.config.default()
        config.global_cfg.prefix = iceoryx2.FileName.new(f"{name.rpartition('-')[0]}-")
        config.global_cfg.root_path = iceoryx2.Path.new(os.environ.get("TMPDIR", "/tmp"))
        node = iceoryx2.NodeBuilder.new().config(config).create(iceoryx2.ServiceType.Ipc)
        service = (
            node.service_builder(iceoryx2.ServiceName.new(name))
            .publish_subscribe(iceoryx2.Slice[ctypes.c_uint8])
            .enable_safe_overflow(False)
            .history_size(0)
            .subscriber_max_buffer_size(DEPTH)
            .max_publishers(1)
            .max_subscribers(1)
            .open_or_create()
        )
        return node, service

    @staticmethod
    def array(sample):
        return np.frombuffer(sample.payload().as_memory_view(), "uint64")

    class Receiver(Way.Receiver):
        def __init__(self, name, size, shared):
            self.address = name
            self.node, self.service = Iceoryx2.service(name)
            self.subscriber = self.service.subscriber_builder().buffer_size(DEPTH).create()
            self.released = shared
            self.released.value = 0

        def receive(self):
            while (sample := self.subscriber.receive()) is None:
                os.sched_yield()
            self.sample = sample
            return Iceoryx2.array(sample)

        def release(self):
            self.sample.delete()
            self.released.value += 1

        def close(self):
            self.subscriber.delete()

    class Sender(Way.Sender):
        def __init__(self, address, size, shared):
            self.size = size
            self.node, self.service = Iceoryx2.service(address)
            self.publisher = self.service.publisher_builder().initial_max_slice_len(size).create()
            self.released = shared
            self.sent = 0

        def prepare(self):
            self.wait_for(DEPTH - 1)
            self.sample = self.publisher.loan_slice_uninit(self.size)
            return Iceoryx2.array(self.sample)

        def send(self):
            self.sample.assume_init().send()
            self.sent += 1

        def wait_for(self, on_their_way):
            while self.sent - self.released.value > on_their_way:
                os.sched_yield()

        def finish(self):
            self.wait_for(0)

        def close(self):
            self.publisher.delete()


WAYS = {
    "wherry": Published,
    "wherry-framed": Framed,
    "pyzmq-tcp": ZeroMQTcp,
    "pyzmq-ipc": ZeroMQIpc,
    "shared-memory": SharedMemory,
    "iceoryx2": Iceoryx2,
}
