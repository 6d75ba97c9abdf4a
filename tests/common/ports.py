# SPDX-License-Identifier: Apache-2.0
"""A fixture: a TCP port, for tests that must know one before anybody listens there."""

import socket

import pytest


@pytest.fixture
def port():
    """One of the loopback interface that nobody else is given while the test runs: a socket holds it, which does not listen.
    One that sets SO_REUSEADDR, as libzmq's, ROOT's and ours do, can be bound to it and listen; before, and afterwards,
    connecting is refused."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
