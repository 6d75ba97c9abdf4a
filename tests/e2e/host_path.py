# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` on a mount whose large transfers go past it, and how they were made."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from program import PROGRAM
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace
from waiting import WATCHDOG

LIBRARY = Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-direct.so"
COUNTS_CHANGED_PAGES = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 16)


STARTED = []


def end(program):
    program.kill()
    program.wait()


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()
    if not LIBRARY.exists():
        pytest.skip("a sanitizer's build has no library that programs could load")
    if not COUNTS_CHANGED_PAGES:
        pytest.skip("before Linux 6.16 all transfers are the kernel's")


@pytest.fixture
def server(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", NO_PASSTHROUGH, "--no-lend") as server:
        yield server


@pytest.fixture
def here(server, tmp_path):
    with Mount(server, tmp_path / "mount") as directory:
        yield directory
        # A test that has failed leaves its program with an open file, which keeps the mount.
        while STARTED:
            end(STARTED.pop())


class Report:
    """How the transfers of a program were made."""

    def __init__(self, text):
        lines = [line for line in text.splitlines() if line.startswith("wherry files: ")]
        assert len(lines) == 1, text
        self.said = lines[0]

    def calls(self, words):
        found = re.search(rf"{words}: (\d+)", self.said)
        return int(found[1]) if found else 0


def start(server, folder, code, *words, path="host", **options):
    command = [PROGRAM, "run", "--files", folder, *(["--file-path", path] if path else []), "--", sys.executable, "-c", code, *words]
    program = subprocess.Popen(list(map(str, command)), env={**server.env, "WHERRY_FILES_REPORT": "1"}, cwd=folder, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    STARTED.append(program)
    return program


def ask(process, line):
    """Sends a line to a process that answers with the same, and waits for that."""
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    assert process.stdout.readline() == f"{line}\n"


def finish(program):
    """Ends the program's input. Returns what it printed, and its report."""
    output, errors = program.communicate(timeout=WATCHDOG)
    assert program.returncode == 0, errors
    return output, Report(errors)


def run(server, folder, code, *words, path="host", **options):
    """Returns what the program printed, and its report."""
    return finish(start(server, folder, "import os, sys\n" + code, *words, path=path, **options))
