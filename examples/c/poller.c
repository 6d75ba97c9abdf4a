// SPDX-License-Identifier: Apache-2.0
// poller COUNT: prints what COUNT workers (worker.c) send, at most 64. A thousand idle ones would cost nothing.
#include <wherry/wherry.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST     64
#define LISTENER MOST /* its token; those of the streams are their places */

static wherry_stream streams[MOST];

/* Not 0 at the end, or after a failure. */
static int print(wherry_stream stream) {
  char buffer[4096];
  const int64_t got = wherry_try_receive(stream, buffer, sizeof buffer);
  if (got > 0) fwrite(buffer, 1, (size_t)got, stdout);
  if (got < 0 && got != -EAGAIN) fprintf(stderr, "%s\n", strerror((int)-got));
  return got <= 0 && got != -EAGAIN;
}

int main(int count, char** arguments) {
  wherry_listener listener = WHERRY_NONE;
  wherry_poller poller = WHERRY_NONE;
  const int wanted = count == 2 ? atoi(arguments[1]) : 0;
  int come = 0;
  int ended = 0;
  if (wanted < 1 || wanted > MOST) return 2;
  if (wherry_listen("wherry://*:2000", NULL, &listener) < 0 || wherry_poller_open(&poller) < 0 ||
      wherry_poller_add_descriptor(poller, wherry_listener_descriptor(listener), LISTENER) < 0) {
    fprintf(stderr, "%s\n", wherry_last_error());
    return 1;
  }
  while (ended < wanted) {
    uint64_t ready[16];
    const int64_t reports = wherry_poller_wait(poller, ready, 16, WHERRY_FOREVER);
    for (int64_t i = 0; i < reports; i++) {
      if (ready[i] != LISTENER) {
        if (!print(streams[ready[i]])) continue;
        wherry_stream_close(streams[ready[i]]); /* which takes it out of the poller */
        ended++;
      }
      while (come < wanted && wherry_accept(listener, 0, &streams[come]) == 0) {
        if (wherry_poller_add(poller, streams[come], (uint64_t)come) < 0) return 1;
        come++;
      }
    }
  }
  wherry_poller_close(poller);
  wherry_listener_close(listener);
  return fflush(stdout) == 0 ? 0 : 1;
}
