# SPDX-License-Identifier: Apache-2.0
"""wherry run --files: how files are read, as the user chooses it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from in_place_reads import CALLS, READING, in_place
from program import PROGRAM, environment

LIBRARY = Path(PROGRAM).resolve().parent.parent / "lib/wherry/files/libwherry-preload.so"
C_LIBRARY = Path(PROGRAM).resolve().parent.parent / "src/capi"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="a sanitizer's build has no library that programs could load")

CHOOSING = "import ctypes; choose = ctypes.CDLL(None).wherry_fd_set_path; assert choose(99, 1) == -1 and choose(0, 0) == -1 and choose(0, 6) == -1\n" + READING.replace(
    "before,", "assert choose(file, int(sys.argv[3])) == 0\nbefore,", 1
)
# Of the C API, beside the preloaded library: each has a call that sets a path, and neither answers for the other.
BOTH = """
#include <wherry/wherry.h>

#include <fcntl.h>
#include <stdio.h>

int main(int count, char** words) {
  wherry_file file = WHERRY_NONE;
  const int opened = wherry_file_open(words[count - 1], O_RDONLY, 0, NULL, &file);
  printf("%d %d %d ", opened, wherry_file_set_path(file, WHERRY_PATH_KERNEL), wherry_file_set_path(file, WHERRY_PATH_AS_SET));
  printf("%d\\n", wherry_fd_set_path != NULL ? wherry_fd_set_path(0, WHERRY_PATH_KERNEL) : 1);
  return 0;
}
"""
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

PATH_KERNEL, PATH_CACHE = 2, 3  # of wherry/file_path.h


@pytest.fixture
def job():
    return f"paths-{os.getpid()}"


@pytest.fixture
def folder(tmp_path):
    for name in ("a.root", "a.idx"):
        (tmp_path / name).write_bytes(bytes(1_000_000))
    return tmp_path


@pytest.mark.parametrize("options, some", [([], True), (["--file-path", "kernel"], False), (["--file-path", "auto"], True), (["--file-path", "cache"], True)])
def test_reads_are_made_in_place_or_by_the_kernel_as_the_path_says(folder, options, some):
    assert (in_place(folder, options, READING, "a.root", CALLS) > CALLS / 2) == some


GO = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
NOTE
int main(int count, char** words) {
  char page[4096];
  const int file = open(words[1], O_RDONLY);
  for (int i = 0; i < 30000; i++) if (pread(file, page, 512, i % 1000 * 512) != 512) return 1;
  char text[4096] = "";
  const int io = open("/proc/self/io", O_RDONLY);
  if (read(io, text, sizeof(text) - 1) < 0) return 1;
  fputs(text, stdout);
  return 0;
}
"""
NOTE = 'asm(".section .note.go.buildid,\\"a\\",@note; .balign 4; .long 4, 4, 4; .ascii \\"Go\\\\0\\\\0\\"; .long 0; .text");'


@pytest.mark.parametrize("note, some", [("", True), (NOTE, False)])
def test_a_program_of_go_is_left_to_the_kernel(folder, tmp_path, note, some):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(GO.replace("NOTE", note))
    subprocess.run(["cc", source, "-o", program], check=True)
    text = subprocess.run([PROGRAM, "run", "--files", folder, "--", program, folder / "a.root"], env=environment(), capture_output=True, text=True, check=True).stdout
    assert (int(text.split("syscr: ")[1].split()[0]) < CALLS / 2) == some


def test_the_path_is_chosen_by_the_end_of_the_name_or_for_one_descriptor(folder):
    def reads(*words):
        return in_place(folder, ["--file-path", "auto", "--file-paths", "*.root=kernel,*.idx=cache"], *words)

    assert reads(READING, "a.root", CALLS) <= 0
    assert reads(READING, "a.idx", CALLS) > CALLS / 2
    assert reads(CHOOSING, "a.root", CALLS, PATH_CACHE) > CALLS / 2
    assert reads(CHOOSING, "a.idx", CALLS, PATH_KERNEL) <= 0


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


# Loads the C API, reads a file in place, unloads it again, and then has a fault of its own.
UNLOADING = """
#include <wherry/wherry.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void caught(int signal) { _exit(signal == SIGSEGV ? 7 : 1); }

int main(int count, char** words) {
  char bytes[4096];
  wherry_file file = WHERRY_NONE;
  signal(SIGSEGV, caught);
  void* library = dlopen(words[count - 2], RTLD_NOW);
  int (*open)(const char*, int, mode_t, const struct wherry_file_options*, wherry_file*) = dlsym(library, "wherry_file_open");
  int64_t (*read)(wherry_file, void*, size_t, uint64_t, int) = dlsym(library, "wherry_file_pread");
  int (*close)(wherry_file) = dlsym(library, "wherry_file_close");
  if (open(words[count - 1], O_RDONLY, 0, NULL, &file) != 0) return 2;
  for (int i = 0; i < 1000; i++) if (read(file, bytes, sizeof bytes, 0, WHERRY_PATH_CACHE) != sizeof bytes) return 3;
  if (close(file) != 0 || dlclose(library) != 0) return 4;
  return *(volatile int*)words[count];
}
"""


