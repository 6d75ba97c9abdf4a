# SPDX-License-Identifier: Apache-2.0
"""Programs that work on a mount whose daemon is killed meanwhile: `restart_game.py ROLE FOLDER SECONDS`.

Each one ends with an error at the first call that fails, or whose result is not what a local file system gives.
"""

import fcntl
import mmap
import os
import random
import sys
import time
from pathlib import Path

LINE = b"%08d%s\n"


def names(folder, rounds):
    """Makes, renames, links and removes. Each call must be done once."""
    for i in rounds:
        new, moved = folder / f"new-{i}", folder / f"moved-{i}"
        file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o640)
        assert os.write(file, b"text") == 4
        os.mkdir(folder / f"folder-{i}")
        os.rename(new, folder / f"folder-{i}" / "in")
        os.rename(folder / f"folder-{i}", moved)
        assert os.pread(file, 9, 0) == b"text"
        os.ftruncate(file, 2)
        os.link(moved / "in", moved / "linked")
        os.symlink("in", moved / "symbolic")
        assert os.readlink(moved / "symbolic") == "in"
        assert os.stat(moved / "in").st_nlink == 2 and os.fstat(file).st_size == 2
        assert sorted(os.listdir(moved)) == ["in", "linked", "symbolic"]
        os.chmod(moved / "in", 0o600)
        os.close(file)
        for name in ("in", "symbolic", "linked"):
            os.unlink(moved / name)
        os.mkfifo(moved / "fifo")
        os.unlink(moved / "fifo")
        os.rmdir(moved)
        assert os.listdir(folder) == []


def data(folder, rounds):
    """Reads what it wrote."""
    size = 300_000
    there = bytearray(size)
    file = os.open(folder / "data", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, size)
    chance = random.Random(1)
    for i in rounds:
        offset, length = chance.randrange(size), chance.randrange(1, 70_000)
        new = chance.randbytes(min(length, size - offset))
        assert os.pwrite(file, new, offset) == len(new)
        there[offset:offset + len(new)] = new
        if i % 10 == 0:
            os.fsync(file)
        offset = chance.randrange(size)
        assert os.pread(file, length, offset) == there[offset:offset + length]
    assert (folder / "data").read_bytes() == there


def append(folder, rounds):
    """Each line is there once, in order."""
    tag = folder.name.encode() * 20
    file = os.open(folder.parent / "appended", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    done = 0
    for i in rounds:
        line = LINE % (i, tag)
        assert os.write(file, line) == len(line)
        done = i + 1
    lines = [line for line in (folder.parent / "appended").read_bytes().splitlines() if line.endswith(tag)]
    assert [int(line[:8]) for line in lines] == list(range(done)), f"{len(lines)} lines, {done} were written"


def mapped(folder, rounds):
    size = 64 << 10
    with open(folder / "mapped", "w+b") as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as memory:
            for i in rounds:
                offset = i * 4099 % (size - 8)
                memory[offset:offset + 8] = i.to_bytes(8, "little")
                if i % 5 == 0:
                    memory.flush()
                    assert os.pread(file.fileno(), 8, offset) == i.to_bytes(8, "little")


def lists(folder, rounds):
    wanted = {f"name-{i}" for i in range(300)}
    for name in wanted:
        (folder / name).touch()
    for _ in rounds:
        with os.scandir(folder) as listing:
            found = [(entry.name, entry.stat().st_size) for entry in listing]
        assert len(found) == len(wanted) and {name for name, _ in found} == wanted


def nameless(folder, rounds):
    """A file that is used after its name was removed, or is another file's."""
    for i in rounds:
        files = [os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_RDWR) for name in ("removed", "replaced", "other")]
        os.unlink(folder / "removed")
        os.rename(folder / "other", folder / "replaced")
        for place, file in enumerate(files[:2]):
            text = f"{i} {place}".encode()
            assert os.pwrite(file, text, 0) == len(text)
            os.ftruncate(file, 100)
            assert os.pread(file, 200, 0) == text.ljust(100, b"\0")
            assert os.fstat(file).st_nlink == 0
        for file in files:
            os.close(file)
        os.unlink(folder / "replaced")


def counts(folder, rounds, lock):
    """Several add to one number, each while it has the lock."""
    file = os.open(folder.parent / lock.__name__, os.O_CREAT | os.O_RDWR)
    done = 0
    for _ in rounds:
        lock(file, fcntl.LOCK_EX)
        number = int(os.pread(file, 20, 0) or b"0")
        assert os.pwrite(file, b"%020d" % (number + 1), 0) == 20
        lock(file, fcntl.LOCK_UN)
        done += 1
    print("counted", done)


def reads(folder, rounds):
    """Reads the pages of a long file, which the kernel drops whenever somebody gets a lock."""
    file = os.open(folder.parent / "long", os.O_RDWR)
    step = 1 << 18
    for i in rounds:
        fcntl.lockf(file, fcntl.LOCK_SH, 1, i % 2)
        for offset in range(0, os.fstat(file).st_size, step):
            assert len(os.pread(file, step, offset)) == step
        fcntl.lockf(file, fcntl.LOCK_UN, 1, i % 2)


def by_range(folder, rounds):
    counts(folder, rounds, fcntl.lockf)


def by_flock(folder, rounds):
    counts(folder, rounds, fcntl.flock)


def rounds_for(seconds):
    end = time.monotonic() + seconds
    i = 0
    while time.monotonic() < end:
        yield i
        i += 1
    print(i, "rounds")


if __name__ == "__main__":
    own = Path(sys.argv[2])
    own.mkdir()
    globals()[sys.argv[1]](own, rounds_for(float(sys.argv[3])))
