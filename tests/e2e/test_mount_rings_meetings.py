# SPDX-License-Identifier: Apache-2.0
"""Small writes by `wherry run --files` that threads and handlers make to one descriptor at the same time."""

import subprocess

import pytest
from host_path import Report
from program import PROGRAM
from ring_programs import by_ring, card, here, namespace, server  # noqa: F401
from waiting import WATCHDOG

# Writes of numbered records, while handlers and threads write others to the same descriptor.
INTERRUPTED = r"""
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(condition) \
  do { if (!(condition)) { fprintf(stderr, "line %d: %s\n", __LINE__, #condition); _exit(1); } } while (0)
enum { kWriters = 4, kMost = 300000, kLoops = 3000, kAlarms = 20, kBefore = 200, kRounds = 12 };
struct Record { unsigned writer, number; };
static int file, jumps, alarms;
static sigjmp_buf place;
static volatile sig_atomic_t armed;
static unsigned char written[kWriters][kMost];  /* 1: has returned, 2: was left by a jump */
static unsigned begun[kWriters];

static void write_record(unsigned writer) {
  struct Record record = {writer, begun[writer]++};
  CHECK(record.number < kMost);
  written[writer][record.number] = 2;
  CHECK(write(file, &record, sizeof record) == sizeof record);
  written[writer][record.number] = 1;
}
static void on_alarm(int number) {
  (void)number;
  alarms++;
  write_record(1);
  if (jumps && armed && alarms % 4 == 0) siglongjmp(place, 1);
}
static void* write_many(void* writer) {
  for (int i = 0; i < kLoops; i++) write_record((unsigned)(long)writer);
  return NULL;
}

static void play(char** words) {
  memset(written, 0, sizeof written);
  memset(begun, 0, sizeof begun);
  alarms = 0;
  int access = strcmp(words[3], "both") == 0 ? O_RDWR : O_WRONLY, appends = strcmp(words[3], "append") == 0 ? O_APPEND : 0;
  CHECK((file = open(words[1], access | O_CREAT | O_TRUNC | appends, 0644)) >= 0);
  for (int i = 0; i < kBefore; i++) write_record(0);
  if (strcmp(words[2], "threads") == 0) {
    pthread_t threads[kWriters];
    for (long i = 0; i < kWriters; i++) CHECK(pthread_create(&threads[i], NULL, write_many, (void*)i) == 0);
    for (int i = 0; i < kWriters; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  } else {
    struct sigaction action = {.sa_handler = on_alarm};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    sigsetjmp(place, 1);
    armed = 1;
    while (alarms < kAlarms && begun[0] < kMost) write_record(0);
    armed = 0;
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  }
  struct stat status;
  off_t size = lseek(file, 0, SEEK_CUR);
  CHECK(fstat(file, &status) == 0 && status.st_size == size && size % sizeof(struct Record) == 0);
  CHECK(close(file) == 0 && (file = open(words[1], O_RDONLY)) >= 0);
  struct Record* records = malloc(size);
  CHECK(read(file, records, size) == size);
  for (off_t i = 0; i < size / (off_t)sizeof *records; i++) {
    CHECK(records[i].writer < kWriters && records[i].number < begun[records[i].writer]);
    CHECK(written[records[i].writer][records[i].number] != 0);
    written[records[i].writer][records[i].number] = 0;
  }
  for (int writer = 0; writer < kWriters; writer++) {
    for (unsigned i = 0; i < begun[writer]; i++) CHECK(written[writer][i] != 1);
  }
  free(records);
  CHECK(close(file) == 0);
}

int main(int count, char** words) {
  CHECK(count == 4);
  jumps = strcmp(words[2], "jumps") == 0;
  for (int i = 0; i < kRounds; i++) play(words);
  return 0;
}
"""


@pytest.mark.parametrize("how", ["write", "append", "both"])
@pytest.mark.parametrize("by", ["handlers", "jumps", "threads"])
def test_writes_that_meet_in_one_descriptor_are_whole_and_in_the_file_once(server, here, tmp_path, by, how):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(INTERRUPTED)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", source, "-o", program, "-pthread"], check=True)
    result = subprocess.run([PROGRAM, "run", "--files", here, "--", program, here / "file", by, how], capture_output=True, text=True,
                            env={**server.env, "WHERRY_FILES_REPORT": "1"}, timeout=WATCHDOG, check=False)
    assert result.returncode == 0, result.stderr
    assert by_ring(Report(result.stderr)) > 100, result.stderr
