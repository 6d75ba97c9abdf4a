/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers that run while a call waits: the wait goes on, and lasts as long as its timeout says. */
#include <errno.h>
#include <time.h>

#include "check.h"

#define TIMEOUT ((int64_t)30 * 1000000)

static volatile sig_atomic_t signals;

static void count(int number) {
  (void)number;
  ++signals;
}

static void signal_every_millisecond(void) {
  struct sigaction action;
  struct sigevent event;
  struct itimerspec every;
  timer_t timer;
  memset(&action, 0, sizeof action);
  memset(&event, 0, sizeof event);
  memset(&every, 0, sizeof every);
  action.sa_handler = count; /* without SA_RESTART: system calls are interrupted */
  SAME(sigaction(SIGALRM, &action, NULL), 0);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  SAME(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  every.it_value.tv_nsec = every.it_interval.tv_nsec = 1000000;
  SAME(timer_settime(timer, 0, &every, NULL), 0);
}

static int64_t now(void) {
  struct timespec time;
  SAME(clock_gettime(CLOCK_MONOTONIC, &time), 0);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Expects that `call` waits for all of TIMEOUT, signals or not, and ends with `result`. */
#define WAITS(call, result)          \
  do {                               \
    const int64_t start = now();     \
    signals = 0;                     \
    SAME(call, result);              \
    CHECK(now() - start >= TIMEOUT); \
    CHECK(signals > 0);              \
  } while (0)

int main(void) {
  char address[64], buffer[8];
  wherry_listener listener = WHERRY_NONE;
  wherry_connecting connecting = WHERRY_NONE;
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE, other = WHERRY_NONE;
  wherry_framed framed = WHERRY_NONE;
  wherry_poller poller = WHERRY_NONE;
  wherry_publisher publisher = WHERRY_NONE;
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_message taken = WHERRY_NONE;
  wherry_mailbox mailbox = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  uint64_t ready = 0;
  uint32_t from = 0;
  begin("signals");
  signal_every_millisecond();
  listener = listen_there(NULL, address, sizeof address);
  WAITS(wherry_accept(listener, TIMEOUT, &far), -ETIMEDOUT);
  WAITS(wherry_connect(address, NULL, TIMEOUT, &other), -ETIMEDOUT);
  WAITS(wherry_connect("wherry+shm://0:4321", NULL, TIMEOUT, &other), -ECONNREFUSED);
  SAME(wherry_accept(listener, 0, &far), -EAGAIN);
  SAME(wherry_start_connect(address, NULL, ALWAYS, &connecting), 0);
  SAME(wherry_accept(listener, ALWAYS, &far), 0);
  SAME(wherry_finish_connect(connecting, ALWAYS, &near), 0);
  wherry_connecting_close(connecting);
  WAITS(wherry_receive(near, buffer, sizeof buffer, TIMEOUT), -ETIMEDOUT);
  SAME(wherry_receive(near, buffer, sizeof buffer, 0), -ETIMEDOUT);
  SAME(wherry_poller_open(&poller), 0);
  SAME(wherry_poller_add(poller, near, 1), 0);
  WAITS(wherry_poller_wait(poller, &ready, 1, TIMEOUT), 0);
  SAME(wherry_framed_open(far, &framed), 0);
  WAITS(wherry_framed_receive(framed, &message, &size, TIMEOUT), -ETIMEDOUT);
  wherry_framed_close(framed);
  wherry_stream_close(near);
  wherry_poller_close(poller);
  wherry_listener_close(listener);

  SAME(wherry_publisher_open(NULL, &publisher), 0);
  SAME(wherry_publisher_listen(publisher, "wherry+shm://*:*"), 0);
  WAITS(wherry_publisher_admit(publisher, 1, TIMEOUT), -ETIMEDOUT);
  SAME(wherry_subscriber_open(NULL, &subscriber), 0);
  SAME(wherry_subscriber_listen(subscriber, "wherry+shm://*:*"), 0);
  WAITS(wherry_subscriber_take(subscriber, TIMEOUT, &taken), -ETIMEDOUT);
  wherry_subscriber_close(subscriber);
  wherry_publisher_close(publisher);

  SAME(wherry_mailbox_open(NULL, &mailbox), 0);
  SAME(wherry_mailbox_listen(mailbox, "wherry+shm://*:*"), 0);
  WAITS(wherry_mailbox_wait(mailbox, TIMEOUT), 0);
  WAITS(wherry_mailbox_sleep(mailbox, TIMEOUT), 0);
  WAITS(wherry_mailbox_receive(mailbox, buffer, sizeof buffer, &from, TIMEOUT), -ETIMEDOUT);
  wherry_mailbox_close(mailbox);
  return 0;
}
