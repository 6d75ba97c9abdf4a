/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes of several processes: messages in parts, pieces in place, early and whole messages, a killed sender. */
#include <errno.h>

#include "check.h"

#define BIG (1 << 20)

static unsigned char big[BIG];

static wherry_mailbox opened(size_t budget, uint32_t overflow) {
  struct wherry_mailbox_options options;
  wherry_mailbox mailbox = WHERRY_NONE;
  memset(&options, 0, sizeof options);
  options.budget = budget;
  options.overflow = overflow;
  options.layout = WHERRY_LAYOUT_ADAPTIVE;
  SAME(wherry_mailbox_open(&options, &mailbox), 0);
  return mailbox;
}

static wherry_mailbox listening(uint32_t overflow, char* address, size_t size) {
  wherry_mailbox mailbox = opened(16 << 10, overflow);
  SAME(wherry_mailbox_listen(mailbox, "wherry+shm://*:*"), 0);
  CHECK(wherry_mailbox_address(mailbox, address, size) > 0);
  return mailbox;
}

static void fill(void) {
  int i;
  for (i = 0; i < BIG; ++i) big[i] = (unsigned char)(i * 7 + i / 256);
}

static struct wherry_outgoing outgoing(const struct iovec* pieces, int count) {
  struct wherry_outgoing message;
  memset(&message, 0, sizeof message);
  message.pieces = pieces;
  message.count = count;
  return message;
}

/* Sends a message that no section holds, in parts; then one by a call that times out and is continued. */
static int send_in_parts(const char* address) {
  wherry_mailbox mailbox = opened(0, 0);
  struct iovec pieces[2] = {{big, 1000}, {big + 1000, BIG - 1000}};
  struct wherry_outgoing message = outgoing(pieces, 2);
  uint32_t peer = 0, ready = 0;
  int64_t sent = 0;
  SAME(wherry_mailbox_connect(mailbox, address, ALWAYS, &peer), 0);
  do {
    sent = wherry_mailbox_try_send_outgoing(mailbox, peer, &message);
    if (sent == -EAGAIN) {
      SAME(wherry_mailbox_wait(mailbox, ALWAYS), 1);
      while (wherry_mailbox_writable(mailbox, &ready, 1) == 1) SAME(ready, peer);
    } else {
      CHECK(sent > 0);
    }
  } while (message.taken != message.size || message.size == 0);
  SAME(message.size, BIG);

  message = outgoing(pieces, 2);
  sent = wherry_mailbox_send_outgoing(mailbox, peer, &message, 0);
  while (sent == -ETIMEDOUT && message.taken == 0) sent = wherry_mailbox_send_outgoing(mailbox, peer, &message, SOON);
  if (sent == -ETIMEDOUT) {
    struct wherry_outgoing other = outgoing(pieces, 1);
    SAME(wherry_mailbox_try_send_outgoing(mailbox, peer, &other), -EINVAL);
    sent = wherry_mailbox_send_outgoing(mailbox, peer, &message, ALWAYS);
  }
  CHECK(sent > 0);
  SAME(message.taken, BIG);
  wherry_mailbox_close(mailbox);
  return 0;
}

static void a_long_message_comes_in_pieces(void) {
  char address[64];
  wherry_mailbox mailbox = listening(0, address, sizeof address);
  const pid_t child = in_child(send_in_parts, address);
  struct wherry_piece piece;
  uint64_t received = 0;
  uint32_t peer = 0;
  int error = -1, i;
  while (received < 2 * BIG) {
    const int64_t got = wherry_mailbox_try_peek(mailbox, &piece);
    if (got == -EAGAIN) {
      SAME(wherry_mailbox_wait(mailbox, ALWAYS), 1);
      continue;
    }
    CHECK(got > 0);
    SAME(piece.message_size, BIG);
    SAME(piece.offset, received % BIG);
    SAME(piece.bytes[0].iov_len + piece.bytes[1].iov_len, got);
    for (i = 0; i < 2; ++i) {
      CHECK(memcmp(piece.bytes[i].iov_base, big + received % BIG, piece.bytes[i].iov_len) == 0);
      received += piece.bytes[i].iov_len;
    }
    SAME(wherry_mailbox_peers(mailbox), 1);
    SAME(wherry_mailbox_consume(mailbox, &piece, (size_t)got + 1), -EINVAL);
    SAME(wherry_mailbox_consume(mailbox, &piece, (size_t)got), 0);
  }
  expect_success(child);
  while (wherry_mailbox_lost(mailbox, &peer, &error) == 0) SAME(wherry_mailbox_wait(mailbox, ALWAYS), 1);
  SAME(peer, piece.from);
  SAME(error, 0);
  SAME(wherry_mailbox_peers(mailbox), 0);
  wherry_mailbox_close(mailbox);
}

