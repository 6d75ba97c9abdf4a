# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: programs that know nothing of Wherry do with their files what they do without it, and read no byte
that is old. A native run is what each is compared with."""

import hashlib
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import PROGRAM, environment

BIN = Path(PROGRAM).resolve().parent
LIBRARY = BIN.parent / "lib/wherry/files/libwherry-preload.so"
EXERCISER = BIN / "files_exerciser"
STATIC = BIN / "files_static_writer"
SOAK = "WHERRY_SOAK" in os.environ
OPERATIONS = int(os.environ.get("WHERRY_FILES_OPERATIONS", 10_000))
SEED = {name: value for name, value in os.environ.items() if name == "WHERRY_TEST_SEED"}
WATCHDOG = 3600 if SOAK else 250

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="a sanitizer's build has no library that programs could load"),
    pytest.mark.timeout(WATCHDOG + 50),
]


class Runner:
    def __init__(self, folder, path="auto"):
        self.folder, self.path = folder, path

    def command(self, *words):
        return [PROGRAM, "run", "--files", str(self.folder), "--file-path", self.path, "--", *map(str, words)]

    def __call__(self, *words, **options):
        return run(self.command(*words), self.folder, **options)

    def start(self, *words, **options):
        return subprocess.Popen(self.command(*words), env=environment(), cwd=self.folder, text=True, **options)


def run(words, folder, timeout=WATCHDOG, **changes):
    return subprocess.run(list(map(str, words)), env=environment(**SEED, **{"WHERRY_LOG": "error", **changes}), cwd=folder, capture_output=True, text=True, errors="surrogateescape", timeout=timeout)


@pytest.fixture
def served(tmp_path):
    return Runner(tmp_path)


@pytest.fixture(params=["auto", "cache"])
def served_by(tmp_path, request):
    """By each path that reads in place."""
    return Runner(tmp_path, request.param)


def content(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()}


def make_tree(folder):
    random.seed(1)
    for name, size in {"empty": 0, "small": 100, "lines": 0, "big": 3_000_000, "sub/deep": 70_000}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(random.randbytes(size))
    (folder / "lines").write_text("".join(f"{random.randrange(10**6)} line {i}\n" for i in range(20_000)))
    (folder / "link").symlink_to("big")


PROGRAMS = [
    "cat small lines empty link",
    "cat missing",
    "dd if=big of=copy bs=7k status=none; dd if=big bs=512 skip=3 count=900 status=none | sha256sum",
    "dd if=small of=big conv=notrunc bs=10 seek=5 status=none; cat big | sha256sum",
    "cp big copy; cp -r sub sub2; cmp big copy; cp lines small",
    "head -c 100000 big | sha256sum; tail -c 5000 big | sha256sum; tail -n 3 lines",
    "sort lines | sha256sum; sort -o lines lines; head -n 3 lines",
    "grep -r 'line 19' . | sort; grep -c line lines",
    "wc lines big; sha256sum big sub/deep; md5sum < big",
    "while read -r a b c; do n=$c; done < lines; echo $n",
    "{ head -n 1; head -n 1; cat; } < lines | sha256sum",
    "exec 3< lines; read -r x <&3; (read -r y <&3; echo $y); read -r z <&3; echo $x $z",
    "echo one > out; echo two >> out; cat out; (echo three; cat out) >> out2; cat out2",
    "for i in 1 2 3 4 5 6 7 8; do cat out 2>/dev/null | wc -c; echo $i$i > out; done; cat out",
    "tar cf - . --exclude t.tar | tar tf - | sort | sha256sum; tar cf t.tar sub lines; mkdir x; tar xf t.tar -C x; cat x/lines | sha256sum; rm t.tar",
    "rsync -a sub/ sub3/; rsync -a --inplace --no-whole-file big sub3/; cmp big sub3/big",
    "sed -i s/line/LINE/ lines; awk '{n += $1} END {print n}' lines",
    "truncate -s 5 small; cat small | sha256sum; truncate -s 50 small; sha256sum small; rm small; cat small",
    "split -b 100k big part.; cat part.* | cmp - big; ls",
    "env -i /bin/cat small | sha256sum; env -i /bin/sh -c 'echo x > small'; cat small",
    "exit 7",
    "kill -TERM $$",
]


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("line", PROGRAMS)
def test_a_program_leaves_the_same_files_words_and_exit_status_as_without(tmp_path, line, shell):
    results = []
    for name in ("native", "served"):
        folder = tmp_path / name
        folder.mkdir()
        make_tree(folder)
        words = [shell, "-c", line]
        result = Runner(folder)(*words) if name == "served" else run(words, folder)
        results.append((result.returncode, result.stdout, result.stderr, content(folder)))
    assert results[1] == results[0]


PYTHON = """
import mmap, os, subprocess, sys, threading
fd = os.open("big", os.O_RDONLY)
parts = [os.read(fd, 4096) for _ in range(20)]
assert b"".join(parts) == open("big", "rb").read()[:81920]
assert os.lseek(fd, 0, os.SEEK_CUR) == 81920
second = os.dup(fd)
os.read(second, 100)
assert os.lseek(fd, 0, os.SEEK_CUR) == 82020
out = subprocess.run(["head", "-c", "10"], stdin=fd, capture_output=True).stdout
assert out == os.pread(second, 10, 82020)
assert os.pread(fd, 1 << 20, 10**9) == b""
for bad in (lambda: os.pread(fd, 10, -1), lambda: os.lseek(fd, -1, os.SEEK_SET), lambda: os.read(999, 1)):
    try:
        bad()
    except OSError as error:
        print(error.errno)
