# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` that give small writes to the mount's daemon through memory."""

import os
import subprocess
import sys

import pytest
from host_path import Report
from keeping import NO_LEND
from program import PROGRAM
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace, need_leases
from waiting import WATCHDOG


def need_preload():
    if not os.path.exists(os.path.join(os.path.dirname(os.path.realpath(PROGRAM)), "../lib/wherry/files/libwherry-preload.so")):
        pytest.skip("a sanitizer's build has no library that programs could load")


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()
    need_preload()


@pytest.fixture
def server(tmp_path):
    need_leases(tmp_path)
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", NO_PASSTHROUGH, NO_LEND) as server:
        yield server


@pytest.fixture
def card(server, tmp_path):
    card = Mount(server, tmp_path / "mount")
    with card:
        yield card


@pytest.fixture
def here(card):
    return card.directory


# `begin` writes until the program has a ring, and returns what the file has. The word `append` makes it use O_APPEND,
# `both` O_RDWR.
BEGIN = r"""
import errno, os, sys
def has_ring():
    with open("/proc/self/maps") as maps:
        return "memfd:wherry.ring" in maps.read()
def begin(path, size=100):
    global file
    access = os.O_RDWR if "both" in sys.argv else os.O_WRONLY
    file = os.open(path, access | os.O_CREAT | os.O_TRUNC | ("append" in sys.argv and os.O_APPEND), 0o644)
    content = b""
    while not has_ring():
        for _ in range(100):
            content += bytes([65 + len(content) // size % 26]) * size
            assert os.write(file, content[-size:]) == size
    return content
def say(text="ready"):
    print(text, flush=True)
    return sys.stdin.readline()
"""


def start(server, folder, code, *words, **options):
    command = [PROGRAM, "run", "--files", folder, "--", sys.executable, "-c", BEGIN + code, *words]
    return subprocess.Popen(list(map(str, command)), env={**server.env, "WHERRY_FILES_REPORT": "1"}, cwd=folder, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def end(program):
    """Returns what the program printed, and its report."""
    output, errors = program.communicate(timeout=WATCHDOG)
    assert program.returncode == 0, errors
    return output, Report(errors)


def run(server, folder, code, *words, meanwhile=None):
    """`meanwhile` is called after the program's first line."""
    program = start(server, folder, code, *words)
    first = ""
    if meanwhile:
        first = program.stdout.readline()
        meanwhile()
        program.stdin.write("go\n")
        program.stdin.flush()
    output, report = end(program)
    return first + output, report


def by_ring(report):
    return report.calls("writes by a ring")
