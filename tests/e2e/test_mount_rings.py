# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` that give small writes to the mount's daemon through memory: what they and others see."""

import contextlib
import os
import random
import time

import pytest
from host_path import Report
from keeping import Program
from program import PROGRAM
from ring_programs import by_ring, card, end, here, namespace, run, server, start  # noqa: F401
from serving import Mount
from waiting import WATCHDOG, wait_until

STEPS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 1000))


# Each call beside the same one on a file of the host: results, errors, offsets, sizes, contents.
GAME = r"""
import fcntl, mmap, random, resource, signal, subprocess, zlib
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, other, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random = random.Random(seed)
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000_000, resource.RLIM_INFINITY))
memory = random.randbytes(4_000_000)

def outcome(call, file):
    try:
        return call(file)
    except OSError as error:
        return errno.errorcode[error.errno]

def both(call):
    results = [outcome(call, file) for file in files]
    assert results[0] == results[1], (seed, step, call, results)
    return results[0]

def contents():
    results = []
    for place in (folder, other):
        with open(place + "/game", "rb") as game:
            results.append(game.read())
    differ = [i for i in range(min(map(len, results))) if results[0][i] != results[1][i]][:1]
    assert results[0] == results[1], (seed, step, list(map(len, results)), differ)

def fork(file):
    child = os.fork()
    if child == 0:
        result = outcome(lambda file: os.write(file, data), file)
        os._exit(result % 100 if isinstance(result, int) else 200)
    return os.waitpid(child, 0)[1]

def doubled(file):
    second = os.dup(file)
    try:
        return os.write(second, data), os.write(file, data)
    finally:
        os.close(second)

def execed(file):
    return subprocess.run(["/bin/echo", "hello"], stdout=file).returncode

def mapped(file):
    size = os.fstat(file).st_size
    place = offset % max(size, 1)
    if flags & (os.O_SYNC | os.O_APPEND) or os.fstat(file).st_size == 0:
        return "not mapped"
    with mmap.mmap(file, 0) as memory:
        before = memory[place:place + 100]
        memory[place:place + len(data[:size - place])] = data[:size - place]
        more = os.pwrite(file, data[:100], place // 2)
        return zlib.crc32(before), more, zlib.crc32(memory[:place + 5000]), zlib.crc32(os.pread(file, size, 0))

def sent(file):
    first, second = os.memfd_create("first"), os.memfd_create("second")
    with open(first, "rb") as first, open(second, "rb") as second:
        os.sendfile(first.fileno(), file, offset, len(data))
        os.sendfile(second.fileno(), file, None, len(data))
        return zlib.crc32(os.pread(first.fileno(), 10_000_000, 0)), zlib.crc32(os.pread(second.fileno(), 10_000_000, 0))

def copied(file):
    with open(os.memfd_create("copy"), "rb") as copy:
        done = subprocess.run(["/usr/bin/head", "-c", "5000"], stdin=file, stdout=copy.fileno(), stderr=subprocess.DEVNULL)
        return done.returncode, zlib.crc32(os.pread(copy.fileno(), 10_000_000, 0))

def read(file):
    parts = [bytearray(100), bytearray(5000)]
    return os.readv(file, parts), zlib.crc32(parts[1]), os.preadv(file, parts, offset), zlib.crc32(parts[1])

files = None
step = "start"
reads = seed >= 4
for step in range(steps):
    if files is None or random.random() < (0.04 if seed % 2 else 0.005):
        for file in files or []:
            os.close(file)
        flags = os.O_WRONLY | os.O_CREAT | random.choice([0, 0, os.O_TRUNC])
        if random.random() < 0.1:
            flags |= os.O_SYNC
        if random.random() < 0.4:
            flags |= os.O_APPEND
        if random.random() < (0.9 if reads else 0.1):
            flags = flags & ~os.O_WRONLY | os.O_RDWR
        files = [os.open(place + "/game", flags, 0o644) for place in (folder, other)]
        paths = [place + "/game" for place in (folder, other)]
    size = random.choice([1, 100, 511, 512, 513, 4096, 4096, 5000, 65_536, 65_537, 200_000 if step % 4 == 0 else 10])
    begin = random.randrange(1_000_000)
    data = memory[begin:begin + size]
    offset = random.choice([0, 4096, random.randrange(2_000_000), random.randrange(7_000_000) if step % 20 == 0 else 100])
    choice = random.randrange(94 if seed % 2 else 82)  # with and without calls that end a ring
    if choice < 50:
        for _ in range(random.choice([1, 10, 10, 40])):
            both(lambda file: os.write(file, data[:5000]))
    elif choice < 55:
        both(lambda file: os.write(file, data))
    elif choice < 65:
        both(lambda file: os.pwrite(file, data, offset))
    elif choice < 70:
        whence = random.choice([os.SEEK_SET, os.SEEK_CUR])
        both(lambda file: os.lseek(file, offset, whence))
    elif choice < 72:
        beyond = random.choice([-100, 0, 10])
        both(lambda file: os.lseek(file, beyond, os.SEEK_END))
    elif choice == 72:
        both(lambda file: os.lseek(file, -10_000_000, os.SEEK_CUR))
    elif choice < 76:
        both(lambda file: os.fstat(file).st_size)
    elif choice < 80:
        assert os.stat(paths[0]).st_size == os.stat(paths[1]).st_size, (seed, step)
    elif choice < 82:
        both(lambda file: os.fsync(file))
    elif choice == 82:
        contents()
    elif choice < 85:
        both(lambda file: os.ftruncate(file, offset))
    elif choice == 85:
        both(fork)
    elif choice == 86:
        both(doubled)
    elif choice == 87:
        both(execed)
    elif choice == 88:
        parts = [data[:random.choice([0, 1, 100, 20_000])] for _ in range(random.choice([1, 2, 3, 16, 17]))]
        for _ in range(random.choice([1, 40])):
            both(lambda file: os.writev(file, parts))
        both(lambda file: os.pwritev(file, parts, offset))
    elif choice == 89:
        both(lambda file: os.truncate(f"/proc/self/fd/{file}", offset))
    elif choice == 90:
        both(lambda file: os.posix_fallocate(file, offset, 1000))
    elif choice == 91:
        limit = random.choice([1_000_000, 6_000_000])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    elif choice == 92:
        now = fcntl.fcntl(files[0], fcntl.F_GETFL)
        changed = random.choice([0, 0, os.O_APPEND])
        both(lambda file: fcntl.fcntl(file, fcntl.F_SETFL, os.O_NONBLOCK | now ^ changed))
    elif choice == 93:
        both(lambda file: os.close(os.open(f"/proc/self/fd/{file}", os.O_RDONLY)))
    if reads and random.random() < 0.1:
        both(random.choice([lambda file: zlib.crc32(os.read(file, len(data))),
                            lambda file: zlib.crc32(os.pread(file, len(data), offset)), mapped, sent, copied, read]))
    both(lambda file: os.lseek(file, 0, os.SEEK_CUR))
for file in files:
    os.close(file)
contents()
"""


