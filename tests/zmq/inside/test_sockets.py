# SPDX-License-Identifier: Apache-2.0
"""What a program sees of the transport: endpoints, errors, monitors, credentials. Runs under `wherry run`, so that pyzmq
uses the libzmq that knows wherry://."""

import errno
import itertools
import os
import re
import time

import pytest
import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

@pytest.fixture
def context():
    with zmq.Context() as context:
        context.setsockopt(zmq.LINGER, 0)
        context.setsockopt(zmq.RCVTIMEO, 20000)
        context.setsockopt(zmq.SNDTIMEO, 20000)
        yield context


def last_endpoint(socket):
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def test_a_wildcard_port_is_told_by_last_endpoint(context):
    with context.socket(zmq.REP) as server, context.socket(zmq.REQ) as client:
        server.bind("wherry://*:*")
        endpoint = last_endpoint(server)
        assert re.fullmatch(r"wherry://0:[1-9][0-9]*", endpoint)
        client.connect(endpoint)
        client.send(b"question")
        assert server.recv() == b"question"
        server.send(b"answer")
        assert client.recv() == b"answer"


def test_port_zero_is_a_wildcard_as_for_tcp(context):
    with context.socket(zmq.REP) as server:
        server.bind("wherry://*:0")
        assert re.fullmatch(r"wherry://0:[1-9][0-9]*", last_endpoint(server))


def test_a_range_of_ports_gives_the_first_that_is_free(context):
    with context.socket(zmq.PULL) as first, context.socket(zmq.PULL) as second, context.socket(zmq.PULL) as third:
        for socket in (first, second):
            socket.bind("wherry://*:*[61000-61001]")
        assert [last_endpoint(socket) for socket in (first, second)] == ["wherry://0:61000", "wherry://0:61001"]
        with pytest.raises(zmq.ZMQError) as raised:
            third.bind("wherry://*:![61000-61001]")
        assert raised.value.errno == errno.EADDRINUSE
        with pytest.raises(zmq.ZMQError) as raised:
            third.bind("wherry://*:*[61001-61000]")
        assert raised.value.errno == errno.EINVAL


def test_bind_to_random_port_works(context):
    with context.socket(zmq.PULL) as socket:
        assert socket.bind_to_random_port("wherry://*", 20000, 30000) >= 20000


# A port is free again only when an I/O thread has closed it: no two tests use the same.
PORTS = itertools.count(5000)


@pytest.mark.parametrize("by_last_endpoint", [False, True])
@pytest.mark.parametrize("pattern", ["wherry://*:{}", "wherry://0:{}", "scif://{}", "scif://0:{}"])
def test_what_was_bound_is_unbound_by_the_same_name_or_the_last_endpoint(context, pattern, by_last_endpoint):
    port = next(PORTS)
    name = pattern.format(port)
    with context.socket(zmq.PULL) as socket, context.socket(zmq.PULL) as other:
        socket.bind(name)
        assert last_endpoint(socket) == f"wherry://0:{port}"
        with pytest.raises(zmq.ZMQError) as raised:
            other.bind(name)
        assert raised.value.errno == errno.EADDRINUSE
        socket.unbind(last_endpoint(socket) if by_last_endpoint else name)
        while True:  # the watchdog ends it
            try:
                other.bind(name)
                break
            except zmq.ZMQError:
                time.sleep(0.01)


def test_disconnect_takes_the_name_that_connect_was_given(context):
    with context.socket(zmq.PUSH) as push:
        push.connect("scif://0:4712")
        push.connect("wherry://0:4713")
        push.disconnect("wherry://0:4713")
        push.disconnect("scif://0:4712")
        with pytest.raises(zmq.ZMQError):
            push.disconnect("wherry://0:4713")


@pytest.mark.parametrize("name", ["wherry://0", "wherry://x:1", "wherry://0:65536", "wherry://1:2:3", "scif://x"])
def test_bad_endpoints_are_einval(context, name):
    for call in ["bind", "connect"]:
        with context.socket(zmq.PAIR) as socket, pytest.raises(zmq.ZMQError) as raised:
            getattr(socket, call)(name)
        assert raised.value.errno == errno.EINVAL


@pytest.mark.parametrize("name", ["wherry://*:4711", "wherry://0:*", "wherry://0:0", "scif://4711"])
def test_nobody_can_connect_to_a_wildcard(context, name):
    with context.socket(zmq.PAIR) as socket, pytest.raises(zmq.ZMQError) as raised:
        socket.connect(name)
    assert raised.value.errno == errno.EINVAL


def test_another_node_is_no_place_to_bind(context):
    with context.socket(zmq.PAIR) as socket, pytest.raises(zmq.ZMQError) as raised:
        socket.bind("wherry://7:4711")
    assert raised.value.errno == errno.EADDRNOTAVAIL


