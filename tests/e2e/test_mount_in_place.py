# SPDX-License-Identifier: Apache-2.0
"""wherry run --files on a mount without passthrough: a delegated file is read from the card's page cache without a system
call, and a read shows what was written before it began, by anybody."""

import contextlib
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from in_place_reads import CALLS, READING, in_place
from program import PROGRAM, environment
from serving import HAS_FINE_TIMES, NO_PASSTHROUGH, Mount, Server, enter_namespace_with_delegations, mounts
from waiting import wait_until

HAS_LIBRARY = (Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-preload.so").exists()
pytestmark = pytest.mark.skipif(not HAS_LIBRARY, reason="a sanitizer's build has no library that programs could load")

SERVED = pytest.mark.parametrize("serve", [[], ["--no-lend"]], ids=["lent", "through the server"])
SIZE = 254_000

# "warm" reads much, and answers how many of these reads the kernel has not seen; "read OFFSET LENGTH" answers with the
# bytes; "size" with the size.
READER = """
import os, sys
file = os.open(sys.argv[1], eval(sys.argv[2]))
def seen():
    with open("/proc/self/io") as io:
        return int(io.read().split("syscr: ")[1].split()[0])
for line in sys.stdin:
    word, *numbers = line.split()
    if word == "warm":
        before = seen()
        for i in range(3000):
            os.pread(file, 512, i * 512 % 250_000)
        print(3000 - (seen() - before), flush=True)
    elif word == "size":
        print(os.fstat(file).st_size, flush=True)
    else:
        length, offset = map(int, numbers)
        print(os.pread(file, length, offset).hex(), flush=True)
"""


class Reader:
    """A program under `wherry run --files` that reads a file when it is asked to."""

    def __init__(self, path, flags="os.O_RDONLY"):
        command = [PROGRAM, "run", "--files", path.parent, "--", sys.executable, "-c", READER, path, flags]
        self.process = subprocess.Popen(list(map(str, command)), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, text):
        self.send(text)
        return self.answer()

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def read(self, length, offset):
        return bytes.fromhex(self.ask(f"read {length} {offset}"))

    def warm(self):
        return int(self.ask("warm"))

    def wait_until_in_place(self):
        wait_until(lambda: self.warm() > 2000, "reads in place")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait() == 0


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_namespace_with_delegations(tmp_path_factory.mktemp("leases"))


@pytest.fixture
def readers():
    with contextlib.ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Reader(*arguments))


def change(path, content, offset):
    writer = os.open(path, os.O_WRONLY)
    os.pwrite(writer, content, offset)
    os.close(writer)


@SERVED
def test_a_file_that_nobody_writes_to_is_read_in_place(tmp_path, serve):
    with mounts(tmp_path, serve=[NO_PASSTHROUGH, *serve]) as (root, here):
        (root / "file").write_bytes(bytes(504_000))  # all of it is read, and therefore in memory
        for path in ("auto", "cache"):
            assert in_place(here, ["--file-path", path], READING, "file", CALLS) > CALLS / 2
        assert in_place(here, ["--file-path", "kernel"], READING, "file", CALLS) < 10


@pytest.mark.skipif(not HAS_FINE_TIMES, reason="Linux before 6.13: a change within one tick is seen when the file is opened next")
@SERVED
@pytest.mark.parametrize("by", ["root", "mount0", "mount1"])
def test_each_change_is_seen_by_those_who_read_in_place(tmp_path, readers, serve, by):
    with mounts(tmp_path, 2, serve=[NO_PASSTHROUGH, *serve]) as (root, *heres):
        (root / "file").write_bytes(bytes(SIZE))
        programs = [readers(here / "file") for here in (heres[0], heres[0], heres[1])]
        for i in range(6):
            for program in programs:
                program.wait_until_in_place()
            content = b"%08d" % i
            at = 8192 * i
            if i % 3 == 0:
                os.truncate(tmp_path / by / "file", SIZE - 8192 * i - 1)
            else:
                change(tmp_path / by / "file", content, at)
            for program in programs:
                if i % 3 == 0:
                    assert program.read(8192, SIZE - 8192 * i - 4097) == bytes(4096)
                    assert program.ask("size") == str(SIZE - 8192 * i - 1)
                else:
                    assert program.read(8, at) == content
            os.truncate(root / "file", SIZE)


