// SPDX-License-Identifier: Apache-2.0
#include <wherry/wherry.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  const char* text = "hello from a card, in C\n";
  wherry_stream stream = WHERRY_NONE;
  if (wherry_connect("wherry://0:2000", NULL, WHERRY_TIMEOUT_DEFAULT, &stream) < 0) {
    fprintf(stderr, "%s\n", wherry_last_error());
    return 1;
  }
  int64_t sent = wherry_send(stream, text, strlen(text), WHERRY_FOREVER);
  wherry_stream_close(stream);
  return sent == (int64_t)strlen(text) ? 0 : 1;
}
