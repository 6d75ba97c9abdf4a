# SPDX-License-Identifier: Apache-2.0
"""wherry.Mailbox: many senders, one receiver."""

import errno

import pytest
import wherry
from peers import output_of


@pytest.fixture
def boxes():
    """A receiver, a sender, and the receiver's number there."""
    with wherry.Mailbox() as receiver, wherry.Mailbox() as sender:
        receiver.listen("wherry://*:*")
        yield receiver, sender, sender.connect(receiver.local)


def received_by(mailbox):
    while (received := mailbox.receive(timeout=60)) is None:
        assert not mailbox.losses()
    return received


def test_messages_of_every_length_arrive_in_order(boxes, in_thread):
    receiver, sender, to = boxes
    messages = [b"", b"x", bytes(range(256)) * 3, bytes(1_000_000), b"last"]
    sending = in_thread(lambda: [sender.send(to, message, timeout=60) for message in messages])
    got = [received_by(receiver) for _ in messages]
    assert [message for _, message in got] == messages
    assert len({peer for peer, _ in got}) == 1
    assert sending.result() == [len(message) for message in messages]


def test_an_answer_goes_back(boxes, in_thread):
    receiver, sender, to = boxes
    sending = in_thread(sender.send, to, b"question", 60)
    peer, _ = received_by(receiver)
    sending.result()
    receiver.send(peer, b"answer", timeout=60)
    assert received_by(sender) == (to, b"answer")


def test_nothing_to_receive(boxes):
    receiver, _, _ = boxes
    assert receiver.try_receive() is None
    with pytest.raises(wherry.Timeout):
        receiver.receive(timeout=0.01)
    assert receiver.wait(timeout=0) in (True, False)


def test_a_send_that_times_out_is_finished_by_the_next(boxes, in_thread):
    receiver, sender, to = boxes
    long = bytes(range(256)) * 4000
    joining = in_thread(sender.send, to, b"first", 60)
    assert received_by(receiver)[1] == b"first"
    joining.result()
    with pytest.raises(wherry.Timeout) as caught:
        sender.send(to, long, timeout=0.05)
    assert 0 < caught.value.moved < len(long)
    assert not sender.try_send(to, b"may not overtake")
    sending = in_thread(sender.send, to, b"behind", 60)
    assert received_by(receiver)[1] == long
    assert received_by(receiver)[1] == b"behind"
    sending.result()


def test_a_peer_that_leaves_is_a_loss(boxes, in_thread):
    receiver, sender, to = boxes
    in_thread(sender.send, to, b"bye", 60)
    peer, message = received_by(receiver)
    assert message == b"bye" and receiver.peers == 1
    closing = in_thread(sender.close)
    assert receiver.receive(timeout=60) is None
    assert receiver.losses() == [(peer, 0)]
    closing.result()
    receiver.forget(peer)
    with pytest.raises(wherry.Error) as caught:
        receiver.send(peer, b"late", timeout=60)
    assert caught.value.errno == errno.EINVAL


def test_interrupt_ends_a_wait(boxes, in_thread):
    receiver, _, _ = boxes
    waiting = in_thread(receiver.receive)
    receiver.interrupt()
    assert waiting.result() is None


def test_close_ends_a_wait(in_thread):
    mailbox = wherry.Mailbox()
    waiting = in_thread(mailbox.receive)
    while not waiting.is_alive():
        pass
    mailbox.close()
    with pytest.raises(wherry.Error):
        waiting.result()


def test_a_message_beyond_max_message(in_thread):
    with wherry.Mailbox(max_message=1000) as receiver, wherry.Mailbox() as sender:
        receiver.listen("wherry://*:*")
        to = sender.connect(receiver.local)
        sending = in_thread(sender.send, to, b"x" * 1000, 60)
        assert received_by(receiver)[1] == b"x" * 1000
        sending.result()
        with pytest.raises(wherry.Timeout):
            sender.send(to, bytes(100_000), timeout=0.01)
        with pytest.raises(wherry.Error) as caught:
            receiver.receive(timeout=60)
        assert caught.value.errno == errno.EMSGSIZE


def test_layouts(boxes):
    receiver, sender, to = boxes
    for layout in ("equal", "topology", "adaptive"):
        receiver.set_layout(layout)
    receiver.set_budget(128 << 10)
    sender.set_neighbours({to: 2})
    with pytest.raises(ValueError, match="'topology'"):
        receiver.set_layout("square")
    assert sender.address_of(to) == receiver.local


def test_senders_in_cpp(peers):
    with wherry.Mailbox() as mailbox:
        mailbox.listen("wherry://*:2000")
        processes = [peers.example("cpp_mailbox", "send", f"from {number}") for number in range(3)]
        texts = set()
        while len(texts) < 3:
            if (received := mailbox.receive(timeout=60)) is None:
                mailbox.losses()
                continue
            texts.add(received[1])
            mailbox.send(received[0], b"received", timeout=60)
        assert texts == {b"from 0", b"from 1", b"from 2"}
        assert [output_of(process) for process in processes] == ["received\n"] * 3
