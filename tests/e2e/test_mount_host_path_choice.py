# SPDX-License-Identifier: Apache-2.0
"""Which way a program's large transfers take on a mount: past it, in place or by the kernel, as `auto` or the program chooses."""

import os
import subprocess
import sys

import pytest
from host_path import here, namespace, run, server  # noqa: F401
from keeping import NO_LEND
from program import PROGRAM
from serving import NO_PASSTHROUGH, Mount, Server

MIB = 1 << 20

# Reads a file until all of it is in the page cache, or `passes` times.
READ_AGAIN = r"""
import ctypes, itertools
passes = int(sys.argv[1])
file = os.open("file", os.O_RDONLY)
size = os.fstat(file).st_size
def cached():
    pages, found = (ctypes.c_uint64 * 2)(0, size), (ctypes.c_uint64 * 5)()
    assert ctypes.CDLL(None).syscall(451, file, pages, found, 0) == 0  # cachestat
    return found[0] * os.sysconf("SC_PAGE_SIZE")
for _ in itertools.count() if passes == 0 else range(passes):
    if cached() >= size:
        break
    for offset in range(0, size, 1 << 20):
        assert len(os.pread(file, 1 << 20, offset)) == 1 << 20
print(cached())
"""


def test_auto_brings_a_file_that_is_read_again_into_the_page_cache(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(os.urandom(8 * MIB))
    assert int(run(server, here, READ_AGAIN, 20, path="host")[0]) == 0
    server.env["WHERRY_RING"] = "4096"  # so that hits are faster on every machine
    assert int(run(server, here, READ_AGAIN, 0, path="auto")[0]) == 8 * MIB


CHOOSING = """
import ctypes
choose = ctypes.CDLL(None).wherry_fd_set_path
KERNEL, CACHE, HOST = 2, 3, 5
file = os.open("file", os.O_RDONLY)
out = os.open("out", os.O_WRONLY | os.O_CREAT)
def transfers(times, path=None):
    for fd in (file, out) if path else ():
        assert choose(fd, path) == 0
    for i in range(times):
        assert os.pread(file, 1 << 16, 0) == bytes(1 << 16)
        assert os.pwrite(out, bytes(1 << 16), 0) == 1 << 16
"""


@pytest.mark.parametrize("path", [None, "kernel", "host"])
def test_a_program_chooses_for_a_descriptor_whether_transfers_go_past_the_mount(server, here, tmp_path, path):
    (tmp_path / "root/file").write_bytes(bytes(1 << 16))
    code = CHOOSING + "transfers(3, HOST); transfers(10, KERNEL); transfers(20, CACHE); transfers(40, HOST)"
    _, report = run(server, here, code, path=path)
    assert report.calls("reads from the host") == report.calls("writes to the host") == 43, report.said
    _, report = run(server, here, CHOOSING + "choose(file, KERNEL); transfers(7)", path=path)
    assert report.calls("reads from the host") == 0, report.said
    assert report.calls("writes to the host") == (7 if path == "host" else 0), report.said


READ_ONCE = """
for i in range(int(sys.argv[1])):
    file = os.open(f"file{i}", os.O_RDONLY)
    for offset in range(0, 1 << 20, 1 << 16):
        assert len(os.pread(file, 1 << 16, offset)) == 1 << 16
    os.close(file)
"""


def test_auto_does_not_connect_to_the_server_for_a_few_small_reads(server, here, tmp_path):
    for i in range(40):
        (tmp_path / f"root/file{i}").write_bytes(os.urandom(MIB))
    assert run(server, here, READ_ONCE, 16, path="auto")[1].calls("reads from the host") == 0
    assert run(server, here, READ_ONCE, 1, path="host")[1].calls("reads from the host") == 16
    assert run(server, here, READ_ONCE, 40, path="auto")[1].calls("reads from the host") > 0


READ_TO_THE_END = """
import ctypes, mmap
size = int(sys.argv[1])
file = os.open("file", os.O_RDONLY)
for again in range(3):
    os.lseek(file, 0, os.SEEK_SET)
    while os.read(file, 1 << 20):
        pass
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
there = (ctypes.c_ubyte * (size // 4096))()
memory = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0)))
assert libc.mincore(memory, ctypes.c_size_t(size), there) == 0
print(sum(page & 1 for page in there))
"""


def test_the_end_of_a_file_does_not_turn_the_next_reads_to_the_mount(server, here, tmp_path):
    """Without a report, reads after a hit are not looked at. On busy cores the mount's way may be the faster one."""
    size = 16 * MIB
    (tmp_path / "root/file").write_bytes(os.urandom(size))
    command = [PROGRAM, "run", "--files", here, "--file-path", "auto", "--", sys.executable, "-c", "import os, sys" + READ_TO_THE_END, size]
    def pages_in_memory():
        return int(subprocess.run(list(map(str, command)), env=server.env, cwd=here, capture_output=True, text=True, check=True).stdout)

    assert any(pages_in_memory() < size // 4096 // 2 for _ in range(20))


READ_FROM_MEMORY = """
import ctypes, mmap
size = int(sys.argv[1])
file = os.open("file", os.O_RDONLY)
ctypes.CDLL(None).mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED | mmap.MAP_POPULATE, file, ctypes.c_long(0))
for again in range(20):
    if sys.argv[2] == "read":
        os.lseek(file, 0, os.SEEK_SET)
        while os.read(file, 1 << 18):
            pass
    else:
        for offset in range(0, size + 1, 1 << 18):
            os.pread(file, 1 << 18, offset)
os.close(file)
"""


@pytest.mark.parametrize("by", ["read", "pread"])
def test_auto_does_not_connect_to_the_server_to_read_what_is_in_memory(server, here, tmp_path, by):
    """The size is no multiple of the read's: neither the last part nor the end of the file is a miss."""
    size = 16 * MIB + 1000
    (tmp_path / "root/file").write_bytes(os.urandom(size))
    _, report = run(server, here, READ_FROM_MEMORY, size, by, path="auto")
    assert report.calls("reads from the host") == 0, report.said
    # The file is mapped once it is read again.
    assert report.calls("reads in place") >= 17 * 64, report.said


WRITE_SHORT = r"""
call, count = sys.argv[1], int(sys.argv[2])
file = os.open("file", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
data = os.urandom(1 << 16)
for i in range(count):
    if call == "write":
        os.lseek(file, i % 128 << 16, os.SEEK_SET)
        assert os.write(file, data) == 1 << 16
    else:
        assert os.pwrite(file, data, i % 128 << 16) == 1 << 16
"""


@pytest.mark.parametrize("call", ["write", "pwrite"])
def test_auto_gives_short_writes_to_a_ring(server, here, call):
    _, report = run(server, here, WRITE_SHORT, call, 4000, path="auto")
    assert report.calls("writes by a ring") > 3900 and report.calls("writes to the host") == 0, report.said
    assert run(server, here, WRITE_SHORT, call, 1000, path="host")[1].calls("writes to the host") == 1000


@pytest.mark.parametrize("call", ["write", "pwrite"])
def test_auto_writes_past_a_mount_that_keeps_no_writes(tmp_path, call):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", NO_PASSTHROUGH, NO_LEND, "--no-delegations") as server, Mount(server, tmp_path / "mount") as here:
        _, report = run(server, here, WRITE_SHORT, call, 4000, path="auto")
        assert report.calls("writes to the host") > 0 and report.calls("writes by a ring") == 0, report.said


@pytest.mark.parametrize("path, least", [("auto", 1), (None, 400)])  # on `auto` some go past the mount, if that is faster
def test_long_reads_of_pages_in_memory_are_made_in_place(server, here, path, least):
    content = os.urandom(16 << 20)
    (server.root / "file").write_bytes(content)
    assert (here / "file").read_bytes() == content  # through the mount: it has all pages then
    _, report = run(server, here, """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
content = os.pread(file, 16 << 20, 0)
for i in range(800):
    offset = i % 4 << 22
    assert os.pread(file, 4 << 20, offset) == content[offset:offset + (4 << 20)]
""", here / "file", path=path)
    assert report.calls("reads in place") >= least and report.calls("reads by the kernel") < 400, report.said