@pytest.mark.parametrize("seed", range(8))
def test_a_game_of_calls_has_the_same_results_as_on_the_host(server, here, tmp_path, seed):
    (tmp_path / "other").mkdir()
    program = start(server, here, GAME, here, tmp_path / "other", seed, STEPS)
    _, errors = program.communicate(timeout=10 * WATCHDOG)
    assert program.returncode == 0, errors
    assert sum(by_ring(Report(line)) for line in errors.splitlines() if line.startswith("wherry files: ")) > 100, errors


def test_whoever_looks_sees_what_was_written(server, here, tmp_path):
    program = start(server, here, r"""
content = begin(sys.argv[1])
while say(len(content)).strip() == "more":
    for _ in range(100):
        content += b"x" * 77
        assert os.write(file, content[-77:]) == 77
""", here / "file")
    there = tmp_path / "root/file"
    with Mount(server, tmp_path / "other") as other:
        looks = [lambda: os.stat(here / "file").st_size, lambda: len((here / "file").read_bytes()), lambda: len(there.read_bytes()),
                 lambda: os.stat(other / "file").st_size if len((other / "file").read_bytes()) else 0,
                 lambda: next(entry.stat().st_size for entry in os.scandir(here) if entry.name == "file")]
        for look in looks * 4:
            size = int(program.stdout.readline())
            assert look() == size
            program.stdin.write("more\n")
            program.stdin.flush()
        program.stdout.readline()
        _, report = end(program)
        assert by_ring(report) > 100, report.said
        assert len(there.read_bytes()) == len((other / "file").read_bytes())


