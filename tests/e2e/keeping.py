# SPDX-License-Identifier: Apache-2.0
"""Mounts that keep writes, for as long as a `with` block."""

import contextlib
import os
import signal
import subprocess
import sys

from serving import NO_PASSTHROUGH, Mount, Server

NO_LEND = "--no-lend"
BLOCK = 4096


def fill_up(folder):
    with open(folder / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(BLOCK))


@contextlib.contextmanager
def served(folder, *options, mount=(), preexec_fn=None):
    (folder / "root").mkdir(exist_ok=True)
    with Server(folder / "root", NO_LEND, NO_PASSTHROUGH, *options, preexec_fn=preexec_fn) as server:
        card = Mount(server, folder / "mount", *mount)
        with card as here:
            yield server, card, folder / "root", here


@contextlib.contextmanager
def stopped(process):
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def write_until_kept(file, there, offset=0, by=os):
    """Writes at the end of a file until the host's file lags behind. Returns what the card's file has from `offset` on."""
    content = b""
    while os.stat(there).st_size == offset + len(content):
        content += bytes([65 + len(content) // 100 % 26]) * 100
        assert by.pwrite(file, content[-100:], offset + len(content) - 100) == 100
    return content


def append_until_kept(file, there, by=os):
    """Appends to a file until the host's file lags behind. Returns what was appended."""
    before, content = os.stat(there).st_size, b""
    while os.stat(there).st_size == before + len(content):
        content += bytes([65 + len(content) // 100 % 26]) * 100
        assert by.write(file, content[-100:]) == 100
    return content


def opened(path, flags=os.O_RDWR | os.O_CREAT):
    return os.open(path, flags, 0o644)


class Program:
    """Makes calls of `os`. This process must not have files of the mount open when it starts a server: the new process
    would close them, and wait for the server."""

    SCRIPT = """
import os, sys
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except OSError as error:
        print(-error.errno, flush=True)
"""

    def __init__(self, *command, env=None):
        """`command` starts it: what comes before the interpreter."""
        self.command, self.env = command, env

    def __enter__(self):
        self.process = subprocess.Popen([*self.command, sys.executable, "-c", self.SCRIPT], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def __getattr__(self, name):
        """The call's result, or the negative number of its error."""
        def call(*arguments):
            self.process.stdin.write(f"os.{name}(*{tuple(str(one) if isinstance(one, os.PathLike) else one for one in arguments)!r})\n")
            self.process.stdin.flush()
            return eval(self.process.stdout.readline())
        return call
