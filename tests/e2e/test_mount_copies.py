# SPDX-License-Identifier: Apache-2.0
"""wherry mount: copies between files of the mount, which the server makes, beside the file system of this machine."""

import ctypes
import errno
import os
import random
import subprocess
import threading
import time

import pytest
from errors_of_calls import call
from program import environment
from serving import SERVERS, Mount, Server, enter_mount_namespace, expect_same_as_natively, mounts

SEED = int(os.environ.get("WHERRY_TEST_SEED", 11))
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.copy_file_range.restype = ctypes.c_ssize_t


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def copy(source, target, length, source_offset=None, target_offset=None, flags=0):
    """The C library's call: bytes or the error's name, and the offsets afterwards."""
    offsets = [None if offset is None else ctypes.c_int64(offset) for offset in (source_offset, target_offset)]
    pointers = [None if offset is None else ctypes.byref(offset) for offset in offsets]
    got = LIBC.copy_file_range(source, pointers[0], target, pointers[1], ctypes.c_size_t(length), ctypes.c_uint(flags))
    return errno.errorcode[ctypes.get_errno()] if got < 0 else got, [None if offset is None else offset.value for offset in offsets]


def results(folder):
    at = folder.joinpath
    data = random.Random(SEED).randbytes(300_000)
    at("from").write_bytes(data)
    at("to").write_bytes(b"old" * 1000)
    at("directory").mkdir()
    source, target = os.open(at("from"), os.O_RDONLY), os.open(at("to"), os.O_RDWR)
    writer, appender = os.open(at("to"), os.O_WRONLY), os.open(at("to"), os.O_WRONLY | os.O_APPEND)
    both, directory = os.open(at("from"), os.O_RDWR), os.open(at("directory"), os.O_RDONLY)
    yield "by offsets", [copy(source, target, length, one, other) for length, one, other in (
        (1000, 0, 0), (1, 299_999, 5), (10, 299_999, 5), (10, 300_000, 5), (10, 400_000, 5), (0, 0, 0), (100_000, 50_001, 777), (1 << 40, 0, 0), (5, 0, 1_000_000))]
    yield "content", at("to").read_bytes() == data + bytes(700_000) + data[:5]
    yield "negative", [copy(source, target, 10, -1, 0), copy(source, target, 10, 0, -1), copy(source, target, 10, 0, (1 << 63) - 5), copy(source, target, 10, 0, 0, 1)]
    yield "by positions", [copy(source, writer, 1000), os.lseek(source, 0, os.SEEK_CUR), os.lseek(writer, 0, os.SEEK_CUR), copy(source, writer, 1 << 30),
                           copy(source, writer, 1 << 30), os.lseek(writer, 0, os.SEEK_CUR)]
    yield "the wrong way", [copy(writer, source, 10, 0, 0), copy(source, source, 10, 0, 100), copy(writer, target, 10, 0, 0), copy(source, appender, 10),
                            copy(directory, target, 10, 0, 0), copy(source, directory, 10, 0, 0), copy(source, 999, 10, 0, 0)]
    yield "one file", [copy(both, both, length, one, other) for length, one, other in (
        (1000, 0, 999), (1000, 999, 0), (1000, 0, 0), (1000, 0, 1000), (1000, 5000, 1000), (1 << 30, 299_000, 300_000), (5 << 20, 1 << 20, 2 << 20))]
    data = at("from").read_bytes()
    yield "one file's content", len(data), hash(data)
    os.unlink(at("from"))
    yield "unlinked", copy(source, target, 1 << 20, 0, 0), at("to").read_bytes()[:len(data)] == data
    os.mkfifo(at("fifo"))
    fifo = os.open(at("fifo"), os.O_RDWR)
    yield "fifo", copy(fifo, target, 10, None, 0), copy(source, fifo, 10, 0)
    for descriptor in (source, target, writer, appender, both, directory, fifo):
        os.close(descriptor)


@SERVERS
def test_copies_are_those_of_a_native_file_system(tmp_path, serve):
    expect_same_as_natively(tmp_path, serve, results)


def moved_through(folder):
    """Bytes that the daemon has read from and written to its devices and streams so far."""
    with open(f"/proc/{folder.process.pid}/io") as counters:
        return sum(int(line.split()[1]) for line in counters if line.startswith(("rchar", "wchar")))


