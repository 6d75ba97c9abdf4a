# SPDX-License-Identifier: Apache-2.0
"""wherry mount: FIFOs and sockets, beside the file system of this machine."""

import os
import signal
import socket
import stat
import subprocess

import pytest
from errors_of_calls import call
from program import environment
from serving import SERVERS, enter_mount_namespace, expect_same_as_natively, mounts
from waiting import WATCHDOG


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


@pytest.fixture(autouse=True)
def watchdog():
    """A FIFO that connects nobody would be waited for without end."""
    signal.alarm(WATCHDOG)
    yield
    signal.alarm(0)


def types(folder):
    return sorted((entry.name, oct(entry.stat(follow_symlinks=False).st_mode), entry.is_file(), entry.is_dir()) for entry in os.scandir(folder))


def results(folder):
    at = folder.joinpath
    os.umask(0o022)
    at("file").touch()
    for name, mode in (("fifo", stat.S_IFIFO | 0o666), ("socket", stat.S_IFSOCK | 0o4755), ("regular", stat.S_IFREG | 0o640), ("plain", 0o600)):
        yield "mknod", name, call(os.mknod, at(name), mode)
    yield "refused", [call(os.mknod, at(name), stat.S_IFIFO | 0o600) for name in ("fifo", "file", "none/x", "file/x", "n" * 256)]
    yield "mkfifo", [call(os.mkfifo, at("made"), 0o600), call(os.mkfifo, at("made"), 0o600)]
    yield "types", types(folder)
    yield "listed", sorted(subprocess.run(["find", ".", "-printf", "%P %y %M %n\\n"], cwd=folder, capture_output=True, text=True).stdout.split("\n"))
    yield "by type", sorted(subprocess.run(["find", ".", "-type", "p", "-o", "-type", "s"], cwd=folder, capture_output=True, text=True).stdout.split())
    yield "changed", [call(os.chmod, at("fifo"), 0o600), call(os.utime, at("fifo"), ns=(1, 2)), call(os.chown, at("socket"), 12, 34), call(os.link, at("fifo"), at("hard")),
                      call(os.rename, at("hard"), at("renamed")), call(os.truncate, at("fifo"), 0), call(os.lstat(at("renamed")).__getattribute__, "st_nlink"),
                      os.lstat(at("fifo")).st_mtime_ns, os.lstat(at("socket")).st_uid]
    yield "opened", [call(os.open, at("fifo"), os.O_WRONLY | os.O_NONBLOCK), call(os.open, at("socket"), os.O_RDWR)]
    yield "removed", [call(os.unlink, at(name)) for name in ("fifo", "socket", "renamed", "made")], sorted(os.listdir(folder))


@SERVERS
def test_nodes_are_those_of_a_native_file_system(tmp_path, serve):
    expect_same_as_natively(tmp_path, serve, results)


def test_a_fifo_connects_programs_of_the_mount(tmp_path):
    with mounts(tmp_path) as (root, here):
        script = "mkfifo fifo && (seq 20000 > fifo &) && sort -n < fifo | tail -1 && mkfifo other && (cat other > copy &) && cat /bin/ls > other && sleep 0 && wait"
        result = subprocess.run(["bash", "-c", script], cwd=here, env=environment(), capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (0, "20000\n"), result.stderr
        assert stat.S_ISFIFO((root / "fifo").stat().st_mode) and (root / "fifo").stat().st_size == 0


def test_a_socket_connects_programs_of_the_mount(tmp_path, monkeypatch):
    with mounts(tmp_path) as (root, here):
        monkeypatch.chdir(here)
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind("socket")
            listener.listen()
            client.connect("socket")
            accepted, _ = listener.accept()
            with accepted:
                client.sendall(b"through")
                assert accepted.recv(100) == b"through"
            assert call(socket.socket(socket.AF_UNIX).bind, "socket") == "EADDRINUSE"
        assert stat.S_ISSOCK((root / "socket").stat().st_mode)
        monkeypatch.chdir(tmp_path)


def test_devices_are_not_made(tmp_path):
    with mounts(tmp_path) as (root, here):
        for mode, device in ((stat.S_IFCHR, os.makedev(1, 3)), (stat.S_IFBLK, os.makedev(7, 0)), (stat.S_IFCHR, 0)):
            assert call(os.mknod, here / "device", mode | 0o600, device) == "EPERM"
        assert os.listdir(root) == []


def test_a_mount_for_reading_only_makes_no_nodes(tmp_path):
    with mounts(tmp_path, serve=["--read-only"]) as (_, here):
        assert call(os.mkfifo, here / "fifo") == "EROFS"
