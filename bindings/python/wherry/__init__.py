# SPDX-License-Identifier: Apache-2.0
"""Wherry moves data between processes, cards and machines by shared memory and networks. See docs/python.md."""

from ._native import (
    Connecting,
    Connection,
    FramedStream,
    Listener,
    Mailbox,
    Message,
    Peer,
    Poller,
    Publisher,
    Stream,
    Subscriber,
    Windows,
    __version__,
    connect,
    listen,
    start_connect,
)
from .errors import BrokenPipe, Cancelled, ConnectionRefused, ConnectionReset, Error, Timeout

__all__ = [
    "BrokenPipe",
    "Cancelled",
    "Connecting",
    "Connection",
    "ConnectionRefused",
    "ConnectionReset",
    "Error",
    "FramedStream",
    "Listener",
    "Mailbox",
    "Message",
    "Peer",
    "Poller",
    "Publisher",
    "Stream",
    "Subscriber",
    "Timeout",
    "Windows",
    "__version__",
    "connect",
    "listen",
    "start_connect",
]