/* Each message is whole before the peer does anything. */
static int send_early(const char* address) {
  wherry_mailbox mailbox = opened(0, 1 << 20);
  struct iovec pieces[2] = {{big, 10}, {big + 10, 90000}};
  uint32_t peer = 0;
  int i;
  SAME(wherry_mailbox_connect(mailbox, address, ALWAYS, &peer), 0);
  for (i = 0; i < 3; ++i) SAME(wherry_mailbox_try_send_whole(mailbox, peer, pieces, 2), 90010);
  raise(SIGSTOP);
  return stay();
}

static void whole_messages_come_before_a_receiver_looks_and_outlive_their_sender(void) {
  char address[64];
  wherry_mailbox mailbox = listening(1 << 20, address, sizeof address);
  const pid_t child = in_child(send_early, address);
  static unsigned char buffer[100000];
  uint32_t from = 0, peer = 0;
  int i, error = 0, status = 0;
  SAME(waitpid(child, &status, WUNTRACED), child);
  CHECK(WIFSTOPPED(status));
  for (i = 0; i < 3; ++i) {
    int64_t got = wherry_mailbox_receive(mailbox, buffer, sizeof buffer, &from, ALWAYS);
    while (got == -EAGAIN) got = wherry_mailbox_receive(mailbox, buffer, sizeof buffer, &from, ALWAYS);
    SAME(got, 90010);
    CHECK(memcmp(buffer, big, 90010) == 0);
    if (i == 0) kill_it(child);
  }
  SAME(wherry_mailbox_receive(mailbox, buffer, sizeof buffer, &from, ALWAYS), -EAGAIN);
  SAME(wherry_mailbox_lost(mailbox, &peer, &error), 1);
  SAME(peer, from);
  SAME(error, ECONNRESET);
  wherry_mailbox_close(mailbox);
}

static void short_messages_are_taken_whole_or_not_at_all(void) {
  char address[64], buffer[64];
  wherry_mailbox to = listening(0, address, sizeof address), from = opened(0, 0);
  uint32_t peer = 0, sender = 0;
  int64_t room = 0;
  int sent = 0, received = 0;
  SAME(wherry_mailbox_connect(from, address, ALWAYS, &peer), 0);
  while (wherry_mailbox_try_send_parts(from, peer, "he", 2, "llo", 3) != 5) {
    wherry_mailbox_wait(from, 0);
    wherry_mailbox_wait(to, 0);
  }
  SAME(wherry_mailbox_receive(to, buffer, sizeof buffer, &sender, ALWAYS), 5);
  CHECK(memcmp(buffer, "hello", 5) == 0);
  room = wherry_mailbox_room(from, peer, 1);
  CHECK(room > 0);
  SAME(wherry_mailbox_try_send_parts(from, peer, big, 4096, big, 4096), -EMSGSIZE);
  while (wherry_mailbox_try_send(from, peer, big, 40) == 40) ++sent;
  SAME(wherry_mailbox_send(from, peer, big, 40, SOON), -ETIMEDOUT);
  while (received < sent) {
    SAME(wherry_mailbox_receive(to, buffer, sizeof buffer, &sender, ALWAYS), 40);
    ++received;
  }
  SAME(wherry_mailbox_try_receive(to, buffer, sizeof buffer, &sender), -EAGAIN);
  SAME(wherry_mailbox_room(from, peer + 1, 1), 0);
  wherry_mailbox_close(from);
  wherry_mailbox_close(to);
}

static void memory_of_a_peer_is_read_where_the_kernel_lets(void) {
  char address[64], buffer[64];
  wherry_mailbox to = listening(0, address, sizeof address), from = opened(0, 0);
  uint32_t peer = 0, sender = 0;
  SAME(wherry_mailbox_connect(from, address, ALWAYS, &peer), 0);
  while (wherry_mailbox_try_send(from, peer, "x", 1) != 1) {
    wherry_mailbox_wait(from, 0);
    wherry_mailbox_wait(to, 0);
  }
  SAME(wherry_mailbox_receive(to, buffer, sizeof buffer, &sender, ALWAYS), 1);
  if (wherry_mailbox_reaches_private_memory(to, sender) == 1) {
    memset(buffer, 0, sizeof buffer);
    SAME(wherry_mailbox_read_private(to, sender, buffer, sizeof buffer, (uint64_t)(uintptr_t)big), sizeof buffer);
    CHECK(memcmp(buffer, big, sizeof buffer) == 0);
  }
  SAME(wherry_mailbox_reaches_private_memory(to, sender + 1), 0);
  SAME(wherry_mailbox_read_private(to, sender + 1, buffer, sizeof buffer, 0), 0);
  wherry_mailbox_close(from);
  wherry_mailbox_close(to);
}

int main(void) {
  begin("mailbox");
  fill();
  a_long_message_comes_in_pieces();
  whole_messages_come_before_a_receiver_looks_and_outlive_their_sender();
  short_messages_are_taken_whole_or_not_at_all();
  memory_of_a_peer_is_read_where_the_kernel_lets();
  return 0;
}
