// SPDX-License-Identifier: Apache-2.0
// event_loop COUNT: prints what COUNT workers (worker.c) send, at most 64, in an event loop of the program's own.
#include <wherry/wherry.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

/* Receives until nothing is left, which silences the descriptor. Not 0 at the end, or after a failure. */
static int print(wherry_stream stream) {
  char buffer[4096];
  int64_t got = 0;
  while ((got = wherry_try_receive(stream, buffer, sizeof buffer)) > 0) fwrite(buffer, 1, (size_t)got, stdout);
  if (got < 0 && got != -EAGAIN) fprintf(stderr, "%s\n", strerror((int)-got));
  return got != -EAGAIN;
}

int main(int count, char** arguments) {
  struct pollfd watched[1 + MOST]; /* the listener, and the streams that have come */
  wherry_stream streams[1 + MOST];
  wherry_listener listener = WHERRY_NONE;
  const int wanted = count == 2 ? atoi(arguments[1]) : 0;
  int come = 0;
  int open = 0;
  if (wanted < 1 || wanted > MOST) return 2;
  if (wherry_listen("wherry://*:2000", NULL, &listener) < 0) {
    fprintf(stderr, "%s\n", wherry_last_error());
    return 1;
  }
  watched[0] = (struct pollfd){wherry_listener_descriptor(listener), POLLIN, 0};
  while (come < wanted || open > 0) {
    if (poll(watched, (nfds_t)(1 + come), -1) < 0) continue;
    for (int i = 1; i <= come; i++) {
      if (watched[i].revents == 0 || !print(streams[i])) continue;
      wherry_stream_close(streams[i]);
      watched[i] = (struct pollfd){-1, 0, 0}; /* which poll passes over */
      open--;
    }
    while (come < wanted && wherry_accept(listener, 0, &streams[1 + come]) == 0) {
      come++;
      open++;
      watched[come] = (struct pollfd){wherry_receive_descriptor(streams[come]), POLLIN, 0};
    }
  }
  wherry_listener_close(listener);
  return fflush(stdout) == 0 ? 0 : 1;
}
