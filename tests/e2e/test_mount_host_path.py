# SPDX-License-Identifier: Apache-2.0
"""Programs by `wherry run --files` on a mount whose large transfers go past it, to the host's server."""

import json
import mmap
import os
import subprocess
import sys

import pytest
from host_path import ask, end, finish, here, namespace, run, server, start  # noqa: F401
from program import PROGRAM
from serving import NO_PASSTHROUGH, Mount, Server
from waiting import WATCHDOG

MIB = 1 << 20

# Each transfer of a file beside the same one of another by the kernel alone: results, errors, offsets, sizes, contents.
GAME = r"""
import errno, mmap, random, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
folder, other, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
random = random.Random(seed)
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000_000, resource.RLIM_INFINITY))
memory = memoryview(bytearray(random.randbytes(4_000_000)))

def outcome(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]

def both(call):
    results = [outcome(lambda: call(file)) for file in files]
    assert results[0] == results[1], (seed, step, call, [r if not isinstance(r, bytes) else (len(r), hash(r)) for r in results])

flags = os.O_RDWR | os.O_CREAT
step = "start"
for place in (folder, other):
    with open(place + "/game", "wb") as file:
        file.write(memory[:3_000_000])
kinds = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_SYNC]
files = None
for step in range(steps):
    if files is None or random.random() < 0.05:
        for file in files or []:
            os.close(file)
        kind = random.choice(kinds[:2] * 3 + kinds)
        files = [os.open(place + "/game", kind) for place in (folder, other)]
    size = random.choice([1, 511, 4096, 5000, 65536, 100_000, 1 << 20, 3_000_000])
    begin = random.randrange(1_000_000)
    offset = random.choice([0, 4096, 1000, random.randrange(4_000_000), random.randrange(7_000_000)])
    data = memory[begin:begin + size]
    choice = random.randrange(9)
    if choice < 2:
        both(lambda file: os.pread(file, size, offset))
    elif choice == 2:
        both(lambda file: os.read(file, size))
    elif choice < 5:
        both(lambda file: os.pwrite(file, data, offset))
    elif choice == 5:
        both(lambda file: os.write(file, data))
    elif choice == 6:
        both(lambda file: os.lseek(file, offset, 0))
    elif choice == 7 and random.random() < 0.3:
        both(lambda file: os.ftruncate(file, offset // 2))
    else:
        both(lambda file: (os.fstat(file).st_size, os.lseek(file, 0, 1)))
for file in files:
    os.close(file)
one, two = [open(place + "/game", "rb").read() for place in (folder, other)]
assert one == two, seed
"""


def test_transfers_beside_a_daemon_that_has_the_servers_descriptors_are_the_same(tmp_path):
    for name in ("root", "native"):
        (tmp_path / name).mkdir()
    with Server(tmp_path / "root", NO_PASSTHROUGH) as lending, Mount(lending, tmp_path / "mount") as directory:
        _, report = run(lending, directory, GAME, directory, tmp_path / "native", int.from_bytes(os.urandom(4), "little"), 400)
        assert report.calls("reads from the host") + report.calls("writes to the host") > 3, report.said


@pytest.mark.parametrize("path", ["host", "auto"])
def test_transfers_are_those_that_the_kernel_would_make(server, here, tmp_path, path):
    (tmp_path / "native").mkdir()
    seed = os.environ.get("WHERRY_TEST_SEED", str(int.from_bytes(os.urandom(4), "little")))
    _, report = run(server, here, GAME, here, tmp_path / "native", seed, 600 if path == "host" else 400, path=path)
    if path == "host":
        assert report.calls("reads from the host") + report.calls("writes to the host") > 3, report.said
    assert (tmp_path / "root/game").read_bytes() == (tmp_path / "native/game").read_bytes()


