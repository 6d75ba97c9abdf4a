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

TIMEOUT = 600  # seconds for all of it, and more for a large tree: a watchdog, not a claim
SLOWEST = 10_000_000  # bytes per second
LINES_SHOWN = 10  # of the messages of a fleet that failed


class Fleet:
    def __init__(self, program: Path, address: str, durable: bool):
        self._program = program
        self._address = address
        self._durable = durable
        self._environment = os.environ | {"WHERRY_JOB": f"demo-{os.getpid()}", "WHERRY_NODE": "0"}
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
            self._start("the collector", ["collect", "--listen", self._address, "--into", destination, "--quiet",
                                          "--expect", str(len(shares)), *([] if self._durable else ["--no-sync"])])
            begin = time.monotonic()
            start_aside(watchdog)
            for index, share in enumerate(shares):
                name = f"worker {index}"
                self._start(name, ["run", "--node", "1", "--", self._program, "ship", "--to", self._address, "--wait", "30",
                                   "--quiet", "--name", name, "-C", base, "--no-recursion", "-0", "--files-from", share])
            while self._running:
                self._wait_for_one()
            seconds = time.monotonic() - begin
        finally:
            watchdog.cancel()
            with uninterrupted():
                self._kill_all()
        if self._failure:
            repeat_end(self._messages, LINES_SHOWN, self._told)
            raise Problem(f"over {self._address} {self._failure}")
        return seconds

    def _start(self, name: str, arguments: list) -> None:
        with uninterrupted():
            try:
                process = subprocess.Popen([self._program, *arguments], stdin=subprocess.DEVNULL, stdout=self._messages,
                                           stderr=self._messages, env=self._environment)
            except OSError as error:
                raise Problem(f"cannot run {printable(self._program)}: {error.strerror}") from error
            self._running[process.pid] = (name, process)

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
