# SPDX-License-Identifier: Apache-2.0
"""wherry.Poller: many streams, one wait."""

import errno
import gc
import os
import weakref

import pytest
import wherry


def test_ready_streams_are_reported_by_their_tokens(pair):
    one, other = pair
    with wherry.Poller() as poller:
        poller.add(one, "one")
        poller.add(other)
        assert poller.wait(timeout=0) == []
        one.send(b"x")
        assert poller.wait(timeout=60) == [other]
        assert other.receive() == b"x"
        other.send(b"y")
        assert poller.wait(timeout=60) == ["one"]


def test_descriptors_and_listeners(in_thread):
    reading, writing = os.pipe()
    with wherry.Poller() as poller, wherry.listen("wherry://*:*") as listener:
        poller.add(listener)
        poller.add(reading, "pipe")
        os.write(writing, b"x")
        assert poller.wait(timeout=60) == ["pipe"]
        poller.remove(reading)
        connecting = in_thread(wherry.connect, listener.local, 60)
        assert poller.wait(timeout=60) == [listener]
        accepted = listener.accept(timeout=60)
        connecting.result().close()
        accepted.close()
    os.close(reading)
    os.close(writing)


def test_what_cannot_be_added(pair):
    one, _ = pair
    with wherry.Poller() as poller:
        poller.add(one)
        with pytest.raises(wherry.Error) as caught:
            poller.add(one)
        assert caught.value.errno == errno.EEXIST
        with pytest.raises(TypeError):
            poller.add("text")
        with open(os.devnull) as plain, pytest.raises(wherry.Error) as caught:
            poller.add(plain)
        assert caught.value.errno == errno.EPERM
        poller.remove(one)
        poller.add(one)
        one.close()
        with pytest.raises(wherry.Error):
            poller.add(one)


def test_interrupt_ends_a_wait_of_another_thread(in_thread):
    with wherry.Poller() as poller:
        waiting = in_thread(poller.wait)
        poller.interrupt()
        assert waiting.result() == []


def test_a_stream_is_closed_by_another_thread_while_its_poller_waits(pair, in_thread):
    one, _ = pair
    with wherry.Poller() as poller:
        poller.add(one, "one")
        waiting = in_thread(poller.wait)
        one.close()
        assert waiting.result() in ([], ["one"])
        assert poller.wait(timeout=0) == []


def test_close_ends_the_wait_of_another_thread(in_thread):
    poller = wherry.Poller()
    waiting = in_thread(poller.wait)
    poller.close()
    try:
        assert waiting.result() == []
    except wherry.Error as error:  # it had not begun to wait
        assert error.errno == errno.EBADF


def test_a_poller_in_its_own_token_is_collected(pair):
    poller = wherry.Poller()
    token = type("Token", (), {})()
    token.poller = poller
    gone = weakref.ref(token)
    poller.add(pair[0], token)
    del poller, token
    gc.collect()
    assert gone() is None
