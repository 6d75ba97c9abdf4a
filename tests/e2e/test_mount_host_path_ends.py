# SPDX-License-Identifier: Apache-2.0
"""Transfers past a mount that end early: threads that are cancelled or leave by a jump, processes that exit, servers that die."""

import os
import subprocess

import pytest
from host_path import Report, here, namespace, run, server, start  # noqa: F401
from program import PROGRAM
from waiting import WATCHDOG

MIB = 1 << 20

COMMON = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { kBytes = 1 << 20, kThreads = 4 };
#define CHECK(condition) \
  do { if (!(condition)) { fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); _exit(1); } } while (0)

static int file;
static char buffers[kThreads + 1][kBytes];
static int reads;

static void read_once(char* into) {
  CHECK(pread(file, into, kBytes, 0) == kBytes);
  CHECK(into[0] == 'x' && into[kBytes - 1] == 'x');
}
"""


def compiled(folder, code):
    source, program = folder / "program.c", folder / "program"
    source.write_text(COMMON + code)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", source, "-o", program, "-pthread"], check=True)
    return program


def run_compiled(server, here, program, *words, path="host"):
    command = [PROGRAM, "run", "--files", here, "--file-path", path, "--", program, *words]
    env = {**server.env, "WHERRY_FILES_REPORT": "1"}
    return subprocess.run(list(map(str, command)), cwd=here, env=env, capture_output=True, text=True, timeout=WATCHDOG, check=False)


@pytest.fixture
def file(tmp_path, here):
    (tmp_path / "root/file").write_bytes(b"x" * MIB)


CANCELLED = r"""
static int cleaned;
static void clean(void* ignored) { (void)ignored; __atomic_fetch_add(&cleaned, 1, __ATOMIC_SEQ_CST); }
static void* reads_on(void* number) {
  pthread_cleanup_push(clean, NULL);
  while (1) {
    read_once(buffers[(long)number]);
    __atomic_fetch_add(&reads, 1, __ATOMIC_SEQ_CST);
  }
  pthread_cleanup_pop(0);
}

int main(void) {
  CHECK((file = open("file", O_RDONLY)) >= 0);
  int rounds = 0;
  for (; rounds < 15; rounds++) {
    pthread_t threads[kThreads];
    int before = __atomic_load_n(&reads, __ATOMIC_SEQ_CST);
    for (long i = 0; i < kThreads; i++) CHECK(pthread_create(&threads[i], NULL, reads_on, (void*)i) == 0);
    while (__atomic_load_n(&reads, __ATOMIC_SEQ_CST) < before + kThreads) sched_yield();
    for (int i = 0; i < kThreads; i++) CHECK(pthread_cancel(threads[i]) == 0);
    for (int i = 0; i < kThreads; i++) {
      void* result;
      CHECK(pthread_join(threads[i], &result) == 0 && result == PTHREAD_CANCELED);
    }
    read_once(buffers[kThreads]);
  }
  CHECK(cleaned == rounds * kThreads);
  return 0;
}
"""


def test_a_thread_that_is_cancelled_in_a_read_leaves_the_file_to_the_others(server, here, tmp_path, file):
    result = run_compiled(server, here, compiled(tmp_path, CANCELLED))
    assert result.returncode == 0, result.stderr
    assert Report(result.stderr).calls("reads from the host") > 15, result.stderr


JUMPING = r"""
static sigjmp_buf place;
static volatile sig_atomic_t armed;
static int jumps;
static void jump(int number) {
  (void)number;
  if (!armed) return;
  armed = 0;
  siglongjmp(place, 1);
}
static void* waits(void* ignored) {
  (void)ignored;
  for (jumps = 0; jumps < 300;) {
    if (sigsetjmp(place, 1) == 0) {
      armed = 1;
      while (1) {
        WRITES ? (void)!pwrite(file, buffers[0], kBytes, 0) : read_once(buffers[0]);
        __atomic_fetch_add(&reads, 1, __ATOMIC_SEQ_CST);
      }
    }
    jumps++;
    int state;
    sigset_t mask;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state) == 0 && state == PTHREAD_CANCEL_ENABLE);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGALRM) && !sigismember(&mask, SIGUSR2));
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  return NULL;
}