def test_a_program_that_unloads_the_c_api_gets_its_own_faults(folder, tmp_path):
    source, program = tmp_path / "unloading.c", tmp_path / "unloading"
    source.write_text(UNLOADING)
    include = Path(__file__).resolve().parents[2] / "include"
    subprocess.run(["cc", "-std=c99", "-D_GNU_SOURCE", "-w", f"-I{include}", source, "-o", program], check=True)
    assert subprocess.run([program, C_LIBRARY / "libwherry_c.so", folder / "a.idx"], env=environment()).returncode == 7


# Reads a file in place, blocks or ignores SIGBUS, makes the page that counts truncations shorter, and reads on.
CUT = """
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static char page[4096];

static int reads(int fd) {
  for (int i = 0; i < 5000; i++) if (pread(fd, page, sizeof page, i % 50 * 4096) != sizeof page) return 0;
  return 1;
}

int main(int count, char** words) {
  const int fd = open(words[1], O_RDONLY);
  glob_t pages;
  sigset_t all;
  if (!reads(fd)) return 1;
  sigfillset(&all);
  if (strcmp(words[2], "block") == 0) sigprocmask(SIG_BLOCK, &all, NULL);
  if (strcmp(words[2], "ignore") == 0) signal(SIGBUS, SIG_IGN);
  if (glob("/dev/shm/wherry-truncations-*", 0, NULL, &pages) != 0 || truncate(pages.gl_pathv[0], 0) != 0) return 2;
  usleep(30000);
  return reads(fd) ? 0 : 3;
}
"""
OWN_SHM = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]


@pytest.mark.skipif(subprocess.run([*OWN_SHM, "true"], capture_output=True).returncode != 0, reason="no mount namespaces here")
@pytest.mark.parametrize("how", ["catch", "block", "ignore"])
def test_a_program_outlives_the_end_of_the_page_of_truncations(folder, tmp_path, how):
    source, program = tmp_path / "cut.c", tmp_path / "cut"
    source.write_text(CUT)
    subprocess.run(["cc", source, "-o", program], check=True)
    command = [*OWN_SHM, PROGRAM, "run", "--files", folder, "--file-path", "cache", "--", program, folder / "a.idx", how]
    assert subprocess.run(list(map(str, command)), env=environment()).returncode == 0


@pytest.mark.parametrize("options", [[], ["--file-path", "kernel"], ["--file-path", "auto"], ["--file-path", "cache"]])
def test_the_program_keeps_its_posix_locks_by_each_path(folder, job, options):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--job", job, *options, "--", sys.executable, "-c", LOCKING, folder / "a.root"],
                            env=environment(), capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "held\n", "")


@pytest.mark.parametrize("old, new", [("local", "kernel"), ("comp", "cache"), ("os", "card")])
def test_an_old_word_of_a_path_is_taken_and_the_new_one_is_named(folder, job, old, new):
    for options in (["--file-path", old], ["--file-paths", f"*.idx={old}"]):
        result = subprocess.run([PROGRAM, "run", "--files", folder, "--job", job, *options, "--", "true"], env=environment(), capture_output=True, text=True)
        assert result.returncode == 0
        assert re.fullmatch(rf"wherry run: --file-paths? {old}: the word is {new} now; .*\n", result.stderr)


@pytest.mark.parametrize("word", ["card", "host"])
def test_a_path_to_files_of_a_host_is_the_kernels_here_and_that_is_said(folder, job, word):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--job", job, "--file-path", word, "--", "true"], env=environment(), capture_output=True, text=True)
    assert result.returncode == 0
    assert re.fullmatch(rf"wherry run: --file-path {word}: .* choose auto, cache or kernel\n", result.stderr)


def test_a_rule_that_is_none_is_said(folder):
    result = subprocess.run([PROGRAM, "run", "--files", folder, "--file-paths", "root=kernel", "--", "true"], env=environment(), capture_output=True, text=True)
    assert result.returncode == 125 and "*.root=kernel,*.idx=cache" in result.stderr


def test_says_which_directories_are_on_a_file_system_that_is_not_read_in_place(tmp_path):
    result = subprocess.run([PROGRAM, "run", "--no-zmq", "--no-root", "--job", f"files-{os.getpid()}", "--files", f"/proc,{tmp_path}", "--", "cat", "/proc/self/comm"],
                            env=environment(), capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "cat\n"), result.stderr
    assert "/proc: files of its file system are not read in place, the kernel serves them" in result.stderr
    assert str(tmp_path) not in result.stderr or not is_mapped(tmp_path)


def is_mapped(folder):
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip() in ("ext2/ext3", "xfs", "btrfs", "tmpfs")
