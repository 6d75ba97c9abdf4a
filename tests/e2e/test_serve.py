# SPDX-License-Identifier: Apache-2.0
"""wherry serve. Its client is `wherry pipe`, and requests made here by hand, from the map in src/file/wire/layout/wire.hpp: a second
reading of it."""

import contextlib
import os
import queue
import signal
import struct
import subprocess
import threading
import time
import uuid

import pytest
from program import PROGRAM, environment, wherry
from waiting import WATCHDOG

OPEN, CLOSE, READ, WRITE, APPEND, STATUS = range(1, 7)
MAKE_DIRECTORY, REMOVE, RENAME, LINK, SYMLINK, READ_LINK = range(15, 21)
OPEN_LOCKS, SET_LOCK, GET_LOCK = range(29, 32)
VERSION = 11
READS, WRITES, CREATES = 1, 2, 8
UNLOCKED, READ_LOCK, WRITE_LOCK = range(3)
EXDEV, EROFS, ENOENT, EAGAIN, EBADF = 18, 30, 2, 11, 9


class Server:
    """`wherry serve` of a directory; as a context manager it is told to end, and its exit status must be 0."""

    def __init__(self, root, *options):
        self.env = environment(WHERRY_JOB=f"test-{uuid.uuid4().hex[:12]}")
        self.process = subprocess.Popen([PROGRAM, "serve", "--root", root, "--listen", "wherry://*:*", *options], env=self.env,
                                        stderr=subprocess.PIPE, text=True)
        self.said = self.process.stderr.readline()
        self.address = self.said.rsplit(" on ", 1)[-1].strip()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, self.errors = self.process.communicate(timeout=WATCHDOG)
        if error[0] is None:
            assert self.process.returncode == 0, self.errors


