# SPDX-License-Identifier: Apache-2.0
"""`wherry mount` of a server on another host: what a mount promises, and transfers past it, over the network."""

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from host_path import COUNTS_CHANGED_PAGES, LIBRARY, Report
from keeping import Program, write_until_kept
from locking import lockers
from serving import MOUNT_PROGRAM, Mount, Server, need_leases
from waiting import WATCHDOG, wait_until

MIB = 1 << 20

needs_host_path = pytest.mark.skipif(not (LIBRARY.exists() and COUNTS_CHANGED_PAGES), reason="all transfers are the kernel's here")


@pytest.fixture
def root(tmp_path):
    if not os.path.exists(MOUNT_PROGRAM):
        pytest.skip("wherry mount was not built: no libfuse3-dev")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def server(hosts, root):
    """On the near host. A connection that is silent for 1 s has ended."""
    hosts.timeout = {"WHERRY_HOST_TIMEOUT": "1000"}
    with Server(root, prefix=hosts.inside(hosts.near), env=hosts.environment(hosts.near, **hosts.timeout)) as server:
        yield server


@contextlib.contextmanager
def cards(hosts, server, count=1, options=()):
    """As many mounts on the far host, each a client of its own. Gives their directories as the tests see them."""
    with contextlib.ExitStack() as stack:
        found = []
        for number in range(count):
            card = Mount(server, hosts.folder / f"card{number}", *options, prefix=hosts.inside(hosts.far),
                         env=hosts.environment(hosts.far, **hosts.timeout))
            if "/dev/fuse" in card.said:
                pytest.skip(f"no FUSE in a user namespace here: {card.said}")
            found.append(Path(f"/proc/{hosts.far.pid}/root{stack.enter_context(card)}"))
        yield found


def start(hosts, code, *command, key="key"):
    """A program of the far host whose transfers go past the first card, in that card's directory."""
    mount = hosts.folder / "card0"
    words = ["run", "--files", mount, "--file-path", "host", "--", *command, sys.executable, "-c", f"import os\nos.chdir({str(mount)!r})\n{code}"]
    return hosts.start(hosts.far, *words, key=key, env={"WHERRY_FILES_REPORT": "1", **hosts.timeout}, stdout=subprocess.PIPE, text=True)


def finish(program):
    output, errors = program.communicate(timeout=WATCHDOG)
    assert program.returncode == 0, errors
    return output, errors


def cut(hosts):
    """Until no connection is left."""
    hosts.ip(hosts.near, "link set near0 down")
    wait_until(lambda: not hosts.established(hosts.far), "the end of all connections")


@needs_host_path
@pytest.mark.parametrize("command", [(), ("env", "-i")], ids=["with its environment", "without one"])
def test_large_transfers_go_past_the_mount_over_the_network(hosts, server, root, command):
    data = os.urandom(3 * MIB + 1000)
    (root / "file").write_bytes(data)
    code = """
data = os.pread(os.open("file", os.O_RDONLY), 4 << 20, 0)
file = os.open("copy", os.O_WRONLY | os.O_CREAT)
assert os.pwrite(file, data, 0) == len(data) == os.fstat(file).st_size
"""
    with cards(hosts, server):
        _, errors = finish(start(hosts, code, *command))
    report = Report(errors.splitlines()[-1])
    assert (report.calls("reads from the host"), report.calls("writes to the host")) == (1, 1), errors
    assert (root / "copy").read_bytes() == data


@needs_host_path
def test_a_program_that_the_server_refuses_transfers_through_the_mount(hosts, server, root):
    data = os.urandom(MIB)
    (root / "file").write_bytes(data)
    hosts.make_key("another")
    code = """
data = os.pread(os.open("file", os.O_RDONLY), 1 << 20, 0)
assert os.pwrite(os.open("copy", os.O_WRONLY | os.O_CREAT), data, 0) == len(data)
"""
    with cards(hosts, server):
        _, errors = finish(start(hosts, code, key="another"))
    report = Report(errors.splitlines()[-1])
    assert (report.calls("reads by the kernel"), report.calls("writes by the kernel")) == (1, 1), errors
    assert (root / "copy").read_bytes() == data


FORKS = """
parent = os.getpid()
children = [os.fork() for _ in range(2) if os.getpid() == parent]
for _ in range(3):
    assert os.pread(file, 1 << 20, 0) == expected
    assert os.pwrite(os.open(f"copy{os.getpid()}", os.O_WRONLY | os.O_CREAT), expected, 0) == 1 << 20
assert os.getpid() != parent or all(os.waitpid(child, 0)[1] == 0 for child in children)
"""
CLOSES = """
os.closerange(3, 2000)
file = os.open("file", os.O_RDONLY)
assert os.pread(file, 1 << 20, 0) == expected
"""