@pytest.mark.parametrize("how", ["write", "append", "both"])
def test_writes_in_parts_and_appends_are_made_by_a_ring(server, here, tmp_path, how):
    """The beginning of the file is not written to again: an append after `pwrite` and `lseek` goes to the end."""
    program = start(server, here, r"""
content = begin(sys.argv[1])
appends = "append" in sys.argv
for number in range(1000):
    parts = [b"%06d" % number, b"", bytes([97 + number % 26]) * 300]
    assert os.writev(file, parts) == 306
    content += b"".join(parts)
assert os.lseek(file, 0, os.SEEK_CUR) == len(content)
for number in range(100):
    before = os.lseek(file, 10, os.SEEK_SET)
    assert os.pwrite(file, b"pwrite", 0 if appends else len(content)) == 6
    assert os.lseek(file, 0, os.SEEK_CUR) == before
    if not appends:
        os.lseek(file, 0, os.SEEK_END)
    assert os.write(file, b"write") == 5
    content += b"pwritewrite"
    assert os.lseek(file, 0, os.SEEK_CUR) == len(content) == os.fstat(file).st_size
assert has_ring()
sys.stdout.buffer.write(content)
""", here / "file", how)
    output, report = end(program)
    assert (tmp_path / "root/file").read_bytes() == output.encode()
    assert by_ring(report) >= 1200, report.said


def test_an_append_by_the_kernel_stays_within_the_limit_of_file_sizes(server, here, tmp_path):
    """The kernel compares the end of the file that it knows, which does not have what was written by the ring since."""
    program = start(server, here, r"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for call in (lambda: os.pwrite(file, bytes(200_000), 0), lambda: os.pwritev(file, [b"text"], 0), lambda: os.pwritev(file, [b"text"], 0, os.RWF_DSYNC)):
    content = begin(sys.argv[1])
    for _ in range(300):
        content += b"end"
        assert os.write(file, b"end") == 3
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content), resource.RLIM_INFINITY))
    try:
        assert False, call()
    except OSError as error:
        assert error.errno == errno.EFBIG, error
    os.close(file)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
""", here / "file", "append")
    _, report = end(program)
    assert by_ring(report) >= 900, report.said


def test_appends_by_a_ring_and_those_of_others_are_all_in_the_file(server, here, tmp_path):
    program = start(server, here, r"""
import struct
begin(sys.argv[1], 8)
say()
for number in range(200_000):
    assert os.write(file, b"card" + struct.pack("<I", number)) == 8
""", here / "file", "append")
    program.stdout.readline()
    program.stdin.write("go\n")
    program.stdin.flush()
    there = tmp_path / "root/file"
    for number in range(50):
        with open(there if number % 2 else here / "file", "ab", buffering=0) as file:
            file.write(b"host" + number.to_bytes(4, "little"))
    _, report = end(program)
    assert by_ring(report) > 1000, report.said
    content = there.read_bytes()
    records = [content[i:i + 8] for i in range(0, len(content), 8)]
    for who, count in ((b"card", 200_000), (b"host", 50)):
        numbers = [int.from_bytes(record[4:], "little") for record in records if record[:4] == who]
        assert numbers == list(range(count)), (who, len(numbers))


def test_errors_are_those_of_the_kernel(server, here, tmp_path):
    output, report = run(server, here, r"""
import ctypes, fcntl, mmap, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
content = begin(sys.argv[1])
def result(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]
def write(address, size):
    got = libc.write(file, ctypes.c_void_p(address), ctypes.c_size_t(size))
    return got if got >= 0 else errno.errorcode[ctypes.get_errno()]
def next_ring():
    global content
    while not has_ring():
        content += b"y" * 10
        os.write(file, content[-10:])
memory = mmap.mmap(-1, 8192)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc.mprotect(ctypes.c_void_p(address + 4096), 4096, 0)
print(write(8, 100), result(lambda: os.lseek(file, 0, 1)) - len(content))
next_ring()
print(write(address + 4000, 1000), "of a buffer that ends")
os.lseek(file, len(content), 0), os.ftruncate(file, len(content))
next_ring()
print(result(lambda: os.read(file, 10)), result(lambda: os.lseek(file, -1, 0)), result(lambda: os.pwrite(file, b"x", -1)))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 50, resource.RLIM_INFINITY))
print(result(lambda: os.write(file, b"z" * 100)), result(lambda: os.write(file, b"z")))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
content += b"z" * 50
next_ring()
print(result(lambda: mmap.mmap(file, 100)))
os.close(file)
print(result(lambda: os.write(file, b"z")))
with open(sys.argv[1], "rb") as there:
    assert there.read() == content
