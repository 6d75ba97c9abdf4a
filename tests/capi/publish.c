/* SPDX-License-Identifier: Apache-2.0 */
/* Publishers and subscribers in several processes: loans, full queues, full pools, deaths, forks. */
#include <errno.h>

#include "check.h"

#define MESSAGES 500
#define POOL     (64 << 10)

static const struct wherry_publisher_options small = {POOL, WHERRY_PREFAULT, 0};

static wherry_publisher listening(char* address, size_t size) {
  wherry_publisher publisher = WHERRY_NONE;
  SAME(wherry_publisher_open(&small, &publisher), 0);
  SAME(wherry_publisher_listen(publisher, "wherry+shm://*:*"), 0);
  CHECK(wherry_publisher_address(publisher, address, size) > 0);
  return publisher;
}

static wherry_subscriber subscribed(const char* address, size_t queue, uint32_t overflow) {
  struct wherry_subscriber_options options = {queue, overflow, 0, {0, 0}};
  wherry_subscriber subscriber = WHERRY_NONE;
  SAME(wherry_subscriber_open(&options, &subscriber), 0);
  SAME(wherry_subscriber_start_connect(subscriber, address, ALWAYS), 0);
  return subscriber;
}

/* Both in this process: what the publisher lets in the subscriber completes. */
static void join(wherry_publisher publisher, wherry_subscriber subscriber) {
  SAME(wherry_publisher_admit(publisher, 1, ALWAYS), 1);
  SAME(wherry_subscriber_admit(subscriber, 1, ALWAYS), 1);
  SAME(wherry_publisher_subscribers(publisher), 1);
  SAME(wherry_subscriber_publishers(subscriber), 1);
}

static int publish_number(wherry_publisher publisher, int number, int64_t timeout_ns) {
  wherry_loan loan = WHERRY_NONE;
  const int lent = wherry_publisher_loan(publisher, sizeof number, timeout_ns, &loan);
  int published = 0;
  if (lent < 0) return lent;
  memcpy(loan.bytes, &number, sizeof number);
  published = wherry_publisher_publish(publisher, &loan, timeout_ns);
  if (published < 0) wherry_loan_release(&loan);
  CHECK(loan.pool == NULL && loan.bytes == NULL && loan.size == 0 && loan.block == 0);
  return published;
}

static int number_in(const wherry_message* message) {
  int number = 0;
  SAME(message->size, sizeof number);
  memcpy(&number, message->bytes, sizeof number);
  return number;
}

static int take_all(const char* address) {
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  struct wherry_peer peer;
  int i;
  SAME(wherry_subscriber_open(NULL, &subscriber), 0);
  SAME(wherry_subscriber_connect(subscriber, address, ALWAYS), 0);
  for (i = 0; i < MESSAGES; ++i) {
    SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
    SAME(message.size, 100 + i);
    CHECK(((const char*)message.bytes)[99 + i] == (char)i);
    SAME(wherry_message_publisher(&message, &peer), 0);
    SAME(peer.pid, getppid());
    if (i % 2 == 0) wherry_message_release(&message);
  }
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  SAME(message.size, 0);
  CHECK(message.connection != NULL);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 0);
  CHECK(message.connection == NULL && message.bytes == NULL);
  SAME(wherry_message_publisher(&message, &peer), -EINVAL);
  wherry_subscriber_close(subscriber);
  return 0;
}

static void every_subscriber_takes_all_and_then_the_end(void) {
  char address[64];
  wherry_publisher publisher = listening(address, sizeof address);
  const pid_t one = in_child(take_all, address), two = in_child(take_all, address);
  wherry_loan loan = WHERRY_NONE;
  int i;
  SAME(wherry_publisher_pool_bytes(publisher), POOL);
  SAME(wherry_publisher_admit(publisher, 2, ALWAYS), 2);
  for (i = 0; i < MESSAGES; ++i) {
    SAME(wherry_publisher_loan(publisher, 1000, ALWAYS, &loan), 0);
    SAME(loan.size, 1000);
    memset(loan.bytes, i, loan.size);
    SAME(wherry_loan_shorten(&loan, 1001), -EINVAL);
    SAME(wherry_loan_shorten(&loan, (size_t)(100 + i)), 0);
    SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  }
  SAME(wherry_publisher_loan(publisher, 0, ALWAYS, &loan), 0);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  wherry_publisher_close(publisher);
  expect_success(one);
  expect_success(two);
}

