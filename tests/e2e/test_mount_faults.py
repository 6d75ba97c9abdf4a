# SPDX-License-Identifier: Apache-2.0
"""wherry mount: what programs see of it when the server or its disk fails."""

import contextlib
import errno
import fcntl
import mmap
import os
import resource
import signal
import subprocess
import sys

import pytest
from keeping import Program, write_until_kept
from mounting import mounted, strange_file_system
from serving import NO_PASSTHROUGH, SERVERS, Mount, Server, enter_mount_namespace, mounts, need_leases
from waiting import WATCHDOG, wait_until


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


# In a process of its own: one that starts a server would close copies of these files first, and wait for the server.
WRITER = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    for i in range(400):
        assert file.write(b"%07d\\n" % i) == 8
    os.fsync(file.fileno())
os.rename(sys.argv[1], sys.argv[1] + ".done")
"""


@SERVERS
def test_a_server_that_is_killed_and_started_again_loses_nothing(tmp_path, serve):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve) as server, Mount(server, tmp_path / "here") as here:
        base = _bytes_in(server.root)
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, here / f"file{number}"]) for number in range(3)]
        for i in range(3):
            wait_until(lambda: _bytes_in(server.root) > base + 1000 * (i + 1) or
                       all(writer.poll() is not None for writer in writers), "some data")
            server.kill()
            server.start()
        assert [writer.wait(timeout=WATCHDOG) for writer in writers] == [0, 0, 0]
        for number in range(3):
            assert (server.root / f"file{number}.done").read_bytes() == b"".join(b"%07d\n" % i for i in range(400))


def test_calls_fail_once_the_server_has_been_gone_for_the_timeout(tmp_path):
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "here", "--timeout", "0.5") as here:
        server.kill()
        with pytest.raises(OSError) as caught:
            os.listdir(here)
        assert caught.value.errno == errno.EIO
        server.start()
        wait_until(lambda: _lists(here), "the server answers")


def _lists(folder):
    try:
        os.listdir(folder)
    except OSError:
        return False
    return True


@SERVERS
def test_a_full_disk_is_an_error_of_the_write(tmp_path, serve):
    with mounted("-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path / "root") as root:
        with mounts(tmp_path, serve=serve) as (_, here):
            with open(here / "file", "wb", buffering=0) as file, pytest.raises(OSError) as caught:
                while file.write(b"x" * 65536):
                    pass
            assert caught.value.errno == errno.ENOSPC
            size = (here / "file").stat().st_size
            assert 0 < size <= 1 << 20 and (root / "file").read_bytes() == b"x" * size
            (here / "file").unlink()
            (here / "again").write_bytes(b"y" * 65536)


@pytest.mark.parametrize("serve", [[NO_PASSTHROUGH], ["--no-lend"]])
def test_pages_of_a_mapping_that_no_longer_fit_on_the_disk_are_an_error_of_msync(tmp_path, serve):
    with mounted("-t", "tmpfs", "-o", "size=600k", "tmpfs", tmp_path / "root"):
        with mounts(tmp_path, serve=serve) as (_, here), open(here / "file", "w+b") as file:
            file.truncate(1 << 20)
            with mmap.mmap(file.fileno(), 1 << 20) as memory:
                memory[:] = b"x" * (1 << 20)
                with pytest.raises(OSError) as caught:
                    memory.flush()
                assert caught.value.errno == errno.ENOSPC


def _read_until_an_error(name):
    """Returns what is read before it, and the error; 0 for the end of the file."""
    data = b""
    with open(name, "rb", buffering=0) as file:
        while True:
            try:
                part = file.read(4096)
            except OSError as error:
                return data, error.errno
            if not part:
                return data, 0
            data += part


@SERVERS
def test_a_part_of_a_disk_that_cannot_be_read_is_an_error_and_not_the_end_of_the_file(tmp_path, serve):
    data = bytes(range(256)) * 1024
    with strange_file_system(tmp_path / "fuse", "read=EIO") as (root, _):
        # The kernel reads ahead in pieces that differ from file to file.
        for number in range(30):
            (tmp_path / "fuse" / "behind" / f"file{number}").write_bytes(data)
        with Server(root, *serve) as server, Mount(server, tmp_path / "here") as here:
            for number in range(30):
                got, error = _read_until_an_error(here / f"file{number}")
                assert len(got) == 65536 and got == data[:65536] and error == errno.EIO
                assert (here / f"file{number}").stat().st_size == len(data)


@SERVERS
def test_a_part_of_a_disk_that_cannot_be_written_is_an_error_of_the_write(tmp_path, serve):
    """On a file system that is not local no writes are kept."""
    with strange_file_system(tmp_path / "fuse", "write=EIO") as (root, _):
        with Server(root, *serve) as server, Mount(server, tmp_path / "here") as here, descriptor_of(here / "file", os.O_RDWR | os.O_CREAT) as file:
            for offset in range(0, 65536, 4096):
                assert os.pwrite(file, b"x" * 4096, offset) == 4096
            with pytest.raises(OSError) as caught:
                os.pwrite(file, b"x" * 4096, 65536)
            assert caught.value.errno == errno.EIO
            os.fsync(file)
            assert os.pwrite(file, b"y", 0) == 1
        assert (tmp_path / "fuse" / "behind" / "file").read_bytes() == b"y" + b"x" * 65535


@contextlib.contextmanager
def descriptor_of(name, flags):
    """A descriptor that is closed also when the test fails: the file system would not end before."""
    file = os.open(name, flags)
    try:
        yield file
    finally:
        os.close(file)


def _synchronous_write(name):
    with descriptor_of(name, os.O_WRONLY | os.O_SYNC) as file:
        assert os.write(file, b"synchronous") == 11


@SERVERS
@pytest.mark.parametrize("fails", [False, True], ids=["durable", "refused"])
def test_what_asks_for_durable_data_waits_for_the_disk_of_the_host(tmp_path, serve, fails):
    errors = ("fsync=EIO", "fsyncdir=EIO") if fails else ()
    with strange_file_system(tmp_path / "fuse", *errors) as (root, asked):
        (tmp_path / "fuse" / "behind" / "file").write_bytes(b"content")
        with (Server(root, *serve) as server, Mount(server, tmp_path / "here") as here, descriptor_of(here / "file", os.O_RDWR) as file,
              descriptor_of(here, os.O_RDONLY) as directory):
            assert os.write(file, b"more") == 4
            for operation, name, call in (("fsync", "file", lambda: os.fsync(file)), ("fsync", "file", lambda: os.fdatasync(file)),
                                          ("fsync", "file", lambda: _synchronous_write(here / "file")),
                                          ("fsyncdir", "", lambda: os.fsync(directory))):
                before = asked().count((operation, name))
                try:
                    call()
                    assert not fails
                except OSError as error:
                    assert fails and error.errno == errno.EIO
                assert asked().count((operation, name)) > before, operation


def _bytes_in(folder):
    """As os.walk, whatever is renamed meanwhile."""
    return int(subprocess.run(["du", "--bytes", "--summarize", folder], capture_output=True, text=True).stdout.split()[0])


@SERVERS
def test_a_mount_opens_as_many_files_as_all_its_connections_may(tmp_path, serve):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))

    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", *serve, preexec_fn=few_files) as server, Mount(server, tmp_path / "mount", preexec_fn=few_files) as here:
        files = []
        with pytest.raises(OSError) as caught:
            while len(files) < 1000:
                files.append(os.open(here / "file", os.O_RDWR | os.O_CREAT))
        assert caught.value.errno == errno.EMFILE and 150 <= len(files) <= 200
        for file in files:
            os.close(file)
        wait_until(lambda: _is_writable(here / "file"), "the end of what was open")


def _is_writable(path):
    try:
        path.write_text("text")
    except OSError as error:
        assert error.errno == errno.EMFILE
        return False
    return path.read_text() == "text"


def _open_below(process, root):
    """How many descriptors a process has of files below a directory."""
    count = 0
    for number in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            count += os.readlink(f"/proc/{process.pid}/fd/{number}").startswith(f"{root}/")
        except FileNotFoundError:  # closed meanwhile
            pass
    return count


@pytest.mark.parametrize("stopped", [False, True], ids=["killed", "killed while it was stopped"])
def test_a_server_keeps_nothing_of_a_mount_that_was_killed(tmp_path, stopped):
    need_leases(tmp_path)
    root = tmp_path / "root"
    root.mkdir()
    for name in ("read", "locked", "kept", *map(str, range(20))):
        (root / name).write_bytes(b"content")
    with Server(root, NO_PASSTHROUGH, "--no-lend") as server:
        card = Mount(server, tmp_path / "here")
        here = card.directory
        with Program() as program:
            for name in range(20):
                assert program.open(here / str(name), os.O_RDWR) >= 0
            read = program.open(here / "read", os.O_RDONLY)
            for _ in range(20):  # delegated
                assert program.pread(read, 7, 0) == b"content"
            locked = program.open(here / "locked", os.O_RDWR)
            assert program.lockf(locked, os.F_TLOCK, 0) is None
            write_until_kept(program.open(here / "kept", os.O_WRONLY), root / "kept", by=program)
            assert _open_below(server.process, root) >= 23
            if stopped:
                os.kill(card.daemon(), signal.SIGSTOP)
            card.kill()
            with open(root / "locked", "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX)
            for name in ("read", "kept"):
                (root / name).write_bytes(b"of the host")
            wait_until(lambda: _open_below(server.process, root) == 0, "the server closes all files")
            with Mount(server, tmp_path / "next") as after:
                assert (after / "kept").read_bytes() == b"of the host"
                wait_until(lambda: _open_below(server.process, root) == 0, "the server closes all files")
        subprocess.run(["umount", "--lazy", here], check=True)
