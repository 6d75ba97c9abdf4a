# SPDX-License-Identifier: Apache-2.0
import subprocess
import threading

import pytest
import wherry
from peers import Peers


@pytest.fixture
def pair():
    """Two ends of a stream in this process."""
    yield from connected(lambda stream: stream)


@pytest.fixture
def framed_pair():
    yield from connected(wherry.FramedStream)


def connected(make):
    with wherry.listen("wherry://*:*") as listener:
        attempt = wherry.start_connect(listener.local)
        accepted = listener.accept(timeout=60)
        with make(accepted) as one, make(attempt.finish(60)) as other:
            yield one, other


@pytest.fixture
def peers():
    started = Peers()
    yield started
    started.end()


@pytest.fixture
def in_thread():
    """Runs a function in a thread, whose result or exception `.result()` gives. All have ended when the test has."""
    started = []

    def start(function, *arguments):
        started.append(InThread(function, *arguments))
        return started[-1]

    yield start
    for thread in started:
        thread.join(60)
        assert not thread.is_alive(), "a thread still waits"


class InThread(threading.Thread):
    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.value, self.error = None, None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.arguments)
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def result(self):
        self.join(60)
        assert not self.is_alive(), "the thread still waits"
        if self.error:
            raise self.error
        return self.value


@pytest.fixture
def python():
    """Runs a program of Python's, and returns what it did: status, output, errors."""

    def run(code, *arguments, **options):
        import sys

        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=250, **options
        )

    return run
