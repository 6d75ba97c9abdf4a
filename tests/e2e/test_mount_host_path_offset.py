# SPDX-License-Identifier: Apache-2.0
"""`read` and `write` by `wherry run --files` past a mount: at an offset that threads, handlers, forks and closes use, too."""

import os

import pytest
from host_path import here, namespace, run, server  # noqa: F401

MIB = 1 << 20


@pytest.mark.parametrize("before, past", [("", True), ("os.dup(file), os.dup(copy)", False), ("os.fork() or os._exit(0)", False)])
def test_reads_and_writes_at_an_offset_that_nobody_shares_go_past_the_mount(server, here, tmp_path, before, past):
    data = os.urandom(3 * MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = f"""
copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
file = os.open("file", os.O_RDONLY)
{before}
while piece := os.read(file, 1 << 20):
    assert os.write(copy, piece) == len(piece)
    assert os.lseek(file, 0, os.SEEK_CUR) == os.lseek(copy, 0, os.SEEK_CUR)
"""
    _, report = run(server, here, code)
    assert (report.calls("reads from the host"), report.calls("writes to the host")) == ((4, 3) if past else (0, 0)), report.said
    assert (tmp_path / "root/copy").read_bytes() == data


# Each piece has a number, so that a piece which is read twice or never is found. The first piece opens the file at the
# server: while some threads are in the kernel's call, no other one goes past the mount.
SHARED_OFFSET = """
import signal, struct, threading
PIECES, SIZE = 160, 1 << 16
def read_all(file, seen, most=PIECES):
    while len(seen) < most and (piece := os.read(file, SIZE)):
        number, = struct.unpack_from("q", piece)
        assert piece == struct.pack("q", number) * (SIZE // 8)
        seen.append(number)
def write_some(file, numbers):
    for number in numbers:
        assert os.write(file, struct.pack("q", number) * (SIZE // 8)) == SIZE
copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
write_some(copy, [0])
writers = [threading.Thread(target=write_some, args=(copy, range(1 + i, PIECES, 4))) for i in range(4)]
[writer.start() for writer in writers] and [writer.join() for writer in writers]
assert os.lseek(copy, 0, os.SEEK_CUR) == PIECES * SIZE
file, seen = os.open("copy", os.O_RDONLY), []
read_all(file, seen, 1)
"""


def test_threads_that_share_an_offset_move_each_byte_once(server, here):
    code = SHARED_OFFSET + """
readers = [threading.Thread(target=read_all, args=(file, seen)) for i in range(4)]
[reader.start() for reader in readers] and [reader.join() for reader in readers]
assert sorted(seen) == list(range(PIECES))
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") > 3 and report.calls("writes to the host") > 3, report.said


def test_a_handler_and_the_code_that_it_interrupts_move_each_byte_once(server, here):
    code = SHARED_OFFSET + """
def handle(*_):
    if piece := os.read(file, SIZE):
        seen.append(struct.unpack_from("q", piece)[0])
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
read_all(file, seen)
signal.setitimer(signal.ITIMER_REAL, 0)
assert sorted(seen) == list(range(PIECES))
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") > 3, report.said


def test_a_close_during_a_read_leaves_the_offset_of_the_numbers_next_file(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(b"m" * MIB)
    (tmp_path / "other").write_bytes(b"o" * MIB)
    code = f"""
import threading, time
def read(number, found, begins):
    begins.set()
    try:
        found.append(os.read(number, 1 << 20))
    except OSError:
        pass
met = 0
for i in range(300):
    file, found, begins = os.open("file", os.O_RDONLY), [], threading.Event()
    os.pread(file, 1 << 20, 0)
    reader = threading.Thread(target=read, args=(file, found, begins))
    reader.start()
    begins.wait()
    time.sleep(i % 30 * 1e-5)
    os.close(file)
    other = os.open({str(tmp_path / "other")!r}, os.O_RDONLY)
    reader.join()
    if other == file and found and found[0][:1] == b"m":
        met += 1
        assert os.lseek(other, 0, os.SEEK_CUR) == 0
    os.close(other)
assert met > 0
"""
    run(server, here, code)


def test_a_fork_during_reads_shares_the_offset_behind_them(server, here):
    code = SHARED_OFFSET + """
reader = threading.Thread(target=read_all, args=(file, seen))
reader.start()
ours, theirs = os.pipe()
children = []
for i in range(5):
    child = os.fork()
    if child == 0:
        piece = os.read(file, SIZE)
        if piece:
            os.write(theirs, piece[:8])
        os._exit(0)
    children.append(child)
[os.waitpid(child, 0) for child in children]
reader.join()
os.close(theirs)
while number := os.read(ours, 8):
    seen.append(struct.unpack("q", number)[0])
assert sorted(seen) == list(range(PIECES))
"""
    run(server, here, code)
