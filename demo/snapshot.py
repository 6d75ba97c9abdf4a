# SPDX-License-Identifier: Apache-2.0
"""What is handed over: a private copy of a tree, which stays as it is while the tree itself goes on changing."""

import errno
import heapq
import os
import stat
from pathlib import Path

from ending import Problem, printable
from listing import GONE, NO_ROOM, Entry, Listing, reason
from room import Place, cost

CHUNK = 1 << 20
LARGEST_CLAIMING_NOTHING = 64 << 20  # bytes taken from a file that has content but says that its size is 0


class Snapshot:
    """Each file is read once, at the length it has when it is opened. Holes are filled: each byte is handed over."""

    def __init__(self, base: Path, place: Place):
        self.base = base
        self.files = 0
        self.bytes = 0
        self._entries: list[tuple[str, int]] = []
        self._place = place
        self._room = place.room
        self._make_folder("")

    def add_tree(self, listing: Listing, name: str) -> None:
        """Copies what is listed below `name` until the place is full; the listing counts what is left out."""
        self._make_folder(name)
        for index, entry in enumerate(listing.entries):
            if not self._holds(entry.size):
                # One giant does not keep the others out; what has filled the room does.
                if entry.kind == stat.S_IFREG and cost(entry.size) > self._place.room // 4 and self._holds(0):
                    listing.left_out[NO_ROOM] += 1
                    continue
                listing.left_out[NO_ROOM] += sum(rest.kind == stat.S_IFREG for rest in listing.entries[index:])
                break
            try:
                self._add(listing.root / entry.path, os.path.join(name, entry.path), entry)
            except OSError as error:
                listing.left_out[reason(error)] += 1

    def add_generated(self, name: str, count: int, size: int) -> None:
        self._make_folder(name)
        for index in range(count):
            if not self._holds(size):
                break
            path = os.path.join(name, f"{index}.dat")
            self._write_file(path, [os.urandom(size)])

    def shares(self, count: int) -> list[list[str]]:
        """Deals the entries out, the largest first and each to the share that is smallest, so that all finish together."""
        loads = [(0, index) for index in range(count)]
        shares: list[list[str]] = [[] for _ in range(count)]
        for path, size in sorted(self._entries, key=lambda entry: -entry[1]):
            load, index = heapq.heappop(loads)
            shares[index].append(path)
            # An entry costs something even when it is empty.
            heapq.heappush(loads, (load + size + 20_000, index))
        return shares

    def _holds(self, size: int) -> bool:
        return cost(size) <= self._room and len(self._entries) < self._place.entries

    def _add(self, source: Path, path: str, entry: Entry) -> None:
        """OSError: it cannot be read. What cannot be written is a Problem."""
        if entry.kind == stat.S_IFDIR:
            self._make_folder(path)
        elif entry.kind == stat.S_IFLNK:
            self._make_link(path, os.readlink(source))
        else:
            # Not to wait for a pipe's writer, nor to follow a link, that has taken the file's place.
            opened = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.ESTALE, GONE)
                self._write_file(path, read_at_most(opened, min(status.st_size or LARGEST_CLAIMING_NOTHING, self._room)))
            finally:
                os.close(opened)

    def _make_folder(self, path: str) -> None:
        self._store(os.mkdir, self.base / path, 0o700)
        if path:
            self._count(path, 0)

    def _make_link(self, path: str, content: str) -> None:
        self._store(os.symlink, content, self.base / path)
        self._count(path, 0)

    def _write_file(self, path: str, chunks) -> None:
        file = self._store(os.open, self.base / path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        size = 0
        try:
            for chunk in chunks:
                size += len(chunk)
                while chunk:
                    chunk = chunk[self._store(os.write, file, chunk) :]
        except OSError:
            self._store(os.unlink, self.base / path)
            raise
        finally:
            os.close(file)
        self._count(path, size)
        self.files += 1
        self.bytes += size

    def _store(self, call, *arguments):
        try:
            return call(*arguments)
        except OSError as error:
            raise Problem(f"cannot copy the tree to {printable(self._place.folder)}: {error.strerror};"
                          " make room there, or name another folder with --work") from error

    def _count(self, path: str, size: int) -> None:
        self._entries.append((path, size))
        self._room -= cost(size)


def read_at_most(opened: int, limit: int):
    while limit > 0 and (chunk := os.read(opened, min(CHUNK, limit))):
        limit -= len(chunk)
        yield chunk
