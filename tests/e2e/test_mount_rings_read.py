# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` that give small writes to the mount's daemon through memory, to files that are also read."""

import contextlib
import ctypes
import mmap
import os

from ring_programs import by_ring, card, end, here, namespace, server, start  # noqa: F401


@contextlib.contextmanager
def taken_descriptor(program):
    """The one that the program says, which shares everything with it."""
    number = int(program.stdout.readline())
    libc = ctypes.CDLL(None, use_errno=True)
    process = os.pidfd_open(program.pid)
    pidfd_getfd = 438  # the number of the call, the same on all architectures
    taken = libc.syscall(pidfd_getfd, process, number, 0)
    os.close(process)
    assert taken >= 0, os.strerror(ctypes.get_errno())
    try:
        yield taken
    finally:
        os.close(taken)


def test_who_reads_by_the_programs_own_descriptor_sees_what_a_ring_has_written(server, here):
    """Also a mapping, whose pages are the kernel's, and after a long write by the kernel, which keeps pages of it."""
    program = start(server, here, r"""
begin(sys.argv[1])
print(file, flush=True)
number = 0
while (wanted := say().strip()) != "end":
    for i in range(3020):
        if i == 3000 and wanted == "long":
            assert os.pwrite(file, bytes(200_000), 0) == 200_000
        number += 1
        assert os.pwrite(file, b"%08d" % number, 4096) == 8
    print(number, flush=True)
""", here / "file", "both")
    with taken_descriptor(program) as taken, mmap.mmap(taken, 0, access=mmap.ACCESS_READ) as mapping:
        for number in range(30):
            assert program.stdout.readline() == "ready\n"
            program.stdin.write("long\n" if number % 3 == 2 else "short\n")
            program.stdin.flush()
            written = int(program.stdout.readline())
            looks = [lambda: os.pread(taken, 8, 4096), lambda: mapping[4096:4104]]
            for look in looks if number % 2 else reversed(looks):
                assert int(look()) == written
        program.stdout.readline()
        program.stdin.write("end\n")
        program.stdin.flush()
        _, report = end(program)
    assert by_ring(report) > 10_000, report.said


def test_a_read_gets_what_its_thread_has_written_beside_a_long_write_of_another(server, here):
    """While a write makes the file longer, the kernel takes no other size from the mount."""
    program = start(server, here, r"""
import threading
begin(sys.argv[1])
for number in range(1, 41):
    for _ in range(2000):
        assert os.pwrite(file, b"small", 0) == 5
    end = number << 24
    assert os.pwrite(file, b"%08d" % number, end) == 8
    writing = threading.Thread(target=os.pwrite, args=(file, bytes(2 << 20), end - (2 << 20)))
    writing.start()
    for _ in range(20):
        assert os.pread(file, 8, end) == b"%08d" % number
    writing.join()
""", here / "file", "both")
    _, report = end(program)
    assert by_ring(report) > 10_000, report.said


def test_a_mapping_reaches_as_far_as_the_program_has_written(server, here):
    """As LMDB does: the mapping is longer than the file, and nobody asks for the size."""
    program = start(server, here, r"""
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
begin(sys.argv[1])
mapping = libc.mmap(None, ctypes.c_size_t(1 << 24), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
for number in range(100_000):
    assert os.pwrite(file, b"%08d" % number * 8, number * 64) == 64
    if number % 2500 == 0:
        assert ctypes.string_at(mapping + number * 64, 8) == b"%08d" % number
""", here / "file", "both")
    end(program)
