// SPDX-License-Identifier: Apache-2.0
// framed: prints the messages that come; framed MESSAGE...: sends them. Each arrives whole.
#include <wherry/wherry.h>

#include <stdio.h>
#include <string.h>

static int64_t receive_all(void) {
  wherry_listener listener = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  wherry_framed framed = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  int64_t result = wherry_listen("wherry://*:2000", NULL, &listener);
  if (result == 0) result = wherry_accept(listener, WHERRY_FOREVER, &stream);
  if (result == 0) result = wherry_framed_open(stream, &framed); /* the stream is the framed stream's now */
  if (result == 0) {
    while ((result = wherry_framed_receive(framed, &message, &size, WHERRY_FOREVER)) == 1)
      printf("%.*s\n", (int)size, (const char*)message); /* read where it lies, in the ring */
  }
  wherry_framed_close(framed);
  wherry_listener_close(listener);
  return result;
}

static int64_t send_all(char** messages) {
  wherry_stream stream = WHERRY_NONE;
  wherry_framed framed = WHERRY_NONE;
  int64_t result = wherry_connect("wherry://0:2000", NULL, WHERRY_TIMEOUT_DEFAULT, &stream);
  if (result == 0) result = wherry_framed_open(stream, &framed);
  if (result == 0) result = wherry_framed_hold(framed); /* many small messages: one publication, one wake-up */
  for (; result >= 0 && *messages != NULL; messages++)
    result = wherry_framed_send(framed, *messages, strlen(*messages), WHERRY_FOREVER);
  if (result >= 0) result = wherry_framed_flush(framed);
  wherry_framed_close(framed);
  return result;
}

int main(int count, char** arguments) {
  const int64_t result = count > 1 ? send_all(arguments + 1) : receive_all();
  if (result < 0) fprintf(stderr, "%s %s\n", strerror((int)-result), wherry_last_error());
  return result >= 0 && fflush(stdout) == 0 ? 0 : 1;
}
