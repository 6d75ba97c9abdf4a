# SPDX-License-Identifier: Apache-2.0
"""File systems for tests, mounted for as long as a `with` block."""

import contextlib
import ctypes
import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import wait_until

STRANGE = Path(__file__).with_name("strange_file_system.py")
DEBIANS_PYTHON = "/usr/bin/python3"


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def mounted(*arguments):
    """`mount ARGUMENTS...`; the last one is the folder, which is made."""
    folder = Path(arguments[-1])
    folder.mkdir(parents=True, exist_ok=True)
    if subprocess.run(["mount", *arguments], capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def strange_file_system(folder, *errors):
    """A FUSE file system that shows `folder / "behind"`; gives its folder, and a function for what it was asked so far."""
    behind, mount, log = folder / "behind", folder / "mount", folder / "asked"
    behind.mkdir(parents=True)
    mount.mkdir()
    if subprocess.run([DEBIANS_PYTHON, "-c", "import fusepy"], capture_output=True).returncode != 0:
        pytest.skip("no FUSE for Python here: apt-get install python3-fusepy")
    with open(log, "w") as output:
        server = subprocess.Popen([DEBIANS_PYTHON, STRANGE, behind, mount, *errors], stdout=output, stderr=output,
                                  preexec_fn=_die_with_parent)
    try:
        wait_until(lambda: server.poll() is not None or os.path.ismount(mount), "a FUSE file system")
        if server.poll() is not None:
            pytest.skip("FUSE is not permitted here: " + log.read_text().strip()[-200:])
        yield mount, lambda: [tuple(line.split(" ", 1)) for line in log.read_text().splitlines()]
    finally:
        if server.poll() is None:
            subprocess.run(["umount", "--lazy", mount], check=True)
        server.wait()