static void a_full_queue_blocks_or_drops_the_oldest(void) {
  char address[64];
  wherry_publisher publisher = listening(address, sizeof address);
  wherry_subscriber subscriber = subscribed(address, 4, WHERRY_OVERFLOW_WAIT);
  wherry_loan loan = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  int i;
  join(publisher, subscriber);
  CHECK(wherry_publisher_descriptor(publisher) >= 0 && wherry_subscriber_descriptor(subscriber) >= 0);
  SAME(wherry_subscriber_try_take(subscriber, &message), -EAGAIN);
  SAME(wherry_subscriber_take(subscriber, SOON, &message), -ETIMEDOUT);
  for (i = 0; i < 4; ++i) SAME(publish_number(publisher, i, ALWAYS), 0);
  SAME(wherry_publisher_try_loan(publisher, 8, &loan), 0);
  SAME(wherry_publisher_try_publish(publisher, &loan), -EAGAIN);
  SAME(wherry_publisher_publish(publisher, &loan, SOON), -ETIMEDOUT);
  CHECK(loan.pool != NULL); /* a failure keeps it */
  SAME(wherry_subscriber_try_take(subscriber, &message), 1);
  SAME(number_in(&message), 0);
  wherry_message_release(&message);
  wherry_message_release(&message); /* does nothing */
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), -EINVAL);
  wherry_subscriber_close(subscriber);

  subscriber = subscribed(address, 4, WHERRY_OVERFLOW_DROP_OLDEST);
  while (wherry_publisher_admit(publisher, 1, ALWAYS) != 1 || wherry_subscriber_admit(subscriber, 0, 0) != 1) {
  }
  for (i = 0; i < 10; ++i) SAME(publish_number(publisher, i, ALWAYS), 0);
  SAME(wherry_subscriber_dropped(subscriber), 6);
  for (i = 6; i < 10; ++i) {
    SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
    SAME(number_in(&message), i);
  }
  wherry_message_release(&message);
  wherry_subscriber_close(subscriber);
  wherry_publisher_close(publisher);
}

static void a_pool_in_use_blocks_and_what_the_program_holds_itself_does_not(void) {
  char address[64];
  wherry_publisher publisher = listening(address, sizeof address);
  wherry_subscriber subscriber = subscribed(address, 4, WHERRY_OVERFLOW_WAIT);
  wherry_loan loan = WHERRY_NONE, other = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  join(publisher, subscriber);
  SAME(wherry_publisher_loan(publisher, POOL + 1, ALWAYS, &loan), -EMSGSIZE);
  SAME(wherry_publisher_loan(publisher, POOL, ALWAYS, &loan), 0);
  SAME(wherry_publisher_loan(publisher, POOL, ALWAYS, &other), -ENOBUFS);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  SAME(wherry_publisher_try_loan(publisher, POOL, &loan), -EAGAIN);
  SAME(wherry_publisher_loan(publisher, POOL, SOON, &loan), -ETIMEDOUT);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  wherry_message_release(&message);
  SAME(wherry_publisher_loan(publisher, POOL, ALWAYS, &loan), 0);
  SAME(wherry_publisher_cancel(publisher), 0);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), -ECANCELED);
  SAME(wherry_subscriber_cancel(subscriber), 0);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), -ECANCELED);
  wherry_publisher_close(publisher);
  memset(loan.bytes, 1, loan.size); /* a loan may outlive its publisher */
  wherry_loan_release(&loan);
  wherry_loan_release(&loan);
  wherry_subscriber_close(subscriber);
}