int main(void) {
  memset(buffers[0], 'x', kBytes);
  CHECK((file = open("file", WRITES ? O_WRONLY : O_RDONLY)) >= 0);
  CHECK(WRITES ? pwrite(file, buffers[0], kBytes, 0) == kBytes : pread(file, buffers[0], kBytes, 0) == kBytes);
  struct sigaction action = {.sa_handler = jump};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  struct itimerval often = {{0, 700}, {0, 700}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  waits(NULL);
  file = open("file", O_RDONLY);
  read_once(buffers[0]);
  return 0;
}
"""


@pytest.mark.parametrize("writes", [0, 1])
def test_a_handler_may_leave_a_transfer_by_a_jump(server, here, tmp_path, file, writes):
    result = run_compiled(server, here, compiled(tmp_path, f"#define WRITES {writes}\n" + JUMPING))
    assert result.returncode == 0, result.stderr
    assert Report(result.stderr).calls("writes to the host" if writes else "reads from the host") > 0, result.stderr


ENDING = r"""
static void* reads_on(void* number) {
  while (pread(file, buffers[(long)number], kBytes, 0) == kBytes) __atomic_fetch_add(&reads, 1, __ATOMIC_SEQ_CST);
  return NULL;
}
static void* closes(void* ignored) {
  (void)ignored;
  for (int number = 3; number < 64; number++) {
    if (number != file) close(number);
  }
  return NULL;
}

int main(int count, char** words) {
  CHECK((file = open("file", O_RDONLY)) >= 0);
  read_once(buffers[kThreads]);
  pthread_t readers[kThreads], closers[2];
  for (long i = 0; i < kThreads; i++) CHECK(pthread_create(&readers[i], NULL, reads_on, (void*)i) == 0);
  while (__atomic_load_n(&reads, __ATOMIC_SEQ_CST) < 2 * kThreads) sched_yield();
  if (count > 1 && strcmp(words[1], "exit") == 0) exit(0);
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&closers[i], NULL, closes, NULL) == 0);
  for (int i = 0; i < 2; i++) CHECK(pthread_join(closers[i], NULL) == 0);
  int before = __atomic_load_n(&reads, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&reads, __ATOMIC_SEQ_CST) < before + 2 * kThreads) sched_yield();
  read_once(buffers[kThreads]);
  int other = open("other", O_RDWR | O_CREAT, 0666);
  CHECK(other >= 0);
  read_once(buffers[kThreads]);
  CHECK(lseek(other, 0, SEEK_END) == 0);
  return 0;
}
"""


@pytest.mark.parametrize("how", ["exit", "close"])
def test_a_process_that_ends_its_connections_while_threads_read_goes_on(server, here, tmp_path, file, how):
    """By exit in one thread, or by two that close all numbers at once."""
    program = compiled(tmp_path, ENDING)
    for _ in range(5):
        result = run_compiled(server, here, program, how)
        assert result.returncode == 0, result.stderr
        assert Report(result.stderr).calls("reads from the host") > 0, result.stderr


def test_after_a_servers_death_reads_are_the_kernels_for_a_while_and_then_the_hosts_again(server, here, tmp_path, file):
    code = """
def numbers():
    return len(os.listdir("/proc/self/fd"))
file = os.open("file", os.O_RDONLY)
without = numbers()
os.pread(file, 1 << 20, 0)
connected = numbers()
assert connected > without
print("begun", flush=True)
sys.stdin.readline()
expected = b"x" * (1 << 20)
assert os.pread(file, 1 << 20, 0) == expected
while numbers() < connected:
    assert os.pread(file, 1 << 20, 0) == expected
for _ in range(10):
    assert os.pread(file, 1 << 20, 0) == expected
"""
    program = start(server, here, "import os, sys\n" + code)
    assert program.stdout.readline() == "begun\n"
    server.kill()
    server.start()
    _, errors = program.communicate("go\n", timeout=WATCHDOG)
    assert program.returncode == 0, errors
    report = Report(errors)
    assert report.calls("reads from the host") >= 2, report.said
    assert report.calls("reads by the kernel") >= 1, report.said
