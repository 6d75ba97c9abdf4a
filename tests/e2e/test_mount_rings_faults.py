# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` that give small writes to the mount's daemon through memory: kills, ends and full disks."""

import time

import pytest
import seccomp
from keeping import NO_LEND, fill_up, stopped
from mounting import mounted
from ring_programs import by_ring, card, end, here, namespace, run, server, start  # noqa: F401
from serving import NO_PASSTHROUGH, Mount, Server
from waiting import wait_until


KILLED = r"""
import mmap, struct
content = begin(sys.argv[1])
with open(sys.argv[2], "r+b") as count:
    shared = mmap.mmap(count.fileno(), 8)
say(len(content))
number = 0
while True:
    assert os.write(file, struct.pack("<Q", number) * 8) == 64
    number += 1
    shared[:] = struct.pack("<Q", number)
"""


def check_numbers(content, begin, written):
    content = content[begin:]
    assert len(content) % 64 == 0 and len(content) // 64 in (written, written + 1)
    for number in range(len(content) // 64):
        assert content[number * 64:number * 64 + 64] == number.to_bytes(8, "little") * 8


@pytest.mark.parametrize("how", ["write", "append", "both"])
@pytest.mark.parametrize("least", [0, 1, 1000, 30_000])
def test_a_killed_program_loses_no_write_that_has_returned(server, here, tmp_path, least, how):
    count = tmp_path / "count"
    count.write_bytes(bytes(8))
    program = start(server, here, KILLED, here / "file", count, how)
    begin = int(program.stdout.readline())
    program.stdin.write("go\n")
    program.stdin.flush()
    wait_until(lambda: int.from_bytes(count.read_bytes(), "little") >= least, "writes")
    program.kill()
    program.communicate()
    written = int.from_bytes(count.read_bytes(), "little")
    check_numbers((here / "file").read_bytes(), begin, written)
    check_numbers((tmp_path / "root/file").read_bytes(), begin, written)


@pytest.mark.parametrize("how", ["write", "append", "both"])
def test_a_killed_daemon_loses_no_write_that_has_returned(server, card, tmp_path, how):
    program = start(server, card.directory, r"""
import struct
content = len(begin(sys.argv[1]))
say(content)
number, rings = 0, 0
while number < 400_000:
    assert os.write(file, struct.pack("<Q", number) * 8) == 64
    number += 1
    if number % 1000 == 0:
        print(number, flush=True)
os.fsync(file)
os.close(file)
""", card.directory / "file", how)
    begin = int(program.stdout.readline())
    program.stdin.write("go\n")
    program.stdin.flush()
    for _ in range(6):
        for _ in range(20):
            program.stdout.readline()
        card.kill_daemon()
    _, report = end(program)
    assert by_ring(report) > 10_000, report.said
    check_numbers((tmp_path / "root/file").read_bytes(), begin, 400_000)


@pytest.mark.parametrize("how", ["mount", "server"])
def test_the_end_of_the_mount_or_the_server_in_the_middle(server, tmp_path, how):
    card = Mount(server, tmp_path / "mount")
    assert "is mounted on" in card.said
    program = start(server, card.directory, r"""
content = begin(sys.argv[1])
content += b"last" * 100
assert os.write(file, content[-400:]) == 400
say(len(content))
try:
    while True:
        os.write(file, b"more" * 100)
        os.fsync(file)
        content += b"more" * 100
        if sys.argv[2] == "server":
            break
except OSError as error:
    pass
sys.stdout.buffer.write(content)
""", card.directory / "file", how)
    program.stdout.readline()
    if how == "mount":
        card.end()
    else:
        server.kill()
        server.start()
    output, _ = end(program)
    content = (tmp_path / "root/file").read_bytes()
    assert content[:len(output)] == output.encode() and len(content) - len(output) in (0, 400)
    if how == "server":
        card.end()


# Writes until a write, fsync or close returns an error, and prints it. So much that some request to the server begins
# behind the first MiB.
WRITE_UNTIL_TOLD = r"""
begin(sys.argv[1])
say()
try:
    for _ in range(4000):
        assert os.write(file, b"x" * 1000) == 1000
        if sys.argv[2] == "write":
            os.stat(sys.argv[1])
    if sys.argv[2] == "fsync":
        os.fsync(file)
    if sys.argv[2] == "close":
        os.close(file)
    print("no error")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("told_by", ["write", "fsync", "close"])
def test_a_full_disk_is_told_of(tmp_path, told_by):
    with mounted("-t", "tmpfs", "-o", "size=64M", "small", tmp_path / "root") as root:
        with Server(root, NO_PASSTHROUGH, NO_LEND) as server, Mount(server, tmp_path / "mount") as here:
            output, _ = run(server, here, WRITE_UNTIL_TOLD, here / "file", told_by, meanwhile=lambda: fill_up(root))
    assert output.splitlines() == ["ready", "ENOSPC"]


@pytest.mark.parametrize("told_by", ["write", "fsync", "close"])
def test_a_disk_that_fails_is_told_of(tmp_path, told_by):
    (tmp_path / "root").mkdir()
    with (Server(tmp_path / "root", NO_PASSTHROUGH, NO_LEND, preexec_fn=lambda: seccomp.fail_writes_from(1 << 20)) as server,
          Mount(server, tmp_path / "mount") as here):
        output, report = run(server, here, WRITE_UNTIL_TOLD, here / "file", told_by, meanwhile=lambda: None)
    assert output.splitlines() == ["ready", "EIO"]
    assert by_ring(report) > 500, report.said


def test_a_disk_that_the_program_fills_is_told_of_by_the_write_itself(tmp_path):
    with mounted("-t", "tmpfs", "-o", "size=24M", "small", tmp_path / "root") as root:
        with Server(root, NO_PASSTHROUGH, NO_LEND) as server, Mount(server, tmp_path / "mount") as here:
            output, report = run(server, here, r"""
written = len(begin(sys.argv[1]))
try:
    while True:
        written += os.write(file, b"x" * 4000)
except OSError as error:
    print(errno.errorcode[error.errno])
os.fsync(file)
assert os.fstat(file).st_size == written
os.close(file)
""", here / "file")
    assert output.splitlines() == ["ENOSPC"]
    assert by_ring(report) > 1000, report.said


def test_a_program_that_is_faster_than_the_server_waits_for_room(server, here, tmp_path):
    program = start(server, here, r"""
content = begin(sys.argv[1])
say(len(content))
for _ in range(10_000):
    assert os.write(file, b"y" * 4096) == 4096
""", here / "file")
    size = int(program.stdout.readline())
    with stopped(server.process):
        program.stdin.write("go\n")
        program.stdin.flush()
        python = wait_until(lambda: _blocked(program.pid), "a program that waits")
        assert python == IOCTL  # and not in a write, or in the calls that end a ring
    _, report = end(program)
    assert by_ring(report) > 9000, report.said
    assert (tmp_path / "root/file").stat().st_size == size + 10_000 * 4096


IOCTL = 16


def _blocked(process):
    """The number of the system call that a process has been in for a while; None: of none."""
    def call():
        with open(f"/proc/{process}/syscall") as file:
            return file.read().split()[0]
    before = call()
    time.sleep(0.2)
    return int(before) if before == call() and before.isdecimal() else None
