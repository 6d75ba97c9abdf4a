/* SPDX-License-Identifier: Apache-2.0 */
/* Framed streams between two processes: whole messages, full rings, the end, a killed peer. */
#include <errno.h>

#include "check.h"

#define MESSAGES 2000

static const struct wherry_options small = {4096, 0, 0};

static wherry_framed framed_of(wherry_stream stream) {
  wherry_framed framed = WHERRY_NONE;
  SAME(wherry_framed_open(stream, &framed), 0);
  return framed;
}

static wherry_framed connect_there(const char* address) {
  wherry_stream stream = WHERRY_NONE;
  SAME(wherry_connect(address, &small, ALWAYS, &stream), 0);
  return framed_of(stream);
}

static wherry_framed accept_one(wherry_listener listener) {
  wherry_stream stream = WHERRY_NONE;
  SAME(wherry_accept(listener, ALWAYS, &stream), 0);
  return framed_of(stream);
}

static size_t length_of(int number) { return (size_t)(number % 257) * (size_t)(number % 5); }

static int send_all(const char* address) {
  wherry_framed to = connect_there(address);
  static char text[2048];
  int i;
  for (i = 0; i < MESSAGES; ++i) {
    const size_t size = length_of(i);
    memset(text, 'a' + i % 26, size);
    if (i % 100 == 0) SAME(wherry_framed_hold(to), 0);
    if (i % 4 == 0) {
      struct iovec pieces[2];
      pieces[0].iov_base = text;
      pieces[0].iov_len = size / 3;
      pieces[1].iov_base = text + size / 3;
      pieces[1].iov_len = size - size / 3;
      SAME(wherry_framed_sendv(to, pieces, 2, ALWAYS), size);
    } else if (i % 4 == 1) {
      void* room = NULL;
      SAME(wherry_framed_wait_writable(to, size, ALWAYS), size);
      SAME(wherry_framed_reserve(to, size, &room), 0);
      memcpy(room, text, size);
      SAME(wherry_framed_commit(to, size), size);
    } else {
      SAME(wherry_framed_send(to, text, size, ALWAYS), size);
    }
    if (i % 100 == 50) SAME(wherry_framed_flush(to), 0);
  }
  wherry_framed_close(to);
  return 0;
}

static void receives_whole_messages_and_then_the_end(void) {
  char address[64];
  wherry_listener listener = listen_there(&small, address, sizeof address);
  const pid_t child = in_child(send_all, address);
  wherry_framed from = accept_one(listener);
  const void* message = NULL;
  size_t size = 0, at = 0;
  int i;
  for (i = 0; i < MESSAGES; ++i) {
    SAME(wherry_framed_receive(from, &message, &size, ALWAYS), 1);
    SAME(size, length_of(i));
    for (at = 0; at < size; ++at) SAME(((const char*)message)[at], 'a' + i % 26);
  }
  SAME(wherry_framed_receive(from, &message, &size, ALWAYS), 0);
  expect_success(child);
  wherry_framed_close(from);
  wherry_listener_close(listener);
}

/* Both ends in this process. */
static void pair(wherry_framed* near, wherry_framed* far) {
  char address[64];
  wherry_listener listener = listen_there(&small, address, sizeof address);
  wherry_connecting connecting = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  SAME(wherry_start_connect(address, &small, ALWAYS, &connecting), 0);
  *far = accept_one(listener);
  SAME(wherry_finish_connect(connecting, ALWAYS, &stream), 0);
  *near = framed_of(stream);
  wherry_connecting_close(connecting);
  wherry_listener_close(listener);
}

static void a_full_ring_takes_no_part_of_a_message(void) {
  wherry_framed near = WHERRY_NONE, far = WHERRY_NONE;
  static char text[4096];
  struct iovec piece = {text, 1000};
  const void* message = NULL;
  void* room = NULL;
  size_t size = 0;
  int sent = 0, received = 0;
  pair(&near, &far);
  SAME(wherry_framed_max_send(near), 2040);
  SAME(wherry_framed_max_receive(near), 2040);
  SAME(wherry_framed_send(near, text, 2041, ALWAYS), -EMSGSIZE);
  SAME(wherry_framed_reserve(near, 2041, &room), -EMSGSIZE);
  SAME(wherry_framed_wait_writable(near, 2041, ALWAYS), -EMSGSIZE);
  while (wherry_framed_try_sendv(near, &piece, 1) == 1000) ++sent;
  CHECK(sent > 0);
  SAME(wherry_framed_try_send(near, text, 1000), -EAGAIN);
  SAME(wherry_framed_reserve(near, 1000, &room), -EAGAIN);
  CHECK(room == NULL);
  SAME(wherry_framed_send(near, text, 1000, SOON), -ETIMEDOUT);
  SAME(wherry_framed_wait_writable(near, 1000, SOON), -ETIMEDOUT);
  while (wherry_framed_try_receive(far, &message, &size) == 1) {
    SAME(size, 1000);
    ++received;
  }
  SAME(received, sent);
  SAME(wherry_framed_receive(far, &message, &size, SOON), -ETIMEDOUT);
  SAME(wherry_framed_commit(near, 1), -EINVAL);
  SAME(wherry_framed_try_send(near, NULL, 0), 0);
  SAME(wherry_framed_receive(far, &message, &size, ALWAYS), 1);
  SAME(size, 0);
  wherry_framed_close(near);
  wherry_framed_close(far);
}

