# SPDX-License-Identifier: Apache-2.0
"""What becomes of accepted messages when their socket gives up its port. The peers read too late, or never."""

import threading

import pytest
import zmq

REPLY = 3_000_000


class Client:
    """A connected socket that does not connect again, and knows when its connection has ended."""

    def __init__(self, context, kind, endpoint, rcvhwm=1000):
        self.socket = context.socket(kind)
        self.socket.reconnect_ivl = 3_600_000  # -1 makes libzmq itself drop what it has not read
        self.socket.linger = 0
        self.socket.rcvhwm = rcvhwm
        self.monitor = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.socket.connect(endpoint)

    def close(self):
        self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()


@pytest.fixture
def context():
    with zmq.Context() as context:
        yield context


def bound(context, kind, linger, sndhwm=1000):
    socket = context.socket(kind)
    socket.linger = linger
    socket.sndhwm = sndhwm
    socket.bind("wherry://*:*")
    return socket, socket.getsockopt(zmq.LAST_ENDPOINT)


def fill(socket, size=1_000_000):
    """Sends until there is no room for a second."""
    socket.sndtimeo = 1000
    with pytest.raises(zmq.Again):
        while True:
            socket.send(bytes(size))


@pytest.mark.parametrize("linger", [-1, 30_000])
def test_a_reply_survives_that_the_server_unbinds_and_closes_at_once(context, linger):
    for _ in range(50):
        server, endpoint = bound(context, zmq.REP, linger)
        client = Client(context, zmq.REQ, endpoint)
        client.socket.send(b"?")
        server.recv()
        server.send(b"r" * REPLY)
        server.unbind(endpoint)
        server.close()
        poller = zmq.Poller()
        poller.register(client.socket, zmq.POLLIN)
        poller.register(client.monitor, zmq.POLLIN)
        poller.poll()
        # What came before the end of the connection is there within a moment.
        assert client.socket.poll(1000), "the connection ended before the reply"
        assert len(client.socket.recv()) == REPLY
        client.close()


def test_messages_to_several_peers_survive_as_well(context):
    server, endpoint = bound(context, zmq.PUSH, -1)
    clients = [Client(context, zmq.PULL, endpoint) for _ in range(5)]
    for number in range(100):
        server.send(number.to_bytes(4, "little") + bytes(100_000))
    server.unbind(endpoint)
    server.close()
    received = set()
    while len(received) < 100:
        for client in clients:
            while client.socket.poll(10):
                received.add(int.from_bytes(client.socket.recv()[:4], "little"))
    assert received == set(range(100))
    for client in clients:
        client.close()


@pytest.mark.parametrize("linger", [0, 200])
def test_a_peer_that_never_reads_is_given_up_when_linger_ends(context, linger):
    servers = zmq.Context()
    server, endpoint = bound(servers, zmq.PUSH, linger)
    client = Client(context, zmq.PULL, endpoint, rcvhwm=1)
    fill(server)
    server.unbind(endpoint)
    server.close()
    servers.term()  # returns when its last connection has ended
    client.close()


def test_a_program_that_goes_on_sending_loses_its_unbound_peer_all_the_same(context):
    """The peer reads more slowly than the program sends: the socket always has messages for it."""
    server, endpoint = bound(context, zmq.PUSH, -1, sndhwm=10)
    client = Client(context, zmq.PULL, endpoint, rcvhwm=1)
    fill(server, 300_000)
    server.unbind(endpoint)

    def read():
        while not client.monitor.poll(0):
            if client.socket.poll(100):
                client.socket.recv()
            client.monitor.poll(10)

    reader = threading.Thread(target=read)
    reader.start()
    server.sndtimeo = 100
    while reader.is_alive():
        try:
            server.send(bytes(300_000))
        except zmq.Again:
            pass
    reader.join()
    server.close(linger=0)
    client.close()


@pytest.mark.parametrize("side", ["bound", "connected"])
def test_a_peer_that_is_gone_does_not_keep_a_socket_that_has_stopped_reading(context, side):
    """ZMQ_LINGER is -1: a socket that waited for this peer would wait for ever."""
    readers, writers = zmq.Context(), zmq.Context()
    reader, writer = readers.socket(zmq.PULL), writers.socket(zmq.PUSH)
    reader.rcvhwm = 10
    reader.linger = -1
    first, second = (reader, writer) if side == "bound" else (writer, reader)
    first.bind("wherry://*:*")
    second.connect(first.getsockopt(zmq.LAST_ENDPOINT))
    fill(writer, 10_000)
    assert len(reader.recv()) == 10_000
    writer.close(linger=0)
    writers.term()
    reader.close()
    readers.term()


def test_linger_set_to_none_after_the_port_was_unbound_counts(context):
    servers = zmq.Context()
    server, endpoint = bound(servers, zmq.PUSH, -1)
    client = Client(context, zmq.PULL, endpoint, rcvhwm=1)
    fill(server)
    server.unbind(endpoint)
    server.close(linger=0)
    servers.term()
    client.close()


def test_a_peer_that_never_reads_does_not_keep_the_others_connected(context):
    server, endpoint = bound(context, zmq.PUSH, -1)
    stuck = Client(context, zmq.PULL, endpoint, rcvhwm=1)
    fill(server)
    reading = Client(context, zmq.PULL, endpoint)
    server.send(b"for the only one with room")
    assert reading.socket.recv() == b"for the only one with room"
    server.close()
    assert reading.monitor.poll()
    reading.close()
    stuck.close()
