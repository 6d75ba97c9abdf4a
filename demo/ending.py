# SPDX-License-Identifier: Apache-2.0
"""How the demo ends: a problem is one line that says what to do, a signal ends it as soon as all is cleaned up."""

import contextlib
import os
import signal
import threading

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Problem(Exception):
    """Why the demo cannot go on, in one line."""


class Interrupted(BaseException):  # Not an Exception: what handles errors must not swallow it.
    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


_held = 0
_pending: int | None = None
_raised = False


def _act(number: int) -> None:
    global _raised
    # Once: a terminal that closes sends SIGHUP, and make sends it again; the second must not interrupt the cleaning up.
    if not _raised:
        _raised = True
        raise Interrupted(number)


def _arrived(number: int, _frame) -> None:
    global _pending
    if _held:
        _pending = number
    else:
        _act(number)


def raise_on_signals() -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, _arrived)


def start_aside(thread: threading.Thread) -> None:
    """Starts a thread that takes no signals: the main thread acts on them, and would not wake for one taken elsewhere."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        thread.daemon = True
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def ignore_signals() -> None:
    """When all is said and done."""
    global _raised
    _raised = True


@contextlib.contextmanager
def uninterrupted():
    """A signal that arrives within takes effect at the end: what is made within is also remembered, to be cleaned up."""
    global _held, _pending
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if not _held and _pending is not None:
            number, _pending = _pending, None
            _act(number)


def complain(message: str) -> None:
    with contextlib.suppress(OSError):  # Standard error may be closed or full, too; the exit status remains.
        os.write(2, f"demo: {message}\n".encode("utf-8", "backslashreplace"))


def messages():
    """A file for what other programs say. In memory: that a disk is full must be told, too."""
    return open(os.memfd_create("messages"), "w+b")


def repeat_end(file, count: int, size: int = -1) -> None:
    """Complains with the last lines of what other programs said; `size`: of its first so many bytes."""
    file.seek(0)
    for line in file.read(size).decode(errors="replace").splitlines()[-count:]:
        complain(printable(line))


def printable(text) -> str:
    """A name may hold any byte, line ends and terminal commands too."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))
