# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/python, which docs/python.md shows, among themselves and with those in C++."""

import pytest
from peers import EXAMPLES, output_of


def run(peers, receiver, *senders):
    """Both sides as command lines of examples; a name without .py is one in C++ or C. What each printed."""
    started = []
    for node, (name, *arguments) in enumerate([receiver, *senders]):
        start = peers.python if name.endswith(".py") else peers.example
        started.append(start(EXAMPLES / name if name.endswith(".py") else name, *arguments, node=node))
    return [output_of(process) for process in started]


HELLO = "hello from a card, in Python\n"


def test_host_and_worker(peers):
    assert run(peers, ["host.py"], ["worker.py"])[0] == HELLO
    assert run(peers, ["cpp_host"], ["worker.py"])[0] == HELLO
    assert run(peers, ["host.py"], ["c_worker"])[0] == "hello from a card, in C\n"


def test_framed(peers):
    for receiver, sender in (("framed.py", "framed.py"), ("cpp_framed", "framed.py"), ("framed.py", "c_framed")):
        assert run(peers, [receiver], [sender, "one", "two", "and three"])[0] == "one\ntwo\nand three\n"


def test_camera_and_viewers(peers):
    outputs = run(peers, ["camera.py", "2"], ["viewer.py"], ["viewer.py"])
    frames = "".join(f"(480, 640, 3) uint8 {number}.0\n" for number in range(10))
    assert outputs == ["", frames, frames]


def test_a_server_of_many(peers):
    outputs = run(peers, ["server.py", "3"], *(["server.py", "send", text] for text in ("one", "two", "three")))
    assert outputs == ["", "ONE\n", "TWO\n", "THREE\n"]


@pytest.mark.parametrize("receiver", ["mailbox.py", "cpp_mailbox"])
def test_mailbox(peers, receiver):
    senders = [[sender, "send", "for the mailbox"] for sender in ("mailbox.py", "cpp_mailbox", "mailbox.py")]
    assert run(peers, [receiver, "3"], *senders) == ["for the mailbox\n" * 3, *["received\n"] * 3]