class Client:
    """Speaks the protocol through `wherry pipe`."""

    def __init__(self, server):
        self.pipe = subprocess.Popen([PROGRAM, "pipe", "--duplex", server.address], env=server.env, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.bytes = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.rest = b""
        self.send(struct.pack("<IIII16sQ24x", VERSION, 0x454C4946, 0, 0, b"", 0))
        self.version, self.magic, self.read_only, self.lends, self.boot, self.root = struct.unpack("<IIII16sQ24x", self.take(64))

    def _read(self):
        while more := self.pipe.stdout.read1(65536):
            self.bytes.put(more)
        self.bytes.put(b"")

    def send(self, data):
        self.pipe.stdin.write(data)
        self.pipe.stdin.flush()

    def take(self, count):
        while len(self.rest) < count:
            more = self.bytes.get(timeout=WATCHDOG)
            assert more, "the server ended the connection"
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def ask(self, call, name=b"", second=b"", *, handle=0, offset=0, length=0, flags=0, mode=0, data=b""):
        """(error, value, all payloads together)"""
        self.send(struct.pack("<IIQQQIIIII12x", call, 7, handle, offset, length, flags, mode, len(name), len(second), 0)
                  + name + second + data)
        payload, last = b"", 0
        while not last:
            identity, last, error, count, value, self.position = struct.unpack("<IIIIQQ", self.take(32))
            assert identity == 7
            payload += self.take(count)
        return error, value, payload

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pipe.kill()
        self.pipe.communicate()


def test_files_are_served_and_the_requests_made_here_are_understood(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "there").write_bytes(b"there already")
    with Server(root, "--threads", "2") as server:
        assert server.said == f"wherry serve: serving {root} on {server.address}\n"
        with Client(server) as client:
            assert (client.version, client.magic, client.read_only) == (VERSION, 0x454C4946, 0)
            assert client.boot.hex() == open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", "")
            error, handle, status = client.ask(OPEN, b"there", flags=READS)
            assert (error, len(status)) == (0, 128) and struct.unpack_from("<QQQ", status)[1:] == (os.stat(root / "there").st_ino, 13)
            assert client.ask(READ, handle=handle, offset=6, length=100) == (0, 0, b"already")
            assert client.ask(CLOSE, handle=handle) == (0, 0, b"")
            error, handle, _ = client.ask(OPEN, b"new", flags=READS | WRITES | CREATES, mode=0o640)
            data = os.urandom(300_000)
            assert client.ask(WRITE, handle=handle, length=len(data), data=data) == (0, len(data), b"")
            assert client.ask(READ, handle=handle, length=1 << 20) == (0, 0, data)
            assert client.ask(MAKE_DIRECTORY, b"d", mode=0o750)[0] == 0
            assert client.ask(RENAME, b"new", b"d/moved")[0] == 0
    assert (root / "d/moved").read_bytes() == data
    # The mode is the client's, whatever the server's umask.
    assert (os.stat(root / "d/moved").st_mode & 0o777, os.stat(root / "d").st_mode & 0o777) == (0o640, 0o750)


def test_descriptors_are_lent_unless_the_server_was_told_not_to(tmp_path):
    (tmp_path / "file").write_text("content")
    for options, lends in ((), 1), (("--no-lend",), 0):
        with Server(tmp_path, *options) as server, Client(server) as client:
            assert client.lends == lends
            error, handle, _ = client.ask(OPEN, b"file", flags=READS)
            assert error == 0 and (client.position != 0) == lends
            if lends:
                assert os.readlink(f"/proc/{server.process.pid}/fd/{client.position - 1}") == str(tmp_path / "file")


def test_locks_exclude_the_other_client_until_their_owner_is_closed(tmp_path):
    (tmp_path / "file").write_text("content")
    with Server(tmp_path) as server, Client(server) as holder, Client(server) as other:
        files = [client.ask(OPEN, b"file", flags=READS | WRITES)[1] for client in (holder, other)]
        owners = [client.ask(OPEN_LOCKS, handle=file)[1] for client, file in zip((holder, other), files)]
        assert holder.ask(SET_LOCK, handle=owners[0], offset=10, length=5, mode=WRITE_LOCK)[0] == 0
        assert other.ask(SET_LOCK, handle=owners[1], offset=14, mode=READ_LOCK)[0] == EAGAIN
        error, _, found = other.ask(GET_LOCK, handle=files[1], mode=READ_LOCK)
        assert (error, struct.unpack("<QQII", found)) == (0, (10, 5, WRITE_LOCK, 0))
        assert holder.ask(SET_LOCK, handle=files[0], mode=WRITE_LOCK)[0] == EBADF
        assert holder.ask(CLOSE, handle=owners[0])[0] == 0
        error, _, found = other.ask(GET_LOCK, handle=files[1], mode=READ_LOCK)
        assert (error, struct.unpack("<QQII", found)[2]) == (0, UNLOCKED)
        assert other.ask(SET_LOCK, handle=owners[1], mode=WRITE_LOCK)[0] == 0


def test_no_name_leads_out_of_the_directory(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    os.symlink("../secret", root / "link")
    os.symlink(tmp_path, root / "out")
    with Server(root) as server, Client(server) as client:
        for name in (b"../secret", b"/etc/passwd", str(tmp_path / "secret").encode(), b"link", b"out/secret", b"root/../../secret", b"out/new"):
            assert client.ask(OPEN, name, flags=READS)[0] in (EXDEV, ENOENT), name
            assert client.ask(OPEN, name, flags=READS | WRITES | CREATES, mode=0o644)[0] != 0, name
            assert client.ask(STATUS, name)[0] != 0, name
            if name != b"link":
                assert client.ask(REMOVE, name)[0] != 0, name
                assert client.ask(RENAME, name, b"stolen")[0] != 0, name
                assert client.ask(LINK, name, b"stolen")[0] != 0, name
        assert client.ask(READ_LINK, b"link") == (0, 0, b"../secret")
    assert sorted(os.listdir(tmp_path)) == ["root", "secret"] and (tmp_path / "secret").read_text() == "secret"
    assert sorted(os.listdir(root)) == ["link", "out"]


def test_served_for_reading_only_nothing_changes(tmp_path):
    (tmp_path / "file").write_text("content")
    with Server(tmp_path, "--read-only") as server, Client(server) as client:
        assert server.said.endswith(f"{tmp_path}, for reading only, on {server.address}\n")
        assert client.read_only == 1
        assert client.ask(OPEN, b"file", flags=READS | WRITES)[0] == EROFS
        assert client.ask(REMOVE, b"file")[0] == EROFS
        _, handle, _ = client.ask(OPEN, b"file", flags=READS)
        assert client.ask(READ, handle=handle, length=100) == (0, 0, b"content")
    assert os.listdir(tmp_path) == ["file"]


def test_a_server_that_ends_is_over_for_its_clients(tmp_path):
    with Server(tmp_path) as server, Client(server) as client:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=WATCHDOG) == 0
        assert client.bytes.get(timeout=WATCHDOG) == b""


def test_an_idle_server_uses_no_cpu(tmp_path):
    with Server(tmp_path) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(3)]
        assert all(client.ask(STATUS, b".")[0] == 0 for client in clients)

        def used():
            fields = open(f"/proc/{server.process.pid}/stat").read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = used()
        time.sleep(1)  # that is what is measured
        assert used() - before <= 20  # of 100 ticks


@pytest.mark.parametrize("arguments, problem", [
    (("--root", "{tmp}/nowhere"), "serve {tmp}/nowhere: No such file or directory (ENOENT); name a directory that this user may enter"),
    (("--root", "{tmp}/file"), "serve {tmp}/file: Not a directory (ENOTDIR); name a directory that this user may enter"),
    (("--root", "{tmp}", "--listen", "somewhere"), "somewhere"),
])
def test_what_cannot_be_served_is_said(tmp_path, arguments, problem):
    (tmp_path / "file").write_text("x")
    result = wherry("serve", *(a.format(tmp=tmp_path) for a in arguments))
    assert result.returncode == 1 and result.stderr.startswith("wherry serve: ")
    assert problem.format(tmp=tmp_path).split(" (")[0] in result.stderr, result.stderr


def test_a_wrong_command_line_is_status_2(tmp_path):
    assert wherry("serve").returncode == 2
    assert wherry("serve", "--root", tmp_path, "--threads", "0").returncode == 2