@pytest.mark.parametrize("kind", ["STREAM", "raw ROUTER"])
def test_raw_sockets_are_refused_at_once(context, kind):
    with context.socket(zmq.STREAM if kind == "STREAM" else zmq.ROUTER) as socket:
        if kind != "STREAM":
            socket.setsockopt(zmq.ROUTER_RAW, 1)
        for call, name in [(socket.bind, "wherry://*:*"), (socket.connect, "wherry://0:4711"), (socket.bind, "scif://4711")]:
            with pytest.raises(zmq.ZMQError) as raised:
                call(name)
            assert raised.value.errno == zmq.ENOCOMPATPROTO


def test_a_monitor_hears_of_every_step(context):
    with context.socket(zmq.PAIR) as server, context.socket(zmq.PAIR) as client:
        monitors = {name: socket.get_monitor_socket() for name, socket in [("server", server), ("client", client)]}
        heard = {"server": [], "client": []}

        def hear(name, until):
            while until not in heard[name]:
                heard[name].append(recv_monitor_message(monitors[name])["event"])

        server.bind("wherry://*:*")
        client.connect(last_endpoint(server))
        hear("server", zmq.EVENT_HANDSHAKE_SUCCEEDED)
        hear("client", zmq.EVENT_HANDSHAKE_SUCCEEDED)
        server.close()
        hear("client", zmq.EVENT_CONNECT_RETRIED)
        assert heard["server"] == [zmq.EVENT_LISTENING, zmq.EVENT_ACCEPTED, zmq.EVENT_HANDSHAKE_SUCCEEDED]
        assert heard["client"][:3] == [zmq.EVENT_CONNECT_DELAYED, zmq.EVENT_CONNECTED, zmq.EVENT_HANDSHAKE_SUCCEEDED]
        assert heard["client"][3:] == [zmq.EVENT_DISCONNECTED, zmq.EVENT_CONNECT_RETRIED]
        client.disable_monitor()


def test_a_connector_that_is_early_is_connected_later(context):
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.connect("wherry://0:4720")
        push.send(b"early")
        time.sleep(0.3)
        pull.bind("wherry://*:4720")
        assert pull.recv() == b"early"


def test_connections_are_served_in_the_order_in_which_they_were_made(context):
    with context.socket(zmq.PUSH) as push, push.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED) as monitor:
        push.bind("wherry://*:*")
        pulls = [context.socket(zmq.PULL) for _ in range(5)]
        for pull in pulls:
            pull.connect(last_endpoint(push))
        for _ in pulls:
            monitor.recv_multipart()
        for number in range(10):
            push.send(b"%d" % number)
        assert [pull.recv() for pull in pulls] == [b"%d" % number for number in range(5)]
        for pull in pulls:
            pull.close()


