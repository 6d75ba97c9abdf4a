# SPDX-License-Identifier: Apache-2.0
"""wherry mount: writes that are acknowledged before the server has them. No error is lost, and nothing that others wrote."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import seccomp
from faults import FaultPlan, FaultyMount, Writer
from keeping import BLOCK, NO_LEND, Program, append_until_kept, fill_up, opened, served, stopped, write_until_kept
from mounting import mounted
from ring_programs import need_preload
from serving import NO_PASSTHROUGH, Server, enter_mount_namespace, need_leases
from waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def namespace(tmp_path_factory):
    enter_mount_namespace()
    need_leases(tmp_path_factory.mktemp("leases"))


def test_a_card_that_is_stopped_is_waited_for_and_then_writes_nothing(tmp_path):
    def write_that_is_kept(stack):
        """Stops the daemon before it sends the write, which it does after 50 ms. False: it may have done so."""
        with stopped(server.process):
            begun = time.monotonic()
            os.pwrite(file, b"of the card", 0)
            stack.enter_context(card.stopped_daemon())
            return time.monotonic() - begun < 0.05

    with served(tmp_path, "--recall-timeout", "0.5") as (server, card, root, here):
        file = opened(here / "file")
        is_kept = False
        while not is_kept:
            write_until_kept(file, root / "file")
            os.fsync(file)
            with contextlib.ExitStack() as stack:
                is_kept = write_that_is_kept(stack)
                if is_kept:
                    (root / "file").write_bytes(b"of the host")  # waits until the card is cut off
            if not is_kept:
                os.ftruncate(file, 0)
        with pytest.raises(OSError) as failed:
            os.fsync(file)
        assert failed.value.errno == errno.ESTALE
        with pytest.raises(OSError) as failed:
            os.pwrite(file, b"of the card", 0)
        assert failed.value.errno == errno.ESTALE
        os.close(file)
        assert (root / "file").read_bytes() == b"of the host" == (here / "file").read_bytes()
        (here / "file").write_bytes(b"of the card")
        assert (root / "file").read_bytes() == b"of the card"


@contextlib.contextmanager
def kept_without_room(tmp_path):
    """A mount on a full disk, and an open file of it with a kept write for which there is no room."""
    with mounted("-t", "tmpfs", "-o", "size=4M", "small", tmp_path / "root") as root:
        with served(tmp_path) as (server, _, _, here):
            file = opened(here / "file")
            write_until_kept(file, root / "file")
            with stopped(server.process):
                assert os.pwrite(file, bytes(BLOCK), 1 << 20) == BLOCK
                fill_up(root)
            yield root, here, file
            os.fsync(file)
            os.close(file)


TOLD_BY = pytest.mark.parametrize("told_by", ["write", "fsync", "close", "fsync of another"])


def expect_told(told_by, error, file, name):
    if told_by == "fsync of another":
        other = opened(name, os.O_RDONLY)
        with pytest.raises(OSError) as failed:
            os.fsync(other)
        os.fsync(other)  # once
        assert failed.value.errno == error
        os.close(other)
    calls = {"write": lambda: os.pwrite(file, b"x", 0) or os.pread(file, 1, 0) or os.pwrite(file, b"x", 0),
             "fsync": lambda: os.fsync(file), "close": lambda: os.close(os.dup(file))}
    with pytest.raises(OSError) as failed:
        if told_by == "write":
            os.fstat(file)  # by then it is written
        calls.get(told_by, calls["fsync"])()
    assert failed.value.errno == error


@TOLD_BY
def test_a_disk_that_others_fill_is_told_of(tmp_path, told_by):
    with kept_without_room(tmp_path) as (root, here, file):
        expect_told(told_by, errno.ENOSPC, file, here / "file")
        os.unlink(root / "filler")
        os.pwrite(file, bytes(BLOCK), 1 << 20)
        if told_by in ("write", "close"):  # which the kernel may have dropped
            assert error_of(lambda: os.fsync(file)) == errno.ENOSPC


@TOLD_BY
def test_a_disk_that_fails_is_told_of(tmp_path, told_by):
    with served(tmp_path, preexec_fn=lambda: seccomp.fail_writes_from(1 << 20)) as (server, _, root, here):
        file = opened(here / "file")
        content = write_until_kept(file, root / "file")
        with stopped(server.process):
            assert os.pwrite(file, bytes(BLOCK), 1 << 20) == BLOCK
        expect_told(told_by, errno.EIO, file, here / "file")
        if told_by in ("write", "close"):  # which the kernel may have dropped
            assert error_of(lambda: os.fsync(file)) == errno.EIO
        os.fsync(file)
        assert os.pwrite(file, b"y", 0) == 1
        os.close(file)
        assert (root / "file").read_bytes() == b"y" + content[1:]


@pytest.mark.parametrize("how", ["write", "append"])
@pytest.mark.parametrize("by_ring", [False, True], ids=["calls", "ring"])
def test_what_was_fsynced_is_on_the_host_when_all_processes_of_the_mount_are_killed(tmp_path, how, by_ring):
    """What was written later is not there, or its beginning is."""
    if by_ring:
        need_preload()
    (tmp_path / "root").mkdir()
    with Server(tmp_path / "root", NO_LEND, NO_PASSTHROUGH) as server:
        card = FaultyMount(server, tmp_path / "mount", FaultPlan(tmp_path / "plan"))
        program = Writer(server, card.directory, tmp_path / "notes", tmp_path / "root", how, by_ring)
        wait_until(lambda: program.synced() > 5000, "writes")
        card.kill()
        assert program.end() in ("write: ENOTCONN", "write: ECONNABORTED", "fsync: ENOTCONN", "fsync: ECONNABORTED")
        program.check(complete=False)


@pytest.mark.parametrize("script", ["import os, sys; os.fstat(int(sys.argv[1]))", "import os"], ids=["looks", "exits"])
def test_an_error_is_told_though_another_process_with_the_descriptor_exits(tmp_path, script):
    with kept_without_room(tmp_path) as (_, _, file):
        # Its exit closes the descriptor, and nobody hears of that.
        subprocess.run([sys.executable, "-c", script, str(file)], pass_fds=[file], check=True)
        assert error_of(lambda: os.fsync(file)) == errno.ENOSPC


@contextlib.contextmanager
def quota(folder, image):
    """A file system on which no more than 4 MiB are allowed."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no Btrfs for a quota here: apt-get install btrfs-progs")
    with open(image, "wb") as made:
        made.truncate(128 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    with mounted("-o", "loop", image, folder):
        calls = [["quota", "enable", folder], ["qgroup", "limit", "4M", "0/5", folder]]
        for call in calls:
            if subprocess.run(["btrfs", *call], capture_output=True).returncode != 0:
                pytest.skip("a quota is refused here")
        yield


def error_of(call):
    with pytest.raises(OSError) as failed:
        call()
    return failed.value.errno


@pytest.mark.parametrize("told_by", ["write", "fsync", "close"])
def test_a_quota_that_others_use_up_is_told_of(tmp_path, told_by):
    with quota(tmp_path / "root", tmp_path / "image"), served(tmp_path) as (server, _, root, here):
        file = opened(here / "file")
        write_until_kept(file, root / "file")
        with stopped(server.process):
            assert os.pwrite(file, bytes(BLOCK), 1 << 20) == BLOCK
            fill_up(root)
        if told_by == "write":
            os.fstat(file)  # by then it is written
        calls = {"write": lambda: os.pwrite(file, b"x", 0), "fsync": lambda: os.fsync(file), "close": lambda: os.close(os.dup(file))}
        assert error_of(calls[told_by]) == errno.EDQUOT
        with contextlib.suppress(OSError):
            os.close(file)


@pytest.mark.parametrize("mount", [[], ["--write-buffer", "0"]], ids=["kept", "direct"])
def test_a_quota_is_the_error_that_it_is_natively(tmp_path, mount):
    def write_all(folder):
        with open(folder / "file", "wb", buffering=0) as file:
            while True:
                file.write(bytes(32 * BLOCK))
                os.fsync(file)

    with quota(tmp_path / "root", tmp_path / "image"), served(tmp_path, mount=mount) as (_, _, root, here):
        natively = error_of(lambda: write_all(root))
        os.unlink(root / "file")
        os.sync()
        assert error_of(lambda: write_all(here)) == natively == errno.EDQUOT


def test_a_full_disk_is_found_by_the_write_itself(tmp_path):
    with mounted("-t", "tmpfs", "-o", "size=4M", "small", tmp_path / "root"):
        with served(tmp_path) as (_, _, root, here):
            file = opened(here / "file")
            written = 0
            with pytest.raises(OSError) as failed:
                while True:
                    written += os.pwrite(file, b"x" * BLOCK, written)
            assert failed.value.errno == errno.ENOSPC
            os.close(file)
            assert (root / "file").read_bytes() == b"x" * written


def test_a_server_that_is_started_again_gets_what_was_kept(tmp_path):
    with served(tmp_path) as (server, _, root, here), Program() as program:
        file = program.open(here / "file", os.O_RDWR | os.O_CREAT)
        content = b""
        for i in range(3):
            content += write_until_kept(file, root / "file", len(content), program)
            os.kill(server.process.pid, signal.SIGSTOP)
            content += b"%08d" % i
            program.pwrite(file, content[-8:], len(content) - 8)
            server.kill()
            server.start()
            assert program.fsync(file) is None
            assert (root / "file").read_bytes() == content


def test_appends_that_were_kept_follow_what_is_there(tmp_path):
    with served(tmp_path) as (server, _, root, here), Program() as program:
        file = program.open(here / "file", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        content = b""
        for i in range(3):
            content += append_until_kept(file, root / "file", program)
            os.kill(server.process.pid, signal.SIGSTOP)
            content += b"%08d" % i
            program.write(file, content[-8:])
            server.kill()
            server.start()
            assert program.fsync(file) is None
            assert (root / "file").read_bytes() == content
        content += append_until_kept(file, root / "file", program)
        program.fsync(file)
        with stopped(server.process):
            program.write(file, b"of the card")
            server.kill()
        with open(root / "file", "ab") as there:
            there.write(b"of the host")
        server.start()
        assert program.fsync(file) == -errno.ESTALE
        assert (root / "file").read_bytes() == content + b"of the host"


@pytest.mark.parametrize("flags", ["0", "os.O_APPEND"])
def test_a_server_that_is_killed_again_and_again_loses_nothing(tmp_path, flags):
    script = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | FLAGS)
for i in range(20000):
    assert os.write(file, b"%07d " % i * 100) == 800
os.fsync(file)
os.close(file)
"""
    with served(tmp_path) as (server, _, root, here):
        program = subprocess.Popen([sys.executable, "-c", script.replace("FLAGS", flags), here / "file"])
        while program.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.05)
            server.kill()
            server.start()
        assert program.returncode == 0
        assert (root / "file").read_bytes() == b"".join(b"%07d " % i * 100 for i in range(20000))


def test_what_others_have_written_meanwhile_is_not_written_over(tmp_path):
    with served(tmp_path) as (server, _, root, here), Program() as program:
        file = program.open(here / "file", os.O_RDWR | os.O_CREAT)
        size = len(write_until_kept(file, root / "file", by=program))
        program.fsync(file)
        with stopped(server.process):
            assert program.pwrite(file, b"of the card", 0) == 11
            server.kill()
        content = b"of the host" * 100
        (root / "file").write_bytes(content.ljust(size, b"."))
        server.start()
        assert program.fsync(file) == -errno.ESTALE
        assert (root / "file").read_bytes() == content.ljust(size, b".")


@pytest.mark.parametrize("end", ["SIGTERM", "umount"])
def test_a_mount_that_ends_writes_what_was_kept(tmp_path, end):
    with served(tmp_path) as (_, card, root, here):
        file = opened(here / "file")
        content = write_until_kept(file, root / "file")
        for i in range(100):
            content += b"%08d" % i
            os.pwrite(file, content[-8:], len(content) - 8)
        if end == "umount":
            os.close(file)
            subprocess.run(["umount", here], check=True)
        assert card.end() == ""
        assert (root / "file").read_bytes() == content
        if end != "umount":
            with contextlib.suppress(OSError):
                os.close(file)


def test_writes_that_are_lost_at_the_end_are_named_in_the_log(tmp_path):
    with served(tmp_path, mount=["--timeout", "0"]) as (server, card, root, here), Program() as program:
        file = program.open(here / "file", os.O_RDWR | os.O_CREAT)
        write_until_kept(file, root / "file", by=program)
        program.fsync(file)
        with stopped(server.process):
            program.pwrite(file, b"lost", 0)
            server.kill()
        assert "writes to file are lost: Input/output error" in card.end()