same = set()
def read_on():
    while part := os.read(third, 1000):
        same.add((len(part), part))
third = os.open("lines", os.O_RDONLY)
threads = [threading.Thread(target=read_on) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sum(n for n, _ in same) == os.path.getsize("lines"), "a byte twice, or none"
with open("small", "r+b") as f:
    m = mmap.mmap(f.fileno(), 0)
    for i in range(50):
        m[i] = i
        assert os.pread(f.fileno(), 50, 0)[i] == i
with open("small", "r+b", buffering=0) as f:
    for i in range(50):
        f.seek(i); f.write(bytes([i + 1])); f.seek(0)
        assert f.read(60)[i] == i + 1
"""


def test_pythons_calls_do_what_they_do_without(tmp_path):
    make_tree(tmp_path)
    native = run([sys.executable, "-c", PYTHON], tmp_path)
    assert native.returncode == 0, native.stderr
    served = Runner(tmp_path)(sys.executable, "-c", PYTHON)
    assert (served.returncode, served.stdout, served.stderr) == (0, native.stdout, "")


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("path", ["auto", "cache", "kernel"])
def test_random_calls_find_each_byte_where_it_was_written(served, tmp_path, processes, path):
    hits = ["--no-hits"] if path == "kernel" else []
    served.path = path
    result = served(EXERCISER, tmp_path / "file", OPERATIONS, processes, *hits)
    assert result.returncode == 0, result.stdout + result.stderr
    if path == "kernel":
        assert "\n0 of" in result.stdout


NATIVE = {
    "jumps": "mask sleep",
    "results": "locks lease events bad-pointers unshare handlers limits strict threads many-files atfork",
    "offsets": "far endless close-range standard-input wordexp pidfd clone other-names",
    "places": "mmap mmap-where-nothing-is mmap-by-number mremap munmap shmat shmat-within-a-page shmat-by-number",
    "signals": "masks actions filters",
}


@pytest.mark.parametrize("path", ["auto", "cache"])
@pytest.mark.parametrize("program, case", [(program, case) for program, cases in NATIVE.items() for case in cases.split()])
def test_what_only_the_kernels_calls_survive_goes_as_without(served, tmp_path, program, case, path):
    served.path = path
    results = []
    for runner in (lambda *words, **options: run(words, tmp_path, **options), served):
        file = tmp_path / "file"
        file.write_bytes(bytes(range(256)) * 1024)
        result = runner(BIN / f"files_native_{program}", case, file, timeout=50)
        results.append((result.returncode, result.stdout, result.stderr))
    assert results[1] == results[0]
    assert results[0][0] == 0 and results[0][1]


READER = """
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    data = [os.pread(fd, 1000, 0) for _ in range(300)][-1]
    print(data[:20].decode(), flush=True)
    with open("/proc/self/io") as io:
        print(io.read().split("syscr: ")[1].split()[0], flush=True)
"""


class Reader:
    """A process that reads the same bytes 300 times whenever it is asked."""

    def __init__(self, served, path):
        self.process = served.start(sys.executable, "-c", READER, path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self):
        """What it read the last time, and all read calls of the kernel's that it ever made."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip(), int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def is_read_in_place(reader):
    """Whether 300 reads pass without the kernel, once it has read some."""
    for _ in range(40):
        before = reader()[1]
        if reader()[1] - before < 50:
            return True
    return False


WRITERS = {
    "write": "printf %s {} > file",
    "append": "rm file; printf %s {} >> file",
    "in place": "printf %s {} | dd of=file conv=notrunc status=none",
    "stdio": "{python} -c 'f = open(\"file\", \"w\"); f.write(\"{}\"); f.close()'",
    "truncate and grow": ": > file; printf %s {} | tee file > /dev/null",
    "copy": "printf %s {} > other; cp other file",
    "a mapping": "{python} -c 'import mmap; f = open(\"file\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[:8] = b\"{}\"'",
    "a static program": "{static} file {}",
}


@pytest.mark.parametrize("how", [how for how in WRITERS if how != "append"])
def test_what_another_process_of_the_card_has_written_is_read_at_once(served, tmp_path, how):
    path = tmp_path / "file"
    path.write_text("version0" + "." * 20_000)
    with Reader(served, path) as reader:
        assert is_read_in_place(reader)
        for i in range(1, 4):
            line = WRITERS[how].replace("{python}", sys.executable).replace("{static}", str(STATIC)).replace("{}", f"version{i}")
            result = served("bash", "-c", line)
            assert result.returncode == 0, result.stderr
            assert reader()[0].startswith(f"version{i}")


def test_what_a_program_outside_stores_is_read_at_once_and_a_new_end_10_ms_later(served, tmp_path):
    path = tmp_path / "file"
    path.write_text("version0" + "." * 20_000)
    with Reader(served, path) as reader, path.open("r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as mapping:
        assert is_read_in_place(reader)
        for i in range(1, 50):
            if i % 2 == 0:
                file.seek(0)
                file.write(b"version%02d" % i)
            else:
                mapping[:9] = b"version%02d" % i
            assert reader()[0].startswith(f"version{i:02d}")
        file.truncate(9)
        time.sleep(0.02)  # docs/files.md states 10 ms
        assert reader()[0] == "version49"


def test_a_killed_process_leaves_what_it_wrote_and_nothing_old(served, tmp_path):
    path = tmp_path / "file"
    path.write_text("version0" + "." * 20_000)
    code = "import os; fd = os.open('file', os.O_RDWR)\nwhile True: os.pwrite(fd, b'version%d' % (os.getpid() % 10), 0)"
    with Reader(served, path) as reader:
        for _ in range(5):
            assert is_read_in_place(reader)
            with served.start(sys.executable, "-c", code) as writer:
                time.sleep(0.05)
                writer.send_signal(signal.SIGKILL)
            with path.open() as file:
                assert reader()[0] == file.read(20)


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_survives_kills_of_its_writer(served_by, tmp_path, journal):
    served = served_by
    assert served("sqlite3", "db", f"pragma journal_mode={journal}; create table t(a integer primary key, b blob);").returncode == 0
    insert = "insert into t(b) values(randomblob(3000));" * 20_000
    rows = 0
    for i in range(30 if SOAK else 6):
        script = tmp_path / "insert.sql"
        script.write_text("pragma cache_size=5;" + insert)
        with served.start("sqlite3", "db", f".read {script}", stdout=subprocess.DEVNULL) as writer:
            time.sleep(random.uniform(0.02, 0.3))
            writer.send_signal(signal.SIGKILL)
        for check in (served("sqlite3", "db", "pragma integrity_check; select count(*) from t"), ):
            verdict, count = check.stdout.split()
            assert verdict == "ok" and int(count) >= rows, check.stderr
            rows = int(count)
    native = run(["sqlite3", "db", "pragma integrity_check; select count(*) from t"], tmp_path)
    assert native.stdout.split() == ["ok", str(rows)] and rows > 0


def test_git_clones_checks_and_packs_a_repository(served_by, tmp_path):
    source = tmp_path / "source"
    script = """
set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git init -q source; cd source
for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6; do seq $i $((i * j * 500)) > file$j; done; git add .; git commit -q -m $i; done
git gc -q; git fsck --full; cd ..
git clone -q --no-local source clone; cd clone; git fsck --full; git log --oneline | wc -l; git status --short; git gc -q; git repack -adfq; git fsck --full
cd ..; tar cf - source | (mkdir unpacked; tar xf - -C unpacked); diff -r source unpacked/source
"""
    result = served_by("bash", "-c", script)
    assert (result.returncode, result.stdout.strip()) == (0, "8"), result.stdout + result.stderr
    assert run(["git", "-C", source, "fsck", "--full"], tmp_path).returncode == 0
    assert run(["git", "-C", tmp_path / "clone", "diff", "--stat", "HEAD"], tmp_path).stdout == ""


def test_a_tree_goes_from_tar_to_tar_with_each_byte(served_by, tmp_path):
    (tmp_path / "from").mkdir()
    make_tree(tmp_path / "from")
    for to in ("first", "second", "third"):
        result = served_by("bash", "-c", f"mkdir {to} && tar cf - from | tar xf - -C {to} && cd {to}/from && sha256sum empty small lines big sub/deep")
        assert result.returncode == 0, result.stderr
        native = run(["sha256sum", "empty", "small", "lines", "big", "sub/deep"], tmp_path / "from")
        assert result.stdout == native.stdout
        assert content(tmp_path / to / "from") == content(tmp_path / "from")


UNITS = [512 << i for i in range(16)] if SOAK else [512, 4096, 65536, 1 << 20, 16 << 20]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("access", ["rw", "randrw"])
def test_fio_finds_what_it_wrote_in_units_of_each_size(served_by, tmp_path, unit, access):
    size = max((256 if SOAK else 2) << 20, 4 * unit)
    job = ["--name=v", f"--filename={tmp_path}/f", f"--size={size}", f"--rw={access}", f"--bs={unit}", "--ioengine=psync"]
    result = served_by("fio", *job, "--verify=crc32c", "--verify_fatal=1", "--loops=2", "--minimal")
    assert result.returncode == 0, result.stdout[-500:] + result.stderr


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("engine", ["psync", "sync", "vsync", "pvsync2", "mmap", "libaio", "posixaio", "io_uring"])
def test_fio_finds_what_it_wrote_by_each_of_its_engines(served, tmp_path, engine):
    size = "64M" if SOAK else "4M"
    job = ["--name=v", f"--filename={tmp_path}/f", f"--size={size}", "--rw=randrw", "--bssplit=512/20:4k/40:16k/20:64k/10:256k/10"]
    result = served("fio", *job, f"--ioengine={engine}", "--verify=crc32c", "--verify_fatal=1", "--loops=2", "--minimal")
    if engine == "io_uring" and run(["fio", *job, "--ioengine=io_uring", "--minimal"], tmp_path).returncode != 0:
        pytest.skip("this kernel allows no io_uring")
    assert result.returncode == 0, result.stdout[-500:] + result.stderr


def test_the_library_shows_its_hooks_only_and_needs_the_c_library_alone():
    symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert "pread64" in names and not [name for name in names if name.startswith("_Z")]
    assert [name for name in names if "wherry" in name] == ["wherry_fd_set_path"]
    assert LIBRARY.stat().st_size < 1_000_000, "tables that are not all zeros are in the file, and read by every program"
    dynamic = subprocess.run(["objdump", "-p", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert [line.split()[1] for line in dynamic.splitlines() if "NEEDED" in line] == ["libc.so.6"]


def test_the_program_finds_its_library_and_its_directories(served, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    result = run([PROGRAM, "run", "--files", "a,b", "--", "env"], tmp_path)
    assert f"WHERRY_FILES={tmp_path}/a:{tmp_path}/a\n" in result.stdout and f"LD_PRELOAD={LIBRARY}" in result.stdout


def test_a_directory_that_is_none_is_said(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        result = run([PROGRAM, "run", "--files", name, "--", "echo", "ran"], tmp_path)
        assert (result.returncode, result.stdout) == (125, "") and f"use --files {name}: " in result.stderr


def test_a_program_that_cannot_be_seen_is_told_so(served, tmp_path):
    result = served(STATIC, "file", "text", WHERRY_LOG="warning")
    assert result.returncode == 0 and "the kernel serves its files" in result.stderr
    assert (tmp_path / "file").read_text() == "text"
