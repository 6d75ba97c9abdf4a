# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does."""

import time
from pathlib import Path

WATCHDOG = 300  # seconds; nothing here takes long, but for a sync beside others that write, and a lost wake-up takes for ever


def wait_until(condition, what):
    """Polls until the condition gives something true, and returns that."""
    deadline = time.monotonic() + WATCHDOG
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.001)
    raise AssertionError(f"waited {WATCHDOG} s for {what}")


def is_running(pid):
    """A process that has ended, but has not been waited for, does not run."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return False


def wait_until_stopped(pid):
    """Until no thread of it runs any more after a SIGSTOP, which one of them must take first. Or until it has ended."""
    tasks = Path(f"/proc/{pid}/task")

    def is_stopped():
        try:
            return {task.joinpath("stat").read_text().rsplit(") ")[1][0] for task in tasks.iterdir()} <= {"T", "Z"}
        except (FileNotFoundError, ProcessLookupError):  # a thread has just ended
            return not tasks.exists()

    wait_until(is_stopped, f"process {pid} stops")
