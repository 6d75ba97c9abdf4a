# SPDX-License-Identifier: Apache-2.0
"""What a tree holds, read while it changes, and what of it cannot be handed over."""

import collections
import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from ending import Problem, printable
from room import cost

LONGEST_PATH = 3900  # bytes below the tree: the folder of the copy comes before it, and Linux stops at 4096

# Why an entry is left out.
GONE = "gone or replaced meanwhile"
UNREADABLE = "not readable"
SPECIAL = "sockets, pipes or devices"
KERNEL = "file systems of the kernel"
TOO_LONG = "with a path that is too long"
NO_ROOM = "without room"


def reason(error: OSError) -> str:
    changed = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.ESTALE)
    return GONE if error.errno in changed else UNREADABLE


class Entry(NamedTuple):
    path: str  # relative to the tree
    kind: int  # stat.S_IFREG, S_IFLNK or S_IFDIR
    size: int


class Listing:
    """A folder stands before what is in it."""

    def __init__(self, root: Path):
        self.root = root
        self.entries: list[Entry] = []
        self.files = 0
        self.needed = 0  # bytes of room for a copy
        self.left_out: collections.Counter[str] = collections.Counter()

    def read(self) -> None:
        try:
            device = os.stat(self.root).st_dev
            os.listdir(self.root)
            if is_kernels_own(self.root):
                raise Problem(f"{printable(self.root)} is a file system of the kernel, without files of its own; name another folder")
        except OSError as error:
            raise Problem(f"cannot read {printable(self.root)}: {error.strerror}; name a folder with files in it") from error
        folders = [("", device)]
        while folders:
            path, device = folders.pop()
            folders += reversed(self._read_folder(path, device))

    def describe_left_out(self) -> str:
        """What no other place would take either."""
        return ", ".join(f"{count} {why}" for why, count in self.left_out.items() if why != NO_ROOM)

    def _read_folder(self, path: str, device: int) -> list[tuple[str, int]]:
        """Returns the folders in it, and their devices."""
        try:
            # A folder that changes while it is read may show a name twice.
            names = sorted(set(os.listdir(self.root / path)))
        except OSError as error:
            self.left_out[reason(error)] += 1
            return []
        if path:
            self._add(path, stat.S_IFDIR, 0)
        folders = []
        for name in names:
            inner = os.path.join(path, name)
            try:
                status = os.lstat(self.root / inner)
                if stat.S_ISDIR(status.st_mode) and status.st_dev != device and is_kernels_own(self.root / inner):
                    self.left_out[KERNEL] += 1
                elif len(os.fsencode(inner)) > LONGEST_PATH:
                    self.left_out[TOO_LONG] += 1
                elif stat.S_ISDIR(status.st_mode):
                    folders.append((inner, status.st_dev))
                elif stat.S_ISREG(status.st_mode):
                    self._add(inner, stat.S_IFREG, status.st_size)
                elif stat.S_ISLNK(status.st_mode):
                    self._add(inner, stat.S_IFLNK, 0)
                else:
                    self.left_out[SPECIAL] += 1
            except OSError as error:
                self.left_out[reason(error)] += 1
        return folders

    def _add(self, path: str, kind: int, size: int) -> None:
        self.entries.append(Entry(path, kind, size))
        self.files += kind == stat.S_IFREG
        self.needed += cost(size)


def is_kernels_own(folder: Path) -> bool:
    """As /proc and /sys: what is read there may have no end, wait for ever, or be an order to the kernel."""
    return os.statvfs(folder).f_blocks == 0
