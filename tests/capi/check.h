/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests in C share: checks that end the program, and processes. */
#ifndef WHERRY_TESTS_CAPI_CHECK_H
#define WHERRY_TESTS_CAPI_CHECK_H

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wherry.h>

#define ALWAYS WHERRY_FOREVER          /* the test's watchdog is sooner */
#define SOON   ((int64_t)20 * 1000000) /* passes, in calls that must time out */

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) failed(__FILE__, __LINE__, #condition, 0, 0); \
  } while (0)
/* Two whole numbers. */
#define SAME(got, wanted)                                                                    \
  do {                                                                                       \
    const int64_t got_ = (int64_t)(got), wanted_ = (int64_t)(wanted);                        \
    if (got_ != wanted_) failed(__FILE__, __LINE__, #got " is not " #wanted, got_, wanted_); \
  } while (0)

static inline void failed(const char* file, int line, const char* what, int64_t got, int64_t wanted) {
  fprintf(stderr, "%s:%d: %s: %" PRId64 ", %" PRId64 " (%s)\n", file, line, what, got, wanted, wherry_last_error());
  _exit(1);
}

/* A job of its own, so that no two tests meet. */
static inline void begin(const char* name) {
  char job[64];
  snprintf(job, sizeof job, "capi-%s-%ld", name, (long)getpid());
  CHECK(setenv("WHERRY_JOB", job, 1) == 0);
}

/* A child that runs `body` and ends with its result; it does not outlive a test that fails. */
static inline pid_t in_child(int (*body)(const char*), const char* address) {
  pid_t child = 0;
  fflush(NULL);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body(address));
  }
  return child;
}

static inline void expect_success(pid_t child) {
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
}

static inline void kill_it(pid_t child) {
  int status = 0;
  CHECK(kill(child, SIGKILL) == 0);
  SAME(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status));
}

/* Until it is killed. */
static inline int stay(void) {
  while (pause() != 0) {
  }
  return 1;
}

static inline wherry_listener listen_there(const struct wherry_options* options, char* address, size_t size) {
  wherry_listener listener = WHERRY_NONE;
  SAME(wherry_listen("wherry+shm://*:*", options, &listener), 0);
  CHECK(wherry_listener_address(listener, address, size) > 0);
  return listener;
}

#endif