""", here / "file")
    assert output.splitlines() == ["EFAULT 0", "96 of a buffer that ends", "EBADF EINVAL EINVAL", "50 EFBIG", "EACCES", "EBADF"]
    assert by_ring(report) > 50


class Cards:
    """Programs by `wherry run --files` on two cards, and one of the host; and what each file contains."""

    NAMES = "abc"

    def __init__(self, server, directories, root, chance):
        self.chance = chance
        runs = [Program(PROGRAM, "run", "--files", directory, "--", env={**server.env, "WHERRY_FILES_REPORT": "1"}) for directory in directories]
        self.programs = list(zip([*runs, Program()], [*directories, root], strict=True))
        self.contents = {name: bytearray() for name in self.NAMES}
        self.open = []  # the program, its descriptor, the file's name, whether it appends, and its offset

    def opens(self):
        program, directory = self.chance.choice(self.programs)
        name = self.chance.choice(self.NAMES)
        appends = self.chance.random() < 0.3
        file = program.open(directory / name, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if appends else 0), 0o644)
        assert file >= 0
        self.open.append([program, file, name, appends, 0])

    def closes(self):
        program, file, *_ = self.open.pop(self.chance.randrange(len(self.open)))
        assert program.close(file) is None

    def writes(self):
        opened = self.chance.choice(self.open)
        program, file, name, appends, offset = opened
        content = self.contents[name]
        for _ in range(self.chance.choice([1, 5, 30, 60])):
            data = self.chance.randbytes(self.chance.choice([1, 50, 512, 4096]))
            place = self.chance.choice([offset, offset, offset, self.chance.randrange(20_000)])
            at = len(content) if appends else place
            if place == offset:
                assert program.write(file, data) == len(data)
                offset = at + len(data)
            else:
                assert program.pwrite(file, data, place) == len(data)
            content.extend(bytes(max(0, at - len(content))))
            content[at:at + len(data)] = data
        opened[4] = offset

    def moves(self):
        opened = self.chance.choice(self.open)
        opened[4] = opened[0].lseek(opened[1], self.chance.randrange(20_000), os.SEEK_SET)

    def reads(self):
        _, directory = self.chance.choice(self.programs)
        for name in self.NAMES:
            if (directory / name).exists():
                assert (directory / name).read_bytes() == self.contents[name]  # first: a look at another card's file may be old
                assert os.stat(directory / name).st_size == len(self.contents[name])

    def play(self, steps):
        for _ in range(steps):
            moves = [self.writes] * 8 + [self.moves, self.closes] if self.open else []
            self.chance.choice([*moves, self.opens, self.reads] if len(self.open) < 6 else moves)()
        while self.open:
            self.closes()
        self.reads()


@pytest.mark.parametrize("seed", range(3))
def test_programs_of_two_cards_and_the_host_see_each_others_writes(server, here, tmp_path, seed):
    with Mount(server, tmp_path / "other") as other:
        cards = Cards(server, [here, other], tmp_path / "root", random.Random(seed))
        with contextlib.ExitStack() as stack:
            for program, _ in cards.programs:
                stack.enter_context(program)
            cards.play(STEPS // 3)


def _switches(process):
    """How often the threads of a process have gone to sleep."""
    count = 0
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/status") as status:
            count += next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
    return count


def test_a_write_reaches_the_host_without_a_call_and_a_ring_that_is_not_used_costs_nothing(server, card, tmp_path):
    program = start(server, card.directory, r"""
content = begin(sys.argv[1])
say(len(content))
assert os.write(file, b"later") == 5
say()
""", card.directory / "file")
    size = int(program.stdout.readline())
    there = tmp_path / "root/file"
    wait_until(lambda: there.stat().st_size == size, "the data")

    def rests():
        before = _switches(card.daemon())
        time.sleep(0.2)
        return _switches(card.daemon()) == before

    wait_until(rests, "a daemon that sleeps")
    program.stdin.write("go\n")
    program.stdin.flush()
    program.stdout.readline()
    wait_until(lambda: there.stat().st_size == size + 5, "the last write")
    end(program)
