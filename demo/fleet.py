# SPDX-License-Identifier: Apache-2.0
"""A collector and its shippers, from their start to the end of the last one."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

from ending import Problem, messages, printable, repeat_end, start_aside, uninterrupted
from transports import Transport

TIMEOUT = 600  # seconds for all of it, and more for a large tree: a watchdog, not a claim
SLOWEST = 10_000_000  # bytes per second
COLLECTOR = "the collector"
LINES_SHOWN = 10  # of the messages of a fleet that failed


class Fleet:
    def __init__(self, transport: Transport, address: str):
        self._transport = transport
        self._address = address
        self._messages = messages()
        self._running: dict[int, tuple[str, subprocess.Popen]] = {}
        self._failure = ""  # The first one, which the others follow from.
        self._told = 0  # bytes of messages until then
        self.cpu_seconds = 0.0  # of all processes that have ended, as the kernel accounts them

    def run(self, base: Path, size: int, shares: list[Path], destination: Path) -> float:
        """Hands over what the shares name below `base`. Returns seconds from the start of the shippers."""
        timeout = TIMEOUT + size / SLOWEST
        watchdog = threading.Timer(timeout, self._give_up, [timeout])
        try:
            self._start(COLLECTOR, 0, self._transport.collector(self._address, destination, base, len(shares)))
            begin = time.monotonic()
            start_aside(watchdog)
            for index, share in enumerate(shares):
                name = f"worker {index}"
                self._start(name, 1, self._transport.shipper(self._address, base, share, name))
            while self._running and not self._is_only_a_daemon_left():
                self._wait_for_one()
            seconds = time.monotonic() - begin
            if self._running:
                self._end_daemon()
        finally:
            watchdog.cancel()
            with uninterrupted():
                self._kill_all()
        if self._failure:
            repeat_end(self._messages, LINES_SHOWN, self._told)
            raise Problem(f"over {self._address} {self._failure}")
        return seconds

    def _start(self, name: str, node: int, command: list) -> None:
        with uninterrupted():
            try:
                process = subprocess.Popen(self._transport.on(node, command), stdin=subprocess.DEVNULL, stdout=self._messages,
                                           stderr=self._messages, env=self._transport.environment(node))
            except OSError as error:
                raise Problem(f"cannot run {printable(command[0])}: {error.strerror}") from error
            self._running[process.pid] = (name, process)

    def _is_only_a_daemon_left(self) -> bool:
        return not self._transport.ENDS_BY_ITSELF and [name for name, _ in self._running.values()] == [COLLECTOR]

    def _end_daemon(self) -> None:
        """How it ends is its own affair; what it used counts."""
        self._signal_all(signal.SIGTERM)
        pid, status, usage = os.wait4(-1, 0)
        self._running.pop(pid)[1].returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime

    def _wait_for_one(self) -> None:
        """When one fails, the others need not wait for it."""
        pid, status, usage = os.wait4(-1, 0)
        name, process = self._running.pop(pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        if process.returncode != 0 and not self._failure:
            self._fail(f"{name} {describe_end(process.returncode)}", signal.SIGTERM)

    def _give_up(self, timeout: float) -> None:
        self._fail(f"a round was not done after {timeout:.0f} s", signal.SIGKILL)

    def _fail(self, failure: str, end: signal.Signals) -> None:
        """What is said from here on follows from it, or from the signal."""
        self._told = os.fstat(self._messages.fileno()).st_size
        self._failure = failure
        self._signal_all(end)

    def _signal_all(self, number: int) -> None:
        # Not by Popen, which would also wait for a process that has ended.
        for pid in list(self._running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _kill_all(self) -> None:
        self._signal_all(signal.SIGKILL)
        for pid, (_, process) in self._running.items():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            process.returncode = -signal.SIGKILL
        self._running.clear()


def describe_end(status: int) -> str:
    if status >= 0:
        return f"failed with status {status}"
    return f"was killed by signal {-status} ({signal.strsignal(-status)})"