@pytest.mark.parametrize("size", [0, 1, 100_000, 50_000_000])
def test_cp_s_data_does_not_cross(tmp_path, size):
    (tmp_path / "root").mkdir()
    data = random.Random(SEED).randbytes(size)
    (tmp_path / "root" / "from").write_bytes(data)
    with Server(tmp_path / "root", "--no-lend") as server:
        mount = Mount(server, tmp_path / "mount")
        with mount as here:
            before = moved_through(mount)
            result = subprocess.run(["cp", "--sparse=never", "from", "to"], cwd=here, env=environment(), capture_output=True, text=True)
            assert result.returncode == 0, result.stderr
            crossed = moved_through(mount) - before
            assert (server.root / "to").read_bytes() == data == (here / "to").read_bytes()
            assert size < 1_000_000 or crossed < size / 10


def test_a_copy_takes_what_was_written_and_is_read_at_once(tmp_path):
    with mounts(tmp_path, 2) as (_, one, other):
        with open(one / "from", "w+b", buffering=0) as source, open(one / "to", "w+b", buffering=0) as target, open(other / "to", "rb", buffering=0) as reader:
            for i in range(100):
                data = str(i).rjust(5000 + i).encode()
                os.pwrite(source.fileno(), data, 0)
                assert copy(source.fileno(), target.fileno(), len(data), 0, 0)[0] == len(data)
                assert os.pread(target.fileno(), 10_000, 0) == os.pread(reader.fileno(), 10_000, 0) == data


def test_large_copies_hold_up_nobody(tmp_path):
    with mounts(tmp_path, 1, serve=["--no-lend", "--threads", "1"], mount=["--connections", "2"]) as (root, here):
        (root / "large").write_bytes(bytes(200 << 20))
        (here / "small").write_text("text")
        done, reads, copies = threading.Event(), [], []

        def read():
            while not done.is_set():
                begin = time.monotonic()
                assert (here / "small").read_text() == "text"
                reads.append((begin, time.monotonic()))

        def made_meanwhile():
            return sum(begin < one and other < end for begin, end in copies for one, other in reads)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            # On a slow machine a copy may end before the reader has its turn. The test's timeout bounds the loop.
            while made_meanwhile() < 3:
                with open(here / "large", "rb") as source, open(here / "copy", "wb") as target:
                    begin = time.monotonic()
                    assert copy(source.fileno(), target.fileno(), 200 << 20)[0] == 200 << 20
                    copies.append((begin, time.monotonic()))
                if len(copies) == 100 and sum(end - begin for begin, end in copies) < 1:
                    pytest.skip("copies take no time here")
        finally:
            done.set()
            reader.join()
        assert (root / "copy").stat().st_size == 200 << 20


def test_copies_of_random_ranges_leave_what_they_leave_in_memory(tmp_path):
    generator = random.Random(SEED)
    with mounts(tmp_path) as (root, here):
        contents = [bytearray(generator.randbytes(200_000)) for _ in range(3)]
        files = []
        for i, content in enumerate(contents):
            (here / str(i)).write_bytes(content)
            files.append(os.open(here / str(i), os.O_RDWR))
        for _ in range(200):
            one, other = generator.randrange(3), generator.randrange(3)
            length, start, to = generator.randrange(1, 90_000), generator.randrange(250_000), generator.randrange(250_000)
            data = bytes(contents[one][start:start + length])
            if one == other and data and start < to + len(data) and to < start + len(data):
                assert copy(files[one], files[other], length, start, to)[0] == "EINVAL"
                continue
            assert copy(files[one], files[other], length, start, to)[0] == len(data)
            if data:
                contents[other].extend(bytes(max(0, to - len(contents[other]))))
                contents[other][to:to + len(data)] = data
        for i, content in enumerate(contents):
            assert (root / str(i)).read_bytes() == content, f"WHERRY_TEST_SEED={SEED}"
            os.close(files[i])


def test_a_mount_for_reading_only_copies_nothing(tmp_path):
    with mounts(tmp_path, serve=["--read-only"]) as (root, here):
        (root / "file").write_text("text")
        assert call(os.open, here / "to", os.O_WRONLY | os.O_CREAT) == "EROFS"
        result = subprocess.run(["cp", "file", "to"], cwd=here, env=environment(LC_ALL="C"), capture_output=True, text=True)
        assert result.returncode == 1 and "Read-only file system" in result.stderr
