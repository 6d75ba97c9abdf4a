# SPDX-License-Identifier: Apache-2.0
"""Two cards and the host make calls on the same few files, one after the other. A model tells what each call must give."""

import contextlib
import errno
import os
import random

import pytest
from keeping import Program
from serving import SERVERS, enter_mount_namespace, mounts

STEPS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 600))
NAMES = "abcd"
MOST_OPEN = 12
LENGTHS = [1, 10, 100, 512, 4096, 5000, 20_000]


@pytest.fixture(scope="module", autouse=True)
def namespace():
    enter_mount_namespace()


class Players:
    """Programs on two cards and the host, and what each file contains."""

    def __init__(self, directories, chance):
        self.programs = [(Program(), directory) for directory in directories]
        self.chance = chance
        self.named = {}  # by name: a file's content
        self.open = []  # the program, its descriptor, the file's content, whether it appends

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        for program, _ in self.programs:
            self.stack.enter_context(program)
        return self

    def __exit__(self, *_):
        self.stack.close()

    def somebody(self):
        program, directory = self.chance.choice(self.programs)
        return program, directory, self.chance.choice(NAMES)

    def an_open_file(self):
        return self.chance.choice(self.open)

    def opens(self):
        program, directory, name = self.somebody()
        appends = self.chance.random() < 0.25
        cuts = self.chance.random() < 0.15
        flags = os.O_RDWR | os.O_CREAT | (os.O_APPEND if appends else 0) | (os.O_TRUNC if cuts else 0)
        file = program.open(directory / name, flags | self.chance.choice([0] * 9 + [os.O_SYNC]), 0o644)
        assert file >= 0
        content = self.named.setdefault(name, bytearray())
        if cuts:
            content.clear()
        self.open.append((program, file, content, appends))

    def closes(self):
        program, file, _, _ = self.open.pop(self.chance.randrange(len(self.open)))
        assert program.close(file) is None

    def writes(self):
        program, file, content, appends = self.an_open_file()
        for _ in range(self.chance.choice([1, 1, 1, 20, 60])):
            data = self.chance.randbytes(self.chance.choice(LENGTHS))
            at = len(content) if appends else self.chance.choice([len(content), self.chance.randrange(60_000)])
            assert program.pwrite(file, data, at) == len(data)
            content.extend(bytes(max(0, at - len(content))))
            content[at:at + len(data)] = data

    def reads(self):
        program, file, content, _ = self.an_open_file()
        at, length = self.chance.randrange(len(content) + 10), self.chance.choice([1, 100, 4096, 65_536])
        assert program.pread(file, length, at) == bytes(content[at:at + length])

    def asks_for_the_size(self):
        program, file, content, _ = self.an_open_file()
        assert program.lseek(file, 0, os.SEEK_END) == len(content)

    def changes_the_size(self):
        program, file, content, _ = self.an_open_file()
        size = self.chance.choice([0, len(content) // 2, len(content) + self.chance.randrange(9000)])
        assert program.ftruncate(file, size) is None
        del content[size:]
        content.extend(bytes(size - len(content)))

    def synchronises(self):
        program, file, _, _ = self.an_open_file()
        assert program.fsync(file) is None

    def reads_by_name(self):
        program, directory, name = self.somebody()
        file = program.open(directory / name, os.O_RDONLY)
        if name not in self.named:
            assert file == -errno.ENOENT
            return
        assert program.pread(file, 1 << 20, 0) == bytes(self.named[name])
        assert program.close(file) is None

    def renames(self):
        program, directory, name = self.somebody()
        other = self.chance.choice(NAMES.replace(name, ""))
        result = program.rename(directory / name, directory / other)
        assert result == (None if name in self.named else -errno.ENOENT)
        if name in self.named:
            self.named[other] = self.named.pop(name)

    def removes(self):
        program, directory, name = self.somebody()
        assert program.unlink(directory / name) == (None if name in self.named else -errno.ENOENT)
        self.named.pop(name, None)

    def plays(self):
        if not self.open:
            self.opens()
            return
        moves = [self.opens, self.closes, self.writes, self.reads, self.asks_for_the_size, self.changes_the_size,
                 self.synchronises, self.reads_by_name, self.renames, self.removes]
        move = self.chance.choices(moves, [8, 6, 36, 14, 8, 4, 3, 8, 3, 2])[0]
        (self.closes if len(self.open) >= MOST_OPEN else move)()


@SERVERS
def test_each_sees_what_the_others_did_before(tmp_path, serve):
    seed = os.environ.get("WHERRY_TEST_SEED", "1")
    with mounts(tmp_path, 2, serve) as (root, *cards):
        with Players([root, *cards, cards[0]], random.Random(seed)) as players:
            for _ in range(STEPS):
                players.plays()
        for name, content in players.named.items():
            assert (root / name).read_bytes() == bytes(content), f"{name} in the end; WHERRY_TEST_SEED={seed}"
