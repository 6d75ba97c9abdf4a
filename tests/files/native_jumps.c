// SPDX-License-Identifier: Apache-2.0
//
// files_native_jumps CASE FILE: reads FILE often enough to be read in place, and leaves a call of syscall() by a jump out
// of a handler. Prints whether the thread can still be cancelled: the same natively and by wherry run --files. An
// ordinary program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kRecord = 512, kReads = 3000 };

static sigjmp_buf back;

static void jump_back(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

/// The signal is pending, and its handler runs as soon as the call has changed the mask.
static void leave_a_call_that_changes_the_mask(void) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  signal(SIGUSR1, jump_back);
  sigprocmask(SIG_BLOCK, &one, NULL);
  raise(SIGUSR1);
  if (sigsetjmp(back, 0) == 0) {
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, NULL, (size_t)8);
    printf("returned\n");
  }
}

static void leave_a_call_that_sleeps(void) {
  const struct timespec minute = {60, 0};
  signal(SIGALRM, jump_back);
  if (sigsetjmp(back, 1) == 0) {
    ualarm(20000, 0);
    syscall(SYS_nanosleep, &minute, NULL);
    printf("returned\n");
  }
}

int main(int words, char** word) {
  if (words != 3 || (strcmp(word[1], "mask") != 0 && strcmp(word[1], "sleep") != 0)) {
    fprintf(stderr, "usage: files_native_jumps mask|sleep FILE\n");
    return 2;
  }
  char record[kRecord];
  const int fd = open(word[2], O_RDONLY);
  for (int i = 0; i < kReads; i++) {
    if (pread(fd, record, kRecord, kRecord) != kRecord) return 1;
  }
  if (strcmp(word[1], "mask") == 0)
    leave_a_call_that_changes_the_mask();
  else
    leave_a_call_that_sleeps();
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  printf("%s\n", before == PTHREAD_CANCEL_ENABLE ? "can be cancelled" : "cannot be cancelled");
  return 0;
}