static void what_is_held_is_sent_by_flush(void) {
  wherry_framed near = WHERRY_NONE, far = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  pair(&near, &far);
  SAME(wherry_framed_hold(near), 0);
  SAME(wherry_framed_send(near, "held", 4, ALWAYS), 4);
  SAME(wherry_framed_try_receive(far, &message, &size), -EAGAIN);
  SAME(wherry_framed_flush(near), 0);
  SAME(wherry_framed_try_receive(far, &message, &size), 1);
  SAME(size, 4);
  CHECK(memcmp(message, "held", 4) == 0);
  wherry_framed_close(near);
  wherry_framed_close(far);
}

static void the_stream_within_is_told_of_and_given_back(void) {
  wherry_framed near = WHERRY_NONE, far = WHERRY_NONE;
  wherry_stream within = WHERRY_NONE, plain = WHERRY_NONE, other = WHERRY_NONE;
  struct wherry_counters counters;
  const void* message = NULL;
  size_t size = 0;
  char text[8];
  pair(&near, &far);
  SAME(wherry_framed_send(near, "one", 3, ALWAYS), 3);
  SAME(wherry_framed_receive(far, &message, &size, ALWAYS), 1);
  SAME(wherry_framed_get_stream(near, &within), 0);
  SAME(wherry_get_counters(within, &counters), 0);
  SAME(counters.bytes_sent, 16);
  SAME(wherry_framed_release(near, &plain), 0);
  SAME(wherry_framed_release(far, &other), 0);
  SAME(wherry_send(plain, "bytes", 5, ALWAYS), 5);
  SAME(wherry_receive(other, text, sizeof text, ALWAYS), 5);
  CHECK(memcmp(text, "bytes", 5) == 0);
  near = framed_of(plain);
  far = framed_of(other);
  SAME(wherry_framed_get_stream(far, &within), 0);
  SAME(wherry_cancel(within), 0);
  SAME(wherry_framed_receive(far, &message, &size, ALWAYS), -ECANCELED);
  wherry_framed_close(near);
  wherry_framed_close(far);
}

static int send_one_and_stay(const char* address) {
  wherry_framed to = connect_there(address);
  SAME(wherry_framed_send(to, "last words", 10, ALWAYS), 10);
  return stay();
}

static void all_that_a_killed_peer_sent_comes_before_the_error(void) {
  char address[64];
  wherry_listener listener = listen_there(&small, address, sizeof address);
  const pid_t child = in_child(send_one_and_stay, address);
  wherry_framed from = accept_one(listener);
  wherry_stream within = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  SAME(wherry_framed_get_stream(from, &within), 0);
  CHECK(wherry_wait_readable(within, ALWAYS) > 0);
  kill_it(child);
  SAME(wherry_framed_receive(from, &message, &size, ALWAYS), 1);
  SAME(size, 10);
  SAME(wherry_framed_receive(from, &message, &size, ALWAYS), -ECONNRESET);
  SAME(wherry_framed_send(from, "x", 1, ALWAYS), -EPIPE);
  wherry_framed_close(from);
  wherry_listener_close(listener);
}

static wherry_framed inherited;

static int close_the_copy(const char* unused) {
  (void)unused;
  wherry_framed_close(inherited);
  return 0;
}

static void a_forked_child_that_closes_its_copy_ends_nothing(void) {
  wherry_framed near = WHERRY_NONE, far = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  pair(&near, &far);
  SAME(wherry_framed_hold(near), 0);
  SAME(wherry_framed_send(near, "once", 4, ALWAYS), 4);
  inherited = near;
  expect_success(in_child(close_the_copy, NULL));
  SAME(wherry_framed_try_receive(far, &message, &size), -EAGAIN);
  wherry_framed_close(near);
  SAME(wherry_framed_receive(far, &message, &size, ALWAYS), 1);
  SAME(wherry_framed_receive(far, &message, &size, ALWAYS), 0);
  wherry_framed_close(far);
}

int main(void) {
  begin("framed");
  receives_whole_messages_and_then_the_end();
  a_full_ring_takes_no_part_of_a_message();
  what_is_held_is_sent_by_flush();
  the_stream_within_is_told_of_and_given_back();
  all_that_a_killed_peer_sent_comes_before_the_error();
  a_forked_child_that_closes_its_copy_ends_nothing();
  return 0;
}