def test_large_reads_and_writes_go_past_the_mount(server, here, tmp_path):
    data = os.urandom(3 * MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = """
data = os.pread(os.open("file", os.O_RDONLY), 3 << 20, 0)
file = os.open("copy", os.O_WRONLY | os.O_CREAT)
assert os.pwrite(file, data, 0) == len(data) == os.fstat(file).st_size
"""
    _, report = run(server, here, code)
    assert (report.calls("reads from the host"), report.calls("writes to the host")) == (1, 1), report.said
    assert (tmp_path / "root/copy").read_bytes() == data


def test_the_report_says_for_each_way_how_many_reads_found_their_pages_in_memory(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(os.urandom(MIB))
    code = """
file = os.open("file", os.O_RDONLY)
data = os.pread(file, 1 << 20, 0)
assert os.preadv(file, [bytearray(1 << 20)], 0) == 1 << 20  # the kernel's, which keeps its pages
for _ in range(2):
    assert os.pread(file, 1 << 20, 0) == data
"""
    _, report = run(server, here, code)
    assert f"reads from the host: 3 calls {3 * MIB} bytes, 2 of 3 found in memory" in report.said
    assert report.said.count("found in memory") == 1, "of the kernel's read it is not known"


def test_nothing_goes_past_the_mount_unless_a_path_was_chosen(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(os.urandom(8 * MIB))
    code = """
file = os.open("file", os.O_RDONLY)
copy = os.open("copy", os.O_WRONLY | os.O_CREAT)
for i in range(300):
    os.pwrite(copy, os.pread(file, 1 << 20, i % 8 << 20), i % 8 << 20)
"""
    _, report = run(server, here, code, path=None)
    assert (report.calls("reads from the host"), report.calls("writes to the host")) == (0, 0), report.said


@pytest.mark.parametrize("flags, calls", [("os.O_RDONLY | os.O_DIRECT", 0), ("os.O_RDWR", 0), ("os.O_WRONLY | os.O_APPEND", 0),
                                          ("os.O_WRONLY | os.O_SYNC", 0), ("os.O_WRONLY", 1)])
def test_writes_that_the_kernel_makes_otherwise_are_left_to_it(server, here, tmp_path, flags, calls):
    (tmp_path / "root/file").write_bytes(b"0" * MIB)
    code = f"""
try:
    os.pwrite(os.open("file", {flags}), b"1" * (1 << 20), 0)
except OSError as error:
    print(error.errno)
"""
    _, report = run(server, here, code)
    assert report.calls("writes to the host") == calls, report.said


def test_what_a_mapping_has_changed_is_read(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(b"0" * MIB)
    code = """
import mmap
file = os.open("file", os.O_RDWR)
memory = mmap.mmap(file, 1 << 20)
for i in range(50):
    memory[i * 5000] = 65 + i % 26
    assert os.pread(file, 1 << 20, 0)[i * 5000] == 65 + i % 26
    if i % 10 == 0:
        memory.flush()
"""
    run(server, here, code)


def test_a_write_is_seen_at_once_by_mappings_and_by_other_programs(server, here, tmp_path):
    """Also within one tick of the clock that times of modification are taken from."""
    (tmp_path / "root/file").write_bytes(b"0" * MIB)
    with Mount(server, tmp_path / "other") as there, open(here / "file", "rb") as file, mmap.mmap(file.fileno(), MIB, prot=mmap.PROT_READ) as memory, \
            open(there / "file", "rb") as far:
        code = """
file = os.open("file", os.O_WRONLY)
for line in sys.stdin:
    os.pwrite(file, bytes([int(line)]) * 300_000, 1000)
    print(line, end="", flush=True)
"""
        program = start(server, here, "import os, sys\n" + code)
        for i in range(100):
            assert memory[1000] == os.pread(file.fileno(), 1, 1000)[0]
            ask(program, i)
            seen = [memory[1000:301_000], os.pread(file.fileno(), 300_000, 1000), os.pread(far.fileno(), 300_000, 1000)]
            assert [set(data) for data in seen] == 3 * [{i}]
            assert memory[999] == memory[301_000] == ord("0")
        assert finish(program)[1].calls("writes to the host") == 100


def test_a_write_is_seen_at_once_beside_programs_that_read_and_drop_the_same_pages(server, here, tmp_path):
    """A write tells the mount only if the kernel has pages of the range. These come and go at all times."""
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    code = """
file = os.open("file", os.O_WRONLY)
for line in sys.stdin:
    os.pwrite(file, bytes([int(line)]) * 100_000, 1000)
    print(line, end="", flush=True)
"""
    disturb = """
import os
file = os.open("file", os.O_RDONLY)
while True:
    os.pread(file, 100_000, 1000)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
"""
    program = start(server, here, "import os, sys\n" + code)
    others = [subprocess.Popen([sys.executable, "-c", disturb], cwd=here) for _ in range(2)]
    try:
        with open(here / "file", "rb") as file:
            for i in range(300):
                ask(program, i % 256)
                assert set(os.pread(file.fileno(), 100_000, 1000)) == {i % 256}
    finally:
        for other in others:
            end(other)
    assert finish(program)[1].calls("writes to the host") == 300


# Maps more than a file has, and reads what others have written. A page behind the end that the kernel knows is SIGBUS.
MAPPED_READER = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
place = libc.mmap(None, 20 << 20, mmap.PROT_READ, mmap.MAP_SHARED, os.open("file", os.O_RDONLY), 0)
for line in sys.stdin:
    assert ctypes.string_at(place + int(line), 10_000) == b"1" * 10_000
    print(line, end="", flush=True)
"""


def test_a_file_that_grows_past_a_mount_can_be_mapped_without_another_look(server, here, tmp_path):
    """While other programs ask for its size: their answers may arrive after the write's."""
    (tmp_path / "root/file").write_bytes(b"0")
    code = """
file = os.open("file", os.O_WRONLY)
for line in sys.stdin:
    os.pwrite(file, b"1" * 10_000, int(line))
    print(line, end="", flush=True)
"""
    program = start(server, here, "import os, sys\n" + code)
    reader = subprocess.Popen([sys.executable, "-c", MAPPED_READER], cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    others = [subprocess.Popen([sys.executable, "-c", "import os\nwhile True: os.stat('file')"], cwd=here) for _ in range(2)]
    try:
        for i in range(500):
            for process in program, reader:
                ask(process, 10_000 * i)
    finally:
        for process in [reader, *others]:
            end(process)
    assert finish(program)[1].calls("writes to the host") == 500


def test_writes_beside_a_mapping_that_changes_the_same_pages_lose_nothing(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(bytes(MIB))
    code = """
file = os.open("file", os.O_WRONLY)
for line in sys.stdin:
    os.pwrite(file, bytes([int(line)]) * 2048, 0)
    print(line, end="", flush=True)
"""
    program = start(server, here, "import os, sys\n" + code)

    for value in range(1, 200, 3):
        ask(program, value)
        with open(here / "file", "r+b") as file, mmap.mmap(file.fileno(), MIB) as memory:
            assert memory[:2048] == bytes([value]) * 2048
            memory[3000] = value
            ask(program, value + 1)
            assert memory[:2048] == bytes([value + 1]) * 2048
            memory[4000] = value
        data = (tmp_path / "root/file").read_bytes()
        assert data[:2048] == bytes([value + 1]) * 2048 and data[3000] == data[4000] == value
    assert finish(program)[1].calls("writes to the host") > 0


def test_a_bad_buffer_is_an_error_or_a_shorter_transfer(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(b"x" * MIB)
    code = """
import ctypes, errno, mmap
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.pread.argtypes = libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.pread.restype = libc.pwrite.restype = ctypes.c_ssize_t
place = libc.mmap(None, 1 << 20, 3, 0x22, -1, 0)
libc.munmap(place + (1 << 19), 1 << 19)
for flags, call in ((os.O_RDONLY, libc.pread), (os.O_WRONLY, libc.pwrite)):
    file = os.open("file", flags)
    assert call(file, place, 1 << 20, 0) == 1 << 19
    assert call(file, place + (1 << 19), 1000, 0) == -1 and ctypes.get_errno() == errno.EFAULT
"""
    run(server, here, code)
    assert (tmp_path / "root/file").read_bytes() == b"x" * MIB


@pytest.mark.parametrize("action", ("signal.SIG_IGN", "handler"))
def test_signals_of_faults_that_another_process_sends_do_what_they_do_natively(server, here, tmp_path, action):
    (tmp_path / "root/file").write_bytes(bytes(range(256)) * (MIB // 256))
    code = f"""
import signal, subprocess
came = []
handler = lambda number, _: came.append(number)
for number in (signal.SIGSEGV, signal.SIGBUS):
    signal.signal(number, {action})
sender = subprocess.Popen(["sh", "-c", "while kill -SEGV $0 && kill -BUS $0; do sleep 0.001; done", str(os.getpid())])
data = os.pread(os.open("file", os.O_RDONLY), 1 << 20, 0)
for flags, call in ((os.O_RDONLY, lambda: os.pread(file, 1 << 20, 0) == data), (os.O_WRONLY, lambda: os.pwrite(file, data, 0) == 1 << 20)):
    file = os.open("file", flags)
    calls = 0
    while calls < 500 or len(set(came)) < {2 if action == "handler" else 0}:
        assert call()
        calls += 1
sender.kill()
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") > 0 and report.calls("writes to the host") > 0
    assert (tmp_path / "root/file").read_bytes() == bytes(range(256)) * (MIB // 256)


def test_a_buffer_in_a_file_that_is_cut_meanwhile_ends_no_program(server, here, tmp_path):
    code = """
import ctypes, mmap, threading
libc = ctypes.CDLL(None)
libc.pread.argtypes = libc.pwrite.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long]
source = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.ftruncate(source, 8 << 20)
memory = mmap.mmap(source, 8 << 20)
place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
over = False
def cut():
    while not over:
        os.ftruncate(source, 4096)
        os.ftruncate(source, 8 << 20)
thread = threading.Thread(target=cut)
thread.start()
write, read = os.open("file", os.O_WRONLY | os.O_CREAT), os.open("file", os.O_RDONLY)
os.pwrite(write, bytes(8 << 20), 0)
for _ in range(20):
    libc.pwrite(write, place, 8 << 20, 0)
    libc.pread(read, place, 8 << 20, 0)
over = True
thread.join()
"""
    run(server, here, code, tmp_path / "source")


def test_the_limit_of_file_sizes_holds(server, here, tmp_path):
    code = """
import errno, resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
signals = []
signal.signal(signal.SIGXFSZ, lambda *_: signals.append(1))
file = os.open("file", os.O_WRONLY | os.O_CREAT)
assert os.pwrite(file, bytes(900_000), 0) == 900_000
assert os.pwrite(file, bytes(900_000), 900_000) == 100_000
try:
    os.pwrite(file, bytes(900_000), 1_000_000)
    assert False
except OSError as error:
    assert error.errno == errno.EFBIG
while not signals:
    pass
assert signals == [1]
"""
    run(server, here, code)
    assert (tmp_path / "root/file").stat().st_size == 1_000_000


def test_set_id_bits_go_with_a_write(server, here, tmp_path):
    code = """
file = os.open("file", os.O_WRONLY | os.O_CREAT, 0o755)
os.pwrite(file, bytes(100_000), 0)
os.chmod("file", 0o6755)
os.pwrite(file, bytes(100_000), 0)
print(oct(os.fstat(file).st_mode & 0o7777))
"""
    output, _ = run(server, here, code)
    natively = subprocess.run([sys.executable, "-c", "import os\n" + code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert output == natively.stdout


def test_top_shows_which_way_was_chosen_and_what_each_takes(server, here, tmp_path):
    (tmp_path / "root/file").write_bytes(os.urandom(16 * MIB))
    code = """
file = os.open("file", os.O_RDONLY)
for i in range(40):
    assert len(os.pread(file, 1 << 18, i % 4 << 18)) == 1 << 18
if os.fork() == 0:
    for i in range(5):
        os.pread(file, 1 << 18, i % 4 << 18)
    print("begun", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.wait()
"""
    program = start(server, here, "import os, sys\n" + code, path="auto")
    assert program.stdout.readline() == "begun\n"
    told = subprocess.run([PROGRAM, "top", "--once", "--json", "--interval", "0.05"], env=server.env, capture_output=True, text=True, check=True).stdout
    text = subprocess.run([PROGRAM, "top", "--files", "--once", "--interval", "0.05"], env=server.env, capture_output=True, text=True, check=True).stdout
    program.communicate("go\n", timeout=WATCHDOG)
    seen = {one["pid"]: one for one in json.loads(told)["processes"] if one["transfers"]}
    parent = seen.pop(program.pid)
    assert all(one["bytes_from"] == 1 << 18 and one["kind"].startswith("reads") for one in parent["transfers"])
    calls = [one[way]["calls"] for one in parent["transfers"] for way in ("host", "mount")]
    # The child's are in a page of its own.
    assert 35 <= sum(calls) <= 40, told
    assert all(sum(one[way]["calls"] for one in child["transfers"] for way in ("host", "mount")) <= 5 for child in seen.values()
               if child["job"] == parent["job"]), told
    for one in parent["transfers"]:
        assert one["chosen"] in ("host", "mount") and one["host"]["bytes"] == one["host"]["calls"] << 18
        # The first calls past the mount are not measured.
        assert all(one[way]["calls"] > 0 for way in ("host", "mount") if one[way]["estimate_ns"] > 0)
    assert any(one[way]["estimate_ns"] > 0 for one in parent["transfers"] for way in ("host", "mount"))
    assert f"{program.pid} " in text and "256K" in text


def test_threads_share_files_and_connections(server, here, tmp_path):
    data = os.urandom(8 * MIB)
    (tmp_path / "root/file").write_bytes(data)
    code = """
import threading
shared = os.open("file", os.O_RDONLY)
whole = os.pread(shared, 8 << 20, 0)
taken = []
def work(number):
    own = os.open(f"of{number}", os.O_WRONLY | os.O_CREAT)
    for i in range(8):
        assert os.pread(shared, 1 << 20, i << 20) == whole[i << 20:(i + 1) << 20]
        os.pwrite(own, whole[i << 20:(i + 1) << 20], i << 20)
    while piece := os.read(shared, 100_000):
        taken.append(piece)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert sum(map(len, taken)) == 8 << 20
pieces = {whole[i:i + 100_000] for i in range(0, 8 << 20, 100_000)}
assert set(taken) == pieces
"""
    _, report = run(server, here, code)
    assert report.calls("reads from the host") > 8 and report.calls("writes to the host") > 8, report.said
    assert all((tmp_path / f"root/of{i}").read_bytes() == data for i in range(8))
