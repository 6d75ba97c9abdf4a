# SPDX-License-Identifier: Apache-2.0
"""A program writes past a mount, while others read, map, cut and list the same file through it: against a model."""

import mmap
import os
import random
import subprocess
import sys

from host_path import ask, end, finish, here, namespace, server, start  # noqa: F401

MIB = 1 << 20
STEPS = 30_000 if "WHERRY_SOAK" in os.environ else 1500

# Writes as each line says, and answers. Opens the file again and flushes it now and then.
WRITER = """
import os, sys
file = os.open("file", os.O_WRONLY)
for line in sys.stdin:
    value, offset, size = map(int, line.split())
    assert os.pwrite(file, bytes([value]) * size, offset) == size
    if value % 16 == 0:
        os.fsync(file)
    if value % 50 == 0:
        os.close(file)
        file = os.open("file", os.O_WRONLY)
    print(line, end="", flush=True)
"""
# Pages and attributes of the file come and go. A look at the attributes also drops pages that have become old.
DISTURBERS = [
    "file = os.open('file', os.O_RDONLY)\nwhile True:\n    os.pread(file, 300_000, 0)\n    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)",
    "while True: os.stat('file')",
    "while True: [entry.stat() for entry in os.scandir('.')]",
]


class Game:
    """The file of `folder`, and what it should contain."""

    def __init__(self, folder, program, chance):
        self.path = folder / "file"
        self.file = os.open(self.path, os.O_RDONLY)
        self.program = program
        self.chance = chance
        self.memory = mmap.mmap(self.file, MIB, prot=mmap.PROT_READ)
        self.model = bytearray(MIB)  # at least

    def write(self):
        size = self.chance.choice([1, 5000, 65_536, 100_000, 300_000, 1 << 20])
        offset = self.chance.choice([0, self.chance.randrange(2_000_000), len(self.model), max(0, len(self.model) - 5000)])
        value = self.chance.randrange(256)
        ask(self.program, f"{value} {offset} {size}")
        self.model.extend(bytes(max(0, offset - len(self.model))))
        self.model[offset:offset + size] = bytes([value]) * size

    def read(self):
        offset, size = self.chance.randrange(3_000_000), self.chance.randrange(500_000)
        self.expect(os.pread(self.file, size, offset) == self.model[offset:offset + size])

    def look(self):
        offset = self.chance.randrange(MIB)
        self.expect(self.memory[offset:offset + 100_000] == self.model[offset:min(offset + 100_000, MIB)])

    def map(self):
        with mmap.mmap(self.file, len(self.model), prot=mmap.PROT_READ) as memory:
            offset = self.chance.randrange(len(self.model))
            self.expect(memory[offset:offset + 100_000] == self.model[offset:offset + 100_000])

    def measure(self):
        sizes = {os.stat(self.path).st_size, os.fstat(self.file).st_size, os.lseek(self.file, 0, os.SEEK_END)}
        self.expect(sizes == {len(self.model)})

    def cut(self):
        size = self.chance.randrange(MIB, 2_500_000)
        os.truncate(self.path, size)
        self.model = self.model[:size] + bytes(max(0, size - len(self.model)))

    def expect(self, holds):
        """Without the bytes, which pytest would compare for minutes."""
        assert holds, len(self.model)


def test_random_calls_see_what_was_written_past_the_mount_before(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    seed = os.environ.get("WHERRY_TEST_SEED", str(random.randrange(1 << 31)))
    print(f"WHERRY_TEST_SEED={seed}")
    program = start(server, here, WRITER)
    others = []
    game = Game(here, program, random.Random(seed))
    moves = [game.write] * 8 + [game.look] * 4 + [game.read, game.map, game.measure] * 2 + [game.cut]
    try:
        for step in range(STEPS):
            if step == STEPS // 2:
                others += [subprocess.Popen([sys.executable, "-c", "import os\n" + code], cwd=here) for code in DISTURBERS]
            game.chance.choice(moves)()
    finally:
        game.memory.close()
        os.close(game.file)
        for other in others:
            end(other)
    game.expect((tmp_path / "root/file").read_bytes() == game.model)
    assert finish(program)[1].calls("writes to the host") > STEPS // 5
