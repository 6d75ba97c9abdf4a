// SPDX-License-Identifier: Apache-2.0
// subscribe: takes the messages of publish.c and prints the size and the first byte of each.
#include <wherry/wherry.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  int result = wherry_subscriber_open(NULL, &subscriber);
  if (result == 0) result = wherry_subscriber_connect(subscriber, "wherry://0:2000", WHERRY_TIMEOUT_DEFAULT);
  if (result == 0) {
    /* Each take releases the message before, and its memory. */
    while ((result = wherry_subscriber_take(subscriber, WHERRY_FOREVER, &message)) == 1)
      printf("%zu bytes of %d\n", message.size, *(const unsigned char*)message.bytes);
  }
  if (result < 0) fprintf(stderr, "%s %s\n", strerror(-result), wherry_last_error());
  wherry_message_release(&message);
  wherry_subscriber_close(subscriber);
  return result == 0 && fflush(stdout) == 0 ? 0 : 1;
}