@SERVED
def test_reads_in_place_race_with_changes_and_never_go_back(tmp_path, serve):
    """Each change is a larger number, in two pages. A reader never finds a smaller one than was written when it began."""
    script = """
import os, struct, sys
file, shown = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_RDONLY)
reads = stale = 0
while True:
    least, = struct.unpack("q", os.pread(shown, 8, 0))
    if least < 0:
        break
    for at in (0, 40_960):
        found, = struct.unpack("q", os.pread(file, 8, at))
        reads, stale = reads + 1, stale + (found < least)
print(reads, stale)
"""
    with mounts(tmp_path, 2, serve=[NO_PASSTHROUGH, *serve]) as (root, *heres):
        (root / "file").write_bytes(bytes(SIZE))
        shown = tmp_path / "shown"
        shown.write_bytes(bytes(8))
        programs = [subprocess.Popen([PROGRAM, "run", "--files", here, "--file-path", "cache", "--", sys.executable, "-c", script, here / "file", shown],
                                     env=environment(), stdout=subprocess.PIPE, text=True) for here in heres]
        pause = threading.Event()
        for i in range(1, 100):
            for at in (0, 40_960):
                change((root, *heres)[i % 3] / "file", i.to_bytes(8, "little"), at)
            change(shown, i.to_bytes(8, "little"), 0)
            pause.wait(random.random() * 0.05)
        change(shown, b"\xff" * 8, 0)
        for program in programs:
            reads, stale = map(int, program.communicate()[0].split())
            assert reads > 1000 and stale == 0


@SERVED
def test_files_of_a_killed_daemon_are_read_in_place_again(tmp_path, readers, serve):
    with Server(tmp_path, NO_PASSTHROUGH, *serve) as server:
        (tmp_path / "file").write_bytes(bytes(SIZE))
        mount = Mount(server, tmp_path / "mount")
        with mount as here:
            program = readers(here / "file")
            for i in range(3):
                program.wait_until_in_place()
                mount.kill_daemon()
                change(tmp_path / "file", b"%08d" % i, 8192)
                assert program.read(8, 8192) == b"%08d" % i


def test_no_read_is_made_in_place_while_the_daemon_is_stopped(tmp_path, readers):
    with Server(tmp_path, NO_PASSTHROUGH, "--no-lend") as server:
        (tmp_path / "file").write_bytes(bytes(SIZE))
        mount = Mount(server, tmp_path / "mount")
        with mount as here:
            program = readers(here / "file")
            program.wait_until_in_place()
            with mount.stopped_daemon():
                change(tmp_path / "file", b"new", 8192)
                program.send("read 3 8192")
            assert bytes.fromhex(program.answer()) == b"new"


def test_a_server_that_is_killed_is_not_believed_for_long(tmp_path, readers):
    with Server(tmp_path, NO_PASSTHROUGH) as server, Mount(server, tmp_path / "mount") as here:
        (tmp_path / "file").write_bytes(bytes(SIZE))
        program = readers(here / "file")
        program.wait_until_in_place()
        server.kill()
        change(tmp_path / "file", b"new", 0)
        server.start()
        wait_until(lambda: program.read(3, 0) == b"new", "what was written while there was no server")
        program.wait_until_in_place()
        change(tmp_path / "file", b"newest", 0)
        assert program.read(6, 0) == b"newest"


@pytest.mark.parametrize("flags", ["os.O_RDWR", "os.O_RDONLY | os.O_APPEND"])
def test_a_file_that_may_be_changed_or_bypasses_the_page_cache_is_read_by_the_kernel(tmp_path, readers, flags):
    with mounts(tmp_path, serve=[NO_PASSTHROUGH]) as (root, here):
        (root / "file").write_bytes(bytes(SIZE))
        program = readers(here / "file", flags)
        assert program.warm() + program.warm() < 10
        change(root / "file", b"new", 0)
        assert program.read(3, 0) == b"new"