@needs_host_path
@pytest.mark.parametrize("code, copies", [(FORKS, 3), (CLOSES, 0)], ids=["forks", "closes all numbers"])
def test_a_program_goes_on_when_it(hosts, server, root, code, copies):
    data = os.urandom(MIB)
    (root / "file").write_bytes(data)
    begin = """
file = os.open("file", os.O_RDONLY)
expected = os.pread(file, 1 << 20, 0)
"""
    with cards(hosts, server):
        _, errors = finish(start(hosts, begin + code))
    # On a busy machine a transfer may not get its connection in time, and is then the kernel's.
    assert copies <= sum(Report(line).calls("writes to the host") for line in errors.splitlines()) <= 3 * copies, errors
    assert [path.read_bytes() for path in root.glob("copy*")] == [data] * copies


GOES_ON = """
file = os.open("file", os.O_RDONLY)
copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
expected = os.pread(file, 1 << 20, 0)
print("begun", flush=True)
while not os.path.exists("end"):
    assert os.pread(file, 1 << 20, 0) == expected
    assert os.pwrite(copy, expected, 0) == 1 << 20
"""


@needs_host_path
@pytest.mark.parametrize("gone", ["server", "link"])
def test_a_program_goes_on_when_the_server_or_the_link_is_there_again(hosts, server, root, gone):
    data = os.urandom(MIB)
    (root / "file").write_bytes(data)
    with cards(hosts, server):
        program = start(hosts, GOES_ON)
        assert program.stdout.readline() == "begun\n"
        wait_until((root / "copy").exists, "a write")
        if gone == "server":
            server.kill()
            server.start()
        else:
            cut(hosts)
            hosts.ip(hosts.near, "link set near0 up")
        before = os.stat(root / "copy").st_mtime_ns
        wait_until(lambda: os.stat(root / "copy").st_mtime_ns != before or program.poll() is not None, "a write after that")
        (root / "end").touch()
        finish(program)
    assert (root / "copy").read_bytes() == data


def test_calls_fail_while_the_link_is_cut_and_succeed_once_it_is_not(hosts, server, root):
    (root / "file").write_bytes(b"content")
    with cards(hosts, server, options=["--timeout", "1"]) as (here,), Program() as program:
        file = program.open(here / "file", os.O_RDONLY)
        cut(hosts)
        assert program.open(here / "other", os.O_RDONLY) == -errno.EIO
        hosts.ip(hosts.near, "link set near0 up")
        wait_until(lambda: program.open(here / "file", os.O_RDONLY) > 0, "the server")
        assert program.pread(file, 100, 0) == b"content"


def is_delegated(path):
    """Whether the server has the kernel's lease on a file, by which it delegates the file's pages to cards."""
    inode = f":{os.stat(path).st_ino} "
    return any(" LEASE " in line and " READ " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("kind", ["flock", "posix"])
def test_locks_of_two_cards_exclude_each_other(hosts, server, root, kind):
    (root / "file").write_bytes(b"content")
    with cards(hosts, server, 2) as (one, two), lockers(one / "file", two / "file") as (first, second):
        assert first.lock(kind, "file", "write") is None
        assert second.lock(kind, "file", "write") in ("EAGAIN", "EWOULDBLOCK")
        waiting = second.begin("lock", kind, "file", "write", 0, 0, True)
        second.wait_until_it_waits()
        assert first.lock(kind, "file", "none") is None
        assert waiting.result() is None
        assert first.lock(kind, "file", "read") in ("EAGAIN", "EWOULDBLOCK")


def test_a_card_reads_without_asking_until_the_other_one_writes(hosts, server, root):
    need_leases(root)
    (root / "file").write_bytes(b"0" * 8)
    with cards(hosts, server, 2) as (one, two), Program() as reader, Program() as writer:
        read = reader.open(one / "file", os.O_RDONLY)

        def is_delegated_after_a_read():
            assert reader.pread(read, 8, 0) == b"0" * 8
            return is_delegated(root / "file")
        wait_until(is_delegated_after_a_read, "a delegation")
        written = writer.open(two / "file", os.O_WRONLY)
        assert not is_delegated(root / "file")
        assert writer.pwrite(written, b"1" * 8, 0) == 8
        assert reader.pread(read, 8, 0) == b"1" * 8


def test_kept_writes_of_a_card_are_seen_by_the_other_one_and_outlive_the_server(hosts, server, root):
    need_leases(root)
    (root / "file").unlink()
    with cards(hosts, server, 2) as (one, two), Program() as writer, Program() as reader:
        file = writer.open(one / "file", os.O_RDWR | os.O_CREAT, 0o644)
        content = write_until_kept(file, root / "file", by=writer)
        assert reader.pread(reader.open(two / "file", os.O_RDONLY), MIB, 0) == content == (root / "file").read_bytes()
        other = writer.open(one / "other", os.O_RDWR | os.O_CREAT, 0o644)
        content = write_until_kept(other, root / "other", by=writer)
        server.kill()
        assert (root / "other").read_bytes() != content
        server.start()
        assert writer.fsync(other) is None
        assert (root / "other").read_bytes() == content