def test_a_message_tells_who_sent_it(context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("wherry://*:*")
        push.connect(last_endpoint(pull))
        push.send(b"hello")
        message = pull.recv(copy=False)
        seen = [message.get(name) for name in ["Peer-Address", "Peer-Pid", "Peer-Uid", "Peer-Gid"]]
        assert seen == ["127.0.0.1", str(os.getpid()), str(os.geteuid()), str(os.getegid())]


@pytest.mark.parametrize("allowed, welcome", [("127.0.0.1", True), ("192.0.2.1", False)])
def test_an_allow_list_of_addresses_knows_this_host_as_over_tcp(context, allowed, welcome):
    authenticator = ThreadAuthenticator(context)
    authenticator.start()
    try:
        authenticator.allow(allowed)
        with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
            pull.setsockopt(zmq.ZAP_DOMAIN, b"test")
            events = push.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
            pull.bind("wherry://*:*")
            push.connect(last_endpoint(pull))
            expected = zmq.EVENT_HANDSHAKE_SUCCEEDED if welcome else zmq.EVENT_HANDSHAKE_FAILED_AUTH
            assert recv_monitor_message(events)["event"] == expected
            push.disable_monitor()
    finally:
        authenticator.stop()


def test_zap_sees_the_address_of_this_host(context):
    with context.socket(zmq.REP) as handler, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        handler.bind("inproc://zeromq.zap.01")
        pull.setsockopt(zmq.ZAP_DOMAIN, b"test")
        pull.bind("wherry://*:*")
        push.connect(last_endpoint(pull))
        push.send(b"hello")
        request = handler.recv_multipart()
        assert request[3] == b"127.0.0.1"
        handler.send_multipart([request[0], request[1], b"200", b"OK", b"user", b""])
        assert pull.recv() == b"hello"


@pytest.mark.parametrize("pid_offset, welcome", [(0, True), (1, False)])
def test_a_filter_lets_in_only_who_is_named(context, pid_offset, welcome):
    ipc_filter_pid = 58
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.setsockopt(ipc_filter_pid, os.getpid() + pid_offset)
        pull.setsockopt(zmq.RCVTIMEO, 20000 if welcome else 500)
        pull.bind("wherry://*:*")
        push.connect(last_endpoint(pull))
        push.send(b"hello")
        if welcome:
            assert pull.recv() == b"hello"
        else:
            with pytest.raises(zmq.Again):
                pull.recv()


def test_a_filter_lets_in_nobody_whom_the_kernel_does_not_vouch_for(context, monkeypatch):
    monkeypatch.setenv("WHERRY_FABRIC", "faulty+shm")
    monkeypatch.setenv("WHERRY_FAULTS", "hide_peer=1")
    ipc_filter_uid, ipc_filter_pid = 59, 58
    with context.socket(zmq.PULL) as filtered, context.socket(zmq.PULL) as open_to_all:
        for accepted in (0, os.getuid()):
            filtered.setsockopt(ipc_filter_uid, accepted)
        filtered.setsockopt(ipc_filter_pid, os.getpid())
        pushes = []
        for pull, timeout in (filtered, 500), (open_to_all, 20000):
            pull.setsockopt(zmq.RCVTIMEO, timeout)
            pull.bind("wherry://*:*")
            push = context.socket(zmq.PUSH)
            pushes.append(push)
            push.setsockopt(zmq.LINGER, 0)
            push.connect(last_endpoint(pull))
            push.send(b"hello")
        message = open_to_all.recv(copy=False)
        assert message.bytes == b"hello"
        with pytest.raises(zmq.ZMQError):
            message.get("Peer-Uid")
        with pytest.raises(zmq.Again):
            filtered.recv()
        for push in pushes:
            push.close()


def test_plain_tells_right_from_wrong(context):
    with context.socket(zmq.REP) as handler, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        handler.bind("inproc://zeromq.zap.01")
        pull.setsockopt(zmq.PLAIN_SERVER, 1)
        pull.bind("wherry://*:*")
        push.setsockopt(zmq.PLAIN_USERNAME, b"admin")
        push.setsockopt(zmq.PLAIN_PASSWORD, b"secret")
        push.connect(last_endpoint(pull))
        push.send(b"hello")
        request = handler.recv_multipart()
        assert request[6:] == [b"admin", b"secret"]
        handler.send_multipart([request[0], request[1], b"200", b"OK", b"admin", b""])
        assert pull.recv() == b"hello"


def sent_until_blocked(context, least, receiver=(), sender=()):
    """How many messages of 1000 bytes a PUSH socket takes whose PULL does not read, with high-water marks of 1.

    It is waited for the first `least` of them."""
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        for socket, options in [(pull, [(zmq.RCVHWM, 1), *receiver]), (push, [(zmq.SNDHWM, 1), *sender])]:
            for option, value in options:
                socket.setsockopt(option, value)
        pull.bind("wherry://*:*")
        push.connect(last_endpoint(pull))
        for sent in itertools.count():
            push.setsockopt(zmq.SNDTIMEO, 500 if sent >= least else -1)
            try:
                push.send(bytes(1000))
            except zmq.Again:
                return sent


@pytest.mark.parametrize("ring", [4096, 65536])
def test_rcvbuf_is_the_size_of_the_ring(context, ring):
    """A receiver that does not read holds the ring and the two queues, and no more."""
    sent = sent_until_blocked(context, ring // 1000 - 3, receiver=[(zmq.RCVBUF, ring)])
    # The decoder holds a batch of up to 512 KiB more, if the ring brings it at once.
    assert sent <= ring // 1000 * 2 + 6


@pytest.mark.parametrize("most", [4096, 65536, 100_000])
def test_sndbuf_is_what_may_lie_in_the_ring_of_the_peer(context, most):
    sent = sent_until_blocked(context, most // 1000 - 3, sender=[(zmq.SNDBUF, most)])
    assert sent <= most // 1000 * 2 + 6


def test_sndbuf_makes_no_ring_larger(context):
    sent = sent_until_blocked(context, 8 - 3, receiver=[(zmq.RCVBUF, 8192)], sender=[(zmq.SNDBUF, 1 << 20)])
    assert sent <= 8 * 2 + 6


def test_with_a_small_sndbuf_everything_arrives(context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        push.setsockopt(zmq.SNDBUF, 5000)
        pull.bind("wherry://*:*")
        push.connect(last_endpoint(pull))
        for round in range(10):
            for size in [1, 100, 5000, 100_000]:
                push.send(bytes([round]) * size)
            for size in [1, 100, 5000, 100_000]:
                assert pull.recv() == bytes([round]) * size
