/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes, in C: the child echoes what the parent sends, then the parent's end makes it leave. */
#include <wherry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS  10000
#define TIMEOUT ((int64_t)3600 * 1000000000) /* the test's watchdog is sooner */

static void fail(const char* what, int64_t error) {
  fprintf(stderr, "%s: %s (%s)\n", what, strerror((int)-error), wherry_last_error());
  exit(1);
}

static int echo(const char* address) {
  wherry_stream stream = WHERRY_NONE;
  char text[64];
  int64_t n = wherry_connect(address, NULL, TIMEOUT, &stream);
  if (n < 0) fail("connect", n);
  while ((n = wherry_receive(stream, text, sizeof text, TIMEOUT)) > 0) {
    const int64_t sent = wherry_send(stream, text, (size_t)n, TIMEOUT);
    if (sent != n) fail("echo", sent);
  }
  if (n != 0) fail("receive in the child", n);
  wherry_stream_close(stream);
  return 0;
}

static void play(wherry_stream stream) {
  int i;
  for (i = 0; i < ROUNDS; ++i) {
    char text[64], answer[64];
    const int length = snprintf(text, sizeof text, "message %d", i);
    int64_t n = wherry_send(stream, text, (size_t)length, TIMEOUT);
    if (n != length) fail("send", n);
    n = wherry_receive_all(stream, answer, (size_t)length, TIMEOUT);
    if (n != length || memcmp(text, answer, (size_t)length) != 0) fail("the answer is another", n);
  }
}

int main(void) {
  wherry_listener listener = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  char job[32], address[64];
  int status = 0, error;
  pid_t child;
  snprintf(job, sizeof job, "capi-%ld", (long)getpid());
  setenv("WHERRY_JOB", job, 1);
  if ((error = wherry_listen("wherry://*:*", NULL, &listener)) < 0) fail("listen", error);
  wherry_listener_address(listener, address, sizeof address);
  child = fork();
  if (child == 0) _exit(echo(address));
  if ((error = wherry_accept(listener, TIMEOUT, &stream)) < 0) fail("accept", error);
  wherry_listener_close(listener);
  play(stream);
  wherry_stream_close(stream);
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child failed", 0);
  printf("%d messages there and back, Wherry %s\n", ROUNDS, wherry_version());
  return 0;
}
