// SPDX-License-Identifier: Apache-2.0
// host: prints what one worker (worker.c) sends.
#include <wherry/wherry.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  wherry_listener listener = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  char buffer[4096];
  int64_t got = 0;
  if (wherry_listen("wherry://*:2000", NULL, &listener) < 0 || wherry_accept(listener, WHERRY_FOREVER, &stream) < 0) {
    fprintf(stderr, "%s\n", wherry_last_error());
    return 1;
  }
  while ((got = wherry_receive(stream, buffer, sizeof buffer, WHERRY_FOREVER)) > 0)
    fwrite(buffer, 1, (size_t)got, stdout);
  if (got < 0) fprintf(stderr, "%s\n", strerror((int)-got));
  wherry_stream_close(stream);
  wherry_listener_close(listener);
  return got == 0 && fflush(stdout) == 0 ? 0 : 1;
}
