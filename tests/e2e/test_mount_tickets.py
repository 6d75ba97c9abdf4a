# SPDX-License-Identifier: Apache-2.0
"""wherry mount: programs may ask for a way past it, by an ioctl of a file that they have open."""

import contextlib
import ctypes
import errno
import fcntl
import os
import struct
import subprocess

import pytest
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace, mounts
from waiting import wait_until

READS, WRITES = 1, 2
TICKET = struct.Struct("<II16s104s")
WRITTEN = struct.Struct("<QQII16s")
GET_TICKET = 3 << 30 | TICKET.size << 16 | 0xE7 << 8 | 1
TELL_WRITTEN = 1 << 30 | WRITTEN.size << 16 | 0xE7 << 8 | 2
THROUGH_THE_SERVER = [NO_PASSTHROUGH, "--no-lend"]


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@pytest.fixture
def here(tmp_path):
    with mounts(tmp_path, serve=THROUGH_THE_SERVER) as (root, directory):
        (root / "file").write_bytes(b"x" * 8192)
        yield directory


def ticket(file, access):
    """Its number and the server's address, or the error."""
    wanted = bytearray(TICKET.pack(1, access, b"", b""))
    try:
        fcntl.ioctl(file, GET_TICKET, wanted)
    except OSError as error:
        return error.errno
    version, given, number, address = TICKET.unpack(wanted)
    assert (version, given) == (1, access)
    return number, address.rstrip(b"\0").decode()


def opened(path, flags):
    return os.open(path, flags, 0o666)


def test_a_ticket_names_the_server_and_is_another_each_time(here):
    file = opened(here / "file", os.O_RDONLY)
    tickets = [ticket(file, READS) for _ in range(3)]
    assert len({number for number, _ in tickets}) == 3 and bytes(16) not in dict(tickets)
    assert {address for _, address in tickets} == {"wherry://0:7000"}
    os.close(file)


def test_the_address_is_told_without_a_ticket(here):
    file = opened(here / "file", os.O_RDONLY)
    assert ticket(file, 0) == (bytes(16), "wherry://0:7000")
    os.close(file)


@pytest.mark.parametrize("flags, access, error", [
    (os.O_RDONLY, WRITES, errno.EACCES), (os.O_WRONLY, READS, errno.EACCES), (os.O_WRONLY | os.O_APPEND, WRITES, errno.EACCES),
    (os.O_RDONLY, 3, errno.EINVAL), (os.O_DIRECTORY, READS, errno.ENOTTY)])
def test_a_ticket_gives_no_more_than_the_open_file_has(here, flags, access, error):
    file = opened(here if flags == os.O_DIRECTORY else here / "file", flags)
    assert ticket(file, access) == error
    os.close(file)


def test_a_file_that_may_be_mapped_to_write_has_no_tickets_for_writing(here):
    writer = opened(here / "file", os.O_WRONLY)
    assert len(ticket(writer, WRITES)) == 2
    mapper = opened(here / "file", os.O_RDWR)
    assert ticket(writer, WRITES) == ticket(mapper, WRITES) == errno.EBUSY
    assert len(ticket(mapper, READS)) == 2
    os.close(mapper)
    while ticket(writer, WRITES) == errno.EBUSY:  # the kernel tells of a close after the program has gone on
        pass
    assert len(ticket(writer, WRITES)) == 2
    os.close(writer)


@pytest.mark.parametrize("killed", [False, True])
def test_unused_tickets_end_with_the_mounts_session(tmp_path, killed):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/file").write_bytes(b"x" * 8192)
    with Server(tmp_path / "root", *THROUGH_THE_SERVER) as server:

        def descriptors():
            found = 0
            for number in os.listdir(f"/proc/{server.process.pid}/fd"):
                try:
                    found += os.readlink(f"/proc/{server.process.pid}/fd/{number}").endswith("root/file")
                except FileNotFoundError:
                    pass
            return found

        mount = Mount(server, tmp_path / "mount")
        reader, writer = opened(tmp_path / "mount/file", os.O_RDONLY), opened(tmp_path / "mount/file", os.O_WRONLY)
        assert all(len(ticket(reader, READS)) == len(ticket(writer, WRITES)) == 2 for _ in range(5))
        assert descriptors() >= 10
        if killed:
            mount.kill()
        else:
            mount.end()
        wait_until(lambda: descriptors() == 0, "the end of the session's files")
        for file in (reader, writer):
            with contextlib.suppress(OSError):  # of a mount that is gone
                os.close(file)
        if killed:
            subprocess.run(["umount", "--lazy", tmp_path / "mount"], check=False)
        with Mount(server, tmp_path / "again") as again:
            file = opened(again / "file", os.O_RDONLY)
            assert len(ticket(file, READS)) == 2
            os.close(file)


def test_where_the_kernel_moves_the_data_there_are_none(tmp_path):
    with mounts(tmp_path) as (root, here):
        (root / "file").write_bytes(b"x")
        file = opened(here / "file", os.O_RDONLY)
        assert ticket(file, READS) == errno.EOPNOTSUPP
        os.close(file)


def test_pages_are_read_anew_after_word_of_a_write(tmp_path, here):
    file = opened(here / "file", os.O_RDWR)
    times = os.stat(tmp_path / "root/file")
    assert os.pread(file, 8192, 0) == b"x" * 8192
    (tmp_path / "root/file").write_bytes(b"y" * 8192)
    # As if both were written within one tick of the clock.
    os.utime(tmp_path / "root/file", ns=(times.st_atime_ns, times.st_mtime_ns))
    boot = ctypes.create_string_buffer(16)
    with open("/proc/sys/kernel/random/boot_id") as own:
        boot.raw = bytes.fromhex(own.read().strip().replace("-", ""))
    fcntl.ioctl(file, TELL_WRITTEN, WRITTEN.pack(0, 8192, 0, 0, boot.raw))
    assert os.pread(file, 8192, 0) == b"y" * 8192
    os.close(file)


def test_word_of_a_write_to_another_run_of_the_host_is_an_error(here):
    file = opened(here / "file", os.O_WRONLY)
    with pytest.raises(OSError) as error:
        fcntl.ioctl(file, TELL_WRITTEN, WRITTEN.pack(0, 8192, 0, 0, b"another run"))
    assert error.value.errno == errno.EIO
    os.close(file)


def test_other_ioctls_are_refused(here):
    file = opened(here / "file", os.O_RDONLY)
    for request in (GET_TICKET + 1, GET_TICKET & ~(0x3FFF << 16) | 64 << 16):
        with pytest.raises(OSError) as error:
            fcntl.ioctl(file, request, bytearray(128))
        assert error.value.errno == errno.ENOTTY
    os.close(file)
