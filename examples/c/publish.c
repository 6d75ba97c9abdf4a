// SPDX-License-Identifier: Apache-2.0
// publish COUNT: waits for COUNT subscribers (subscribe.c) and publishes ten messages, which none of them copies.
#include <wherry/wherry.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)1 << 20)

int main(int count, char** arguments) {
  wherry_publisher publisher = WHERRY_NONE;
  wherry_loan loan = WHERRY_NONE;
  int64_t result = 0;
  if (count != 2) return 2;
  result = wherry_publisher_open(NULL, &publisher);
  if (result == 0) result = wherry_publisher_listen(publisher, "wherry://*:2000");
  if (result == 0) result = wherry_publisher_admit(publisher, strtoul(arguments[1], NULL, 10), WHERRY_FOREVER);
  for (int number = 0; result >= 0 && number < 10; number++) {
    result = wherry_publisher_loan(publisher, BYTES, WHERRY_FOREVER, &loan);
    if (result < 0) break;
    memset(loan.bytes, number, loan.size); /* once, where it will be read */
    result = wherry_publisher_publish(publisher, &loan, WHERRY_FOREVER);
  }
  if (result < 0) fprintf(stderr, "%s %s\n", strerror((int)-result), wherry_last_error());
  wherry_loan_release(&loan);
  wherry_publisher_close(publisher); /* subscribers take what was published, then the end */
  return result < 0 ? 1 : 0;
}
