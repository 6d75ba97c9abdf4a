# SPDX-License-Identifier: Apache-2.0
"""Transfers past a mount, and what happens to processes: forks, kills, stops, restarts."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from host_path import Report, here, namespace, server, start, run  # noqa: F401
from keeping import stopped
from serving import Mount
from waiting import WATCHDOG, wait_until

MIB = 1 << 20


def test_parent_and_child_each_go_on(server, here, tmp_path):
    data = os.urandom(MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = """
file = os.open("file", os.O_RDONLY)
expected = os.pread(file, 1 << 20, 0)
for _ in range(5):
    child = os.fork()
    for _ in range(20):
        assert os.pread(file, 1 << 20, 0) == expected
        written = os.open(f"of{os.getpid()}", os.O_WRONLY | os.O_CREAT)
        assert os.pwrite(written, expected, 0) == 1 << 20
        os.close(written)
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
assert os.lseek(file, 0, os.SEEK_CUR) == 0
"""
    program = start(server, here, "import os, sys\n" + code)
    _, errors = program.communicate(timeout=WATCHDOG)
    assert program.returncode == 0, errors
    reports = {int(line.split()[3].rstrip(";")): Report(line) for line in errors.splitlines() if line.startswith("wherry files: process")}
    # Each counts its own, so that the lines can be added up.
    reads = {pid: report.calls("reads from the host") + report.calls("reads by the kernel") for pid, report in reports.items()}
    writes = {pid: report.calls("writes to the host") + report.calls("writes by the kernel") for pid, report in reports.items()}
    parent = reads.pop(program.pid), writes.pop(program.pid)
    assert parent == (101, 100) and list(reads.values()) == list(writes.values()) == [20] * 5, errors
    copies = list((tmp_path / "root").glob("of*"))
    assert len(copies) == 6 and all(copy.read_bytes() == data for copy in copies)


@pytest.mark.parametrize("closing", ["os.closerange(3, 2000)", "[os.close(int(n)) for n in os.listdir('/proc/self/fd') if n > '2' and os.path.exists('/proc/self/fd/' + n)]",
                                     "[os.dup2(0, int(n)) for n in os.listdir('/proc/self/fd') if n > '2']"])
def test_a_program_that_closes_all_numbers_goes_on(server, here, tmp_path, closing):
    data = os.urandom(MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = f"""
expected = os.pread(os.open("file", os.O_RDONLY), 1 << 20, 0)
{closing}
files = [os.open(f"new{{i}}", os.O_RDWR | os.O_CREAT) for i in range(40)]
for _ in range(3):
    file = os.open("file", os.O_RDONLY)
    assert os.pread(file, 1 << 20, 0) == expected
    assert all(os.fstat(one).st_size == 0 for one in files)
    os.close(file)
"""
    run(server, here, code)


def test_numbers_of_standard_streams_stay_free(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    code = """
file = os.open("file", os.O_RDONLY)
os.close(0)
os.close(1)
os.pread(file, 1 << 20, 0)
assert [os.open("/dev/null", os.O_RDONLY) for _ in range(2)] == [0, 1]
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") == 1, report.said


def test_calls_go_on_when_the_server_was_killed_and_started_again(server, here, tmp_path):
    data = os.urandom(MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = """
file = os.open("file", os.O_RDONLY)
copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
expected = os.pread(file, 1 << 20, 0)
print("begun", flush=True)
count = 0
while not os.path.exists("end"):
    assert os.pread(file, 1 << 20, 0) == expected
    assert os.pwrite(copy, expected, 0) == 1 << 20
    count += 1
"""
    program = start(server, here, "import os, sys\n" + code)
    assert program.stdout.readline() == "begun\n"
    for _ in range(3):
        server.kill()
        server.start()
        before = os.stat(tmp_path / "root/copy").st_mtime_ns
        wait_until(lambda: os.stat(tmp_path / "root/copy").st_mtime_ns != before or program.poll() is not None, "a write after the restart")
    (tmp_path / "root/end").touch()
    _, errors = program.communicate(timeout=WATCHDOG)
    assert program.returncode == 0, errors
    assert (tmp_path / "root/copy").read_bytes() == data


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGSEGV))
def test_a_signal_ends_a_program_that_a_stopped_server_keeps_waiting(server, here, tmp_path, number):
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    code = """
file = os.open("file", os.O_RDONLY)
os.pread(file, 1 << 20, 0)
os.write(1, b"begun\\n")
while True:
    os.pread(file, 1 << 20, 0)
"""
    program = start(server, here, "import os, sys\n" + code)
    assert program.stdout.readline() == "begun\n"
    os.kill(server.process.pid, signal.SIGSTOP)

    def status(word):
        with open(f"/proc/{program.pid}/status") as lines:
            return re.search(rf"{word}:\s*(\S+)", lines.read())[1]

    # Signals are blocked during a transfer.
    wait_until(lambda: all(int(status("SigBlk"), 16) != 0 and status("State") == "S" for _ in range(20)), "a transfer that waits")
    program.send_signal(number)
    try:
        assert program.wait(timeout=WATCHDOG) == -number
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    program.communicate()


def test_when_the_mount_is_gone_calls_fail_as_the_kernels_do(server, tmp_path):
    mount = Mount(server, tmp_path / "mount")
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    code = """
import errno
file = os.open("file", os.O_RDONLY)
os.pread(file, 1 << 20, 0)
print("begun", flush=True)
sys.stdin.readline()
try:
    while True:
        os.pread(file, 1 << 20, 0)
except OSError as error:
    assert error.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO), error
"""
    program = start(server, tmp_path / "mount", "import os, sys\n" + code)
    assert program.stdout.readline() == "begun\n"
    mount.kill()
    _, errors = program.communicate("go\n", timeout=WATCHDOG)
    assert program.returncode == 0, errors
    subprocess.run(["umount", "--lazy", tmp_path / "mount"], check=False)


def test_what_a_killed_program_was_writing_does_not_come_later(server, here, tmp_path):
    code = """
file = os.open("file", os.O_WRONLY | os.O_CREAT)
data = b"a" * (64 << 20)
os.write(1, b"begun\\n")
while True:
    os.pwrite(file, data, 0)
"""
    there = tmp_path / "root/file"
    for _ in range(5):
        program = start(server, here, "import os, sys\n" + code)
        assert program.stdout.readline() == "begun\n"
        wait_until(lambda: there.stat().st_size > MIB, "a write that has begun")
        # The stopped server has some of the data. So the program is gone only once the server goes on: what it would write
        # after the program's end, it writes over the other data.
        with stopped(server.process):
            program.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.3)
                there.write_bytes(b"b" * MIB)
        if program.returncode is None:
            program.wait(WATCHDOG)
            there.write_bytes(b"b" * MIB)
        program.communicate(timeout=WATCHDOG)
        # A later call is answered after whatever the server still does.
        assert (here / "file").stat().st_size == MIB
        assert there.read_bytes() == b"b" * MIB


def test_a_program_that_does_not_reach_the_server_goes_on(server, here, tmp_path):
    data = os.urandom(MIB)
    (tmp_path / "root/file").write_bytes(data)
    server.env["WHERRY_JOB"] += "-another"
    code = """
for i in range(100):
    file = os.open("file", os.O_RDONLY)
    copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
    os.pwrite(copy, os.pread(file, 1 << 20, 0), 0)
    os.close(file)
    os.close(copy)
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") == 0 and (tmp_path / "root/copy").read_bytes() == data
