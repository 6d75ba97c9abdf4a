# SPDX-License-Identifier: Apache-2.0
"""wherry mount: locks when a mount or the server ends."""

import os
import subprocess

import pytest
from locking import Locker, lockers
from serving import NO_PASSTHROUGH, Mount, Server, enter_mount_namespace, mounts
from waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


def test_the_locks_of_a_mount_that_is_killed_go_to_the_one_that_waits(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root") as server, Mount(server, tmp_path / "there") as there:
        mount = Mount(server, tmp_path / "here")
        with mount as here, lockers(here / "file", there / "file") as (holder, waiter):
            for kind in ("posix", "flock"):
                assert holder.lock(kind, "file", "write") is None
            waiter.begin("lock", "posix", "file", "write", 0, 0, True).wait_until_it_waits()
            mount.kill()
            assert waiter.result() is None
            wait_until(lambda: waiter.lock("flock", "file", "write") is None, "the lock")
            subprocess.run(["umount", "--lazy", here], check=True)
            mount.process.returncode = 0  # it was to be killed


def test_the_end_of_a_mount_ends_who_waits(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root") as server:
        mount = Mount(server, tmp_path / "here")
        with lockers(tmp_path / "root" / "file", mount.directory / "file") as (holder, waiter):
            assert holder.lock("posix", "file", "write") is None
            waiter.begin("lock", "posix", "file", "write", 0, 0, True).wait_until_it_waits()
            mount.end()
            assert mount.process.returncode == 0
            assert waiter.result() in ("EIO", "ENOTCONN", "ECONNABORTED")


def test_after_the_server_was_started_again_who_had_a_lock_gets_estale(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root", "--no-lend") as server, Mount(server, tmp_path / "here") as here, \
            Mount(server, tmp_path / "there") as there, lockers(here / "file", here / "file", there / "file") as (holder, idle, other):
        for locker in (holder, idle):
            assert locker.lock("flock", "file", "read") is None
        assert idle.lock("flock", "file", "none") is None
        assert holder.lock("posix", "file", "write") is None
        server.kill()
        server.start()
        assert other.lock("posix", "file", "write") is None
        assert holder.write("file", 0, "1") == "ESTALE"
        assert holder.lock("posix", "file", "write", 0, 1) == "ESTALE"
        assert holder.lock("flock", "file", "read") == "ESTALE"
        assert (server.root / "file").read_bytes() == b"0" * 10
        # What had no lock goes on, and so does what is opened again.
        assert idle.write("file", 1, "2") == 1
        assert idle.lock("flock", "file", "write") is None
        holder.close("file")
        holder.open("file", str(here / "file"))
        assert holder.lock("posix", "file", "write") == "EAGAIN"
        assert other.lock("posix", "file", "none") is None
        assert holder.lock("posix", "file", "write") is None
        assert holder.write("file", 0, "3") == 1


@pytest.mark.parametrize("serve", [[], [NO_PASSTHROUGH]], ids=["passed through", "lent"])
def test_locks_on_files_that_are_lent_do_not_end_with_the_server(tmp_path, serve):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"0" * 10)
    with Server(tmp_path / "root", *serve) as server, Mount(server, tmp_path / "here") as here, \
            Mount(server, tmp_path / "there") as there, lockers(here / "file", there / "file", server.root / "file") as (holder, other, native):
        assert holder.lock("posix", "file", "write") is None
        assert holder.lock("flock", "file", "write") is None
        server.kill()
        assert holder.write("file", 0, "1") == 1
        server.start()
        assert holder.write("file", 1, "2") == 1
        for locker in (other, native):
            assert locker.lock("posix", "file", "write") == "EAGAIN"
            assert locker.lock("flock", "file", "read") == "EAGAIN"
        for kind in ("posix", "flock"):
            assert holder.lock(kind, "file", "none") is None
            assert other.lock(kind, "file", "write") is None
        assert native.read("file", 0, 2) == "12"
        holder.close("file")
        other.close("file")
        assert native.lock("posix", "file", "write") is None


def test_a_server_that_only_reads_serves_locks(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("text")
    with mounts(tmp_path, 2, serve=["--read-only"]) as (root, here, there):
        with Locker(here / "file", os.O_RDONLY) as one, Locker(there / "file", os.O_RDONLY) as other, Locker(root / "file") as host:
            assert one.lock("posix", "file", "read") is None
            assert other.lock("posix", "file", "read") is None
            assert host.lock("posix", "file", "write") == "EAGAIN"
            assert one.lock("flock", "file", "write") is None
            assert other.lock("flock", "file", "read") == "EAGAIN"
