# SPDX-License-Identifier: Apache-2.0
"""Standard output: lines that stay, and below them one line of progress."""

import contextlib
import os
import sys
import threading
import time
from typing import Callable

from ending import Problem, start_aside

REDRAW = 0.5  # seconds; on a terminal the line of progress is drawn over the last one
SIGN_OF_LIFE = 20  # seconds; elsewhere the progress is a line of its own, now and then
CLEAR = "\r\033[K"


class Screen:
    def __init__(self):
        if sys.stdout is None:
            raise Problem("standard output is closed; the result needs one, a terminal or a file")
        self._terminal = os.isatty(1)
        self._lock = threading.Lock()
        self._describe: Callable[[], str] | None = None
        start_aside(threading.Thread(target=self._keep_drawing))

    def say(self, line: str) -> None:
        with self._lock:
            try:
                self._write((CLEAR if self._terminal else "") + line + "\n")
            except OSError as error:
                raise Problem(f"cannot write to standard output: {error.strerror}") from error

    @contextlib.contextmanager
    def progress(self, describe: Callable[[], str]):
        """While the block runs, what `describe` returns is shown and kept up to date."""
        self._describe = describe
        try:
            yield
        finally:
            with self._lock:
                self._describe = None
                if self._terminal:
                    with contextlib.suppress(OSError):
                        self._write(CLEAR)

    def _keep_drawing(self) -> None:
        while True:
            time.sleep(REDRAW if self._terminal else SIGN_OF_LIFE)
            with self._lock:
                if self._describe is not None:
                    # An output that is closed is noticed by the next line that matters.
                    with contextlib.suppress(OSError):
                        self._draw(self._describe())

    def _draw(self, text: str) -> None:
        if self._terminal:
            columns = os.get_terminal_size(1).columns or 80
            self._write(f"{CLEAR}      {text}"[: len(CLEAR) + columns - 1])
        else:
            self._write(f"      {text}\n")

    def _write(self, text: str) -> None:
        rest = text.encode("utf-8", "backslashreplace")
        while rest:
            rest = rest[os.write(1, rest) :]


def about(seconds: float) -> str:
    """As scripts/stages.sh words an estimate."""
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


class Estimate:
    """How long the remaining parts take if they are like those before."""

    def __init__(self, parts: int):
        self._parts = parts
        self._done = 0
        self._begin = time.monotonic()
        self._end_of_last = self._begin

    def one_more(self) -> None:
        self._done += 1
        self._end_of_last = time.monotonic()

    def text(self) -> str:
        if self._done == 0:
            return f"{time.monotonic() - self._begin:.0f} s so far"
        each = (self._end_of_last - self._begin) / self._done
        return about(max(0.0, self._end_of_last + each * (self._parts - self._done) - time.monotonic()))
