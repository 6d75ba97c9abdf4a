# SPDX-License-Identifier: Apache-2.0
"""Where the demo's copies go, and how much of a tree fits there."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ending import Problem, complain, printable, uninterrupted

MEMORY = Path("/dev/shm")
USED = 0.75  # of what is free; the rest is left to the rings and to whatever else the machine does
COPIES = 2  # of the tree, at once: what is handed over, and what arrived
PAGE = 4096
ENTRY = 1024  # bytes that a file, folder or link costs beside its content
NO_LIMIT = 1 << 62
PREFIX = "wherry-demo-"
OLD = 60  # seconds; a younger folder may be about to be locked
MEMORY_IS_ENOUGH = 500_000_000  # bytes; memory that holds such a part of a tree is better than a disk that holds it all


def cost(size: int) -> int:
    return (size + PAGE - 1) // PAGE * PAGE + ENTRY


@dataclass
class Place:
    folder: Path
    room: int  # bytes, as cost() counts them, for one copy of a tree
    entries: int
    in_memory: bool

    def holds(self, needed: int, entries: int) -> bool:
        return needed <= self.room and entries <= self.entries


def choose(named: Path | None, needed: int, entries: int) -> Place:
    """The named folder; else memory if there is room, because a disk's moods would hide the difference; else the
    temporary folder. Memory that holds a fair part of the tree also goes before a disk."""
    if named is not None:
        return look_at(named)
    places = []
    for folder in (str(MEMORY), temporary_folder()):
        with contextlib.suppress(Problem):
            places.append(look_at(Path(folder)))
    if not places:
        raise Problem(f"neither {MEMORY} nor the temporary folder can be written; name a folder for the copies with --work")
    for place in places:
        if place.in_memory and (place.holds(needed, entries) or place.room >= MEMORY_IS_ENOUGH):
            return place
    return max(places, key=lambda place: place.room)


def temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        return "/tmp"


def look_at(folder: Path) -> Place:
    try:
        if not os.access(folder, os.W_OK | os.X_OK):
            os.stat(folder)
            raise Problem(f"cannot write to {printable(folder)}; name another folder with --work")
        status = os.statvfs(folder)
        in_memory = file_system_type(os.stat(folder).st_dev) in ("tmpfs", "ramfs")
    except OSError as error:
        raise Problem(f"cannot use {printable(folder)}: {error.strerror}; name another folder with --work") from error
    free = status.f_bavail * status.f_frsize
    if in_memory:
        free = min(free, free_memory())
    entries = int(status.f_favail * USED) // COPIES if status.f_files else NO_LIMIT
    return Place(folder, int(free * USED) // COPIES, entries, in_memory)


def file_system_type(device: int) -> str:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", errors="replace") as mounts:
        for line in mounts:
            mount, _, kind = line.partition(" - ")
            if mount.split()[2] == wanted:
                return kind.split()[0]
    return ""


def free_memory() -> int:
    """A file system in memory may promise more than there is: /dev/shm is as large as its mount says."""
    free = NO_LIMIT
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                group = Path("/sys/fs/cgroup") / line[4:]
                free = min([free, *(left_by(each) for each in [group, *group.parents])])
    return free


def left_by(group: Path) -> int:
    """What a control group's limit leaves, page cache that it can drop included."""
    try:
        left = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, left + int(counts.get("inactive_file", 0)))
    except (OSError, ValueError):  # No group with a limit; "max" is none either.
        return NO_LIMIT


@contextlib.contextmanager
def work_folder(parent: Path):
    """A private folder that is gone in the end, however it ends; what a killed demo left is removed by the next one."""
    folder = lock = None
    try:
        remove_abandoned(parent)
        with uninterrupted():
            try:
                folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent)).resolve()
            except OSError as error:
                raise Problem(f"cannot make a folder in {printable(parent)}: {error.strerror}; name another with --work") from error
            with contextlib.suppress(OSError):  # A file system without locks: no other demo removes it either.
                lock = lock_folder(folder)
        yield folder
    finally:
        if folder is not None:
            with uninterrupted():
                remove(folder)
                if lock is not None:
                    os.close(lock)


def lock_folder(folder: Path) -> int:
    """A descriptor whose lock ends with this process, however that ends. BlockingIOError: the folder is in use."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > OLD:
                lock = lock_folder(folder)
                remove(folder)
                os.close(lock)


def remove(folder: Path) -> None:
    # A tree may be deeper than shutil.rmtree can recurse. In a session of its own, rm is out of a terminal's reach.
    if subprocess.run(["rm", "-rf", "--", folder], stdin=subprocess.DEVNULL, start_new_session=True).returncode != 0:
        complain(f"could not remove {printable(folder)}")
