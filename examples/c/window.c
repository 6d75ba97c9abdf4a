// SPDX-License-Identifier: Apache-2.0
// window: registers a page and prints what a peer has written there; window TEXT: is that peer.
#include <wherry/wherry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096

static const struct wherry_options options = {0, WHERRY_WINDOWS, 0};

static int64_t show(void) {
  void* page = NULL;
  uint64_t offset = 0;
  uint64_t written = 0;
  wherry_listener listener = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  int64_t result = -posix_memalign(&page, PAGE, PAGE);
  if (result == 0) result = wherry_listen("wherry://*:2000", &options, &listener);
  if (result == 0) result = wherry_accept(listener, WHERRY_FOREVER, &stream);
  if (result == 0) result = wherry_register(stream, page, PAGE, WHERRY_WRITE, WHERRY_ANYWHERE, &offset);
  if (result == 0) result = wherry_send(stream, &offset, sizeof offset, WHERRY_FOREVER);
  /* By the time this has come, the peer has written, and this side took no part. */
  if (result > 0) result = wherry_receive_all(stream, &written, sizeof written, WHERRY_FOREVER);
  if (result == sizeof written && written <= PAGE) printf("%.*s\n", (int)written, (char*)page);
  wherry_stream_close(stream);
  wherry_listener_close(listener);
  free(page);
  return result;
}

static int64_t write_there(const char* text) {
  uint64_t offset = 0;
  const uint64_t written = strlen(text);
  wherry_stream stream = WHERRY_NONE;
  int64_t result = wherry_connect("wherry://0:2000", &options, WHERRY_TIMEOUT_DEFAULT, &stream);
  if (result == 0) result = wherry_receive_all(stream, &offset, sizeof offset, WHERRY_FOREVER);
  if (result > 0) result = wherry_vwrite_to(stream, text, written, offset, WHERRY_COMPLETE);
  if (result == 0) result = wherry_send(stream, &written, sizeof written, WHERRY_FOREVER);
  wherry_stream_close(stream);
  return result;
}

int main(int count, char** arguments) {
  const int64_t result = count > 1 ? write_there(arguments[1]) : show();
  if (result < 0) fprintf(stderr, "%s %s\n", strerror((int)-result), wherry_last_error());
  return result > 0 ? 0 : 1;
}