static int publish_two_and_stay(const char* address) {
  wherry_publisher publisher = WHERRY_NONE;
  SAME(wherry_publisher_open(&small, &publisher), 0);
  SAME(wherry_publisher_connect(publisher, address, ALWAYS), 0);
  SAME(publish_number(publisher, 1, ALWAYS), 0);
  SAME(publish_number(publisher, 2, ALWAYS), 0);
  return stay();
}

static void all_that_a_killed_publisher_published_comes_before_the_error(void) {
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_message first = WHERRY_NONE, message = WHERRY_NONE;
  char address[64];
  pid_t child = 0;
  SAME(wherry_subscriber_open(NULL, &subscriber), 0);
  SAME(wherry_subscriber_listen(subscriber, "wherry+shm://*:*"), 0);
  CHECK(wherry_subscriber_address(subscriber, address, sizeof address) > 0);
  child = in_child(publish_two_and_stay, address);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &first), 1);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  SAME(number_in(&message), 2);
  kill_it(child);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), -ECONNRESET);
  SAME(wherry_subscriber_publishers(subscriber), 0);
  wherry_subscriber_close(subscriber);
  SAME(number_in(&first), 1);
  wherry_message_release(&first);
}

static int take_one_and_stay(const char* address) {
  wherry_subscriber subscriber = subscribed(address, 4, WHERRY_OVERFLOW_WAIT);
  wherry_message message = WHERRY_NONE;
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  return stay();
}

static void a_killed_subscriber_gives_its_messages_back(void) {
  char address[64];
  wherry_publisher publisher = listening(address, sizeof address);
  const pid_t child = in_child(take_one_and_stay, address);
  wherry_loan loan = WHERRY_NONE;
  SAME(wherry_publisher_admit(publisher, 1, ALWAYS), 1);
  SAME(wherry_publisher_loan(publisher, POOL, ALWAYS, &loan), 0);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  SAME(wherry_publisher_loan(publisher, POOL, SOON, &loan), -ETIMEDOUT);
  kill_it(child);
  SAME(wherry_publisher_loan(publisher, POOL, ALWAYS, &loan), 0);
  SAME(wherry_publisher_subscribers(publisher), 0);
  wherry_loan_release(&loan);
  wherry_publisher_close(publisher);
}

static wherry_publisher inherited_publisher;
static wherry_subscriber inherited_subscriber;
static wherry_message inherited_message;

static int close_the_copies(const char* unused) {
  (void)unused;
  wherry_message_release(&inherited_message);
  wherry_subscriber_close(inherited_subscriber);
  wherry_publisher_close(inherited_publisher);
  return 0;
}

static void a_forked_child_that_closes_its_copies_ends_nothing(void) {
  char address[64];
  wherry_publisher publisher = listening(address, sizeof address);
  wherry_subscriber subscriber = subscribed(address, 2, WHERRY_OVERFLOW_WAIT);
  wherry_message message = WHERRY_NONE;
  wherry_loan loan = WHERRY_NONE;
  join(publisher, subscriber);
  SAME(publish_number(publisher, 1, ALWAYS), 0);
  SAME(publish_number(publisher, 2, ALWAYS), 0);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  inherited_publisher = publisher;
  inherited_subscriber = subscriber;
  inherited_message = message;
  expect_success(in_child(close_the_copies, NULL));
  SAME(wherry_publisher_try_loan(publisher, 4, &loan), 0);
  SAME(wherry_publisher_try_publish(publisher, &loan), -EAGAIN); /* the parent holds its message still */
  SAME(number_in(&message), 1);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  SAME(number_in(&message), 2);
  wherry_message_release(&message);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), 0);
  wherry_publisher_close(publisher);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 1);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, &message), 0);
  wherry_subscriber_close(subscriber);
}

int main(void) {
  begin("publish");
  every_subscriber_takes_all_and_then_the_end();
  a_full_queue_blocks_or_drops_the_oldest();
  a_pool_in_use_blocks_and_what_the_program_holds_itself_does_not();
  all_that_a_killed_publisher_published_comes_before_the_error();
  a_killed_subscriber_gives_its_messages_back();
  a_forked_child_that_closes_its_copies_ends_nothing();
  return 0;
}
