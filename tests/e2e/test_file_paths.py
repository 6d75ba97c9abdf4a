# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: where reads come from, as wherry top --files shows it and as the user chooses it."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import PROGRAM, environment

LIBRARY = Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-preload.so"
C_LIBRARY = Path(PROGRAM).resolve().parent.parent / "src/capi"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="a sanitizer's build has no library that programs could load")

READING = """
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for i in range(int(sys.argv[2])):
    os.pread(file, 512, i * 512 % 500_000)
print("read", flush=True)
sys.stdin.readline()
"""
CHOOSING = "import ctypes; choose = ctypes.CDLL(None).wherry_fd_set_path; assert choose(99, 1) == -1 and choose(0, 0) == -1 and choose(0, 6) == -1\n" + READING.replace(
    "for i", "assert choose(file, int(sys.argv[3])) == 0\nfor i", 1
)
# Of the C API, beside the preloaded library: each has a call that sets a path, and neither answers for the other.
BOTH = """
#include <wherry/wherry.h>

#include <fcntl.h>
#include <stdio.h>

int main(int count, char** words) {
  wherry_file file = WHERRY_NONE;
  const int opened = wherry_file_open(words[count - 1], O_RDONLY, 0, NULL, &file);
  printf("%d %d %d ", opened, wherry_file_set_path(file, WHERRY_PATH_LOCAL), wherry_file_set_path(file, WHERRY_PATH_AS_SET));
  printf("%d\\n", wherry_fd_set_path != NULL ? wherry_fd_set_path(0, WHERRY_PATH_LOCAL) : 1);
  return 0;
}
"""
CALLS = 30_000
# Takes a lock, reads the file by descriptors of its own, and asks in a child whether the lock is still there.
LOCKING = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX, 1)
for i in range(20000):
    os.pread(fd, 4096, i % 16 * 4096)
child = os.fork()
if child == 0:
    try:
        fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    except OSError:
        os._exit(0)
    os._exit(1)
print("held" if os.waitpid(child, 0)[1] == 0 else "lost")
"""

PATH_LOCAL, PATH_COMP = 2, 3  # of wherry/file_path.h


@pytest.fixture
def job():
    name = f"paths-{os.getpid()}"
    yield name
    for segment in Path("/dev/shm").glob(f"wherry-files-*-{name}-*"):
        segment.unlink()


@pytest.fixture
def folder(tmp_path):
    for name in ("a.root", "a.idx"):
        (tmp_path / name).write_bytes(bytes(1_000_000))
    time.sleep(0.05)  # a file that was changed 20 ms ago or less is not cached
    return tmp_path


def top(*options):
    return subprocess.run([PROGRAM, "top", "--files", "--once", "--interval", "0.05", *options], env=environment(), capture_output=True, text=True, check=True).stdout


def shown(folder, job, rules, *words):
    """What is shown of a program while it waits, as JSON and as text."""
    command = [PROGRAM, "run", "--files", folder, "--job", job, "--file-path", "auto", "--file-paths", rules, "--", sys.executable, "-c", *words]
    with subprocess.Popen(list(map(str, command)), env=environment(), cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == "read\n"
        found = json.loads(top("--json"))
        text = top()
        program.communicate("\n")
    clients = [one for one in found["clients"] if one["pid"] == program.pid and one["card"] == f"{job}-0"]
    assert len(clients) <= 1
    return (clients or [{"hits": 0}])[0], found["total"], next((line for line in text.splitlines() if line.split()[0] == str(program.pid)), "")


def test_top_shows_what_a_program_read_and_why_from_where(folder, job):
    client, total, line = shown(folder, job, "", READING, "a.root", CALLS)
    assert client["program"].startswith("python")
    assert client["hits"] > CALLS / 2
    assert client["hit_bytes"] > CALLS / 2 * 512
    assert 0 < client["fills"] <= 62
    assert client["hits"] + client["fills_served"] <= client["reads"] <= CALLS + 100
    assert total["hits"] >= client["hits"]
    assert re.search(rf" python.* {client['hits'] * 100 // client['reads']}% ", line), line


def test_the_path_is_chosen_by_the_end_of_the_name_or_for_one_descriptor(folder, job):
    def hits(*words):
        return shown(folder, job, "*.root=local,*.idx=comp", *words)[0]["hits"]

    assert hits(READING, "a.root", CALLS) == 0
    assert hits(READING, "a.idx", CALLS) > CALLS / 2
    assert hits(CHOOSING, "a.root", CALLS, PATH_COMP) > CALLS / 2
    assert hits(CHOOSING, "a.idx", CALLS, PATH_LOCAL) == 0


def test_the_c_api_sets_the_path_of_a_file_beside_the_preloaded_library(folder, tmp_path, job):
    source, program = tmp_path / "both.c", tmp_path / "both"
    source.write_text(BOTH)
    include = Path(__file__).resolve().parents[2] / "include"
    subprocess.run(["cc", "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Werror", f"-I{include}", source, "-o", program, f"-L{C_LIBRARY}", f"-Wl,-rpath,{C_LIBRARY}", "-lwherry_c"],
                   check=True)

    def printed(*words):
        return subprocess.run([*words, program, folder / "a.idx"], env=environment(WHERRY_JOB=job), capture_output=True, text=True, check=True).stdout

    assert printed() == "0 0 -22 1\n"
    assert printed(PROGRAM, "run", "--files", folder, "--job", job, "--") == "0 0 -22 0\n"


@pytest.mark.parametrize("options", [[], ["--file-path", "local"], ["--file-path", "host"], ["--file-paths", "*.db=local,*.idx=host"]])
def test_without_a_path_through_the_cache_the_program_keeps_its_posix_locks(folder, job, options):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--job", job, *options, "--", sys.executable, "-c", LOCKING, folder / "a.root"],
                            env=environment(), capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "held\n", "")


@pytest.mark.parametrize("options", [["--file-path", "auto"], ["--file-path", "comp"], ["--file-paths", "*.db=local,*.idx=comp"]])
def test_a_path_through_the_cache_is_warned_of_in_one_line(folder, job, options):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--job", job, *options, "--", "true"], env=environment(), capture_output=True, text=True)
    assert result.returncode == 0
    assert re.fullmatch(r"wherry run: --file-paths? \S+ can release POSIX locks .* --file-path local .*\n", result.stderr)


def test_a_rule_that_is_none_is_said(folder):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--file-paths", "root=local", "--", "true"], env=environment(), capture_output=True, text=True)
    assert result.returncode == 125 and "*.root=local,*.idx=comp" in result.stderr


def test_says_which_directories_are_on_a_file_system_that_is_not_cached(tmp_path):
    result = subprocess.run([PROGRAM, "run", "--no-zmq", "--no-root", "--job", f"files-{os.getpid()}", "--files", f"/proc,{tmp_path}", "--", "cat", "/proc/self/comm"],
                            env=environment(), capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "cat\n"), result.stderr
    assert "/proc: files of its file system are not cached, the kernel serves them" in result.stderr
    assert str(tmp_path) not in result.stderr or not cached(tmp_path)


def cached(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip() in ("ext2/ext3", "xfs", "btrfs", "tmpfs")
