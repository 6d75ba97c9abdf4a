/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are zero and arguments that are NULL or wrong are refused by each call, and nothing else happens. */
#include <errno.h>

#include "check.h"

static const wherry_framed no_framed = WHERRY_NONE;
static const wherry_poller no_poller = WHERRY_NONE;
static const wherry_publisher no_publisher = WHERRY_NONE;
static const wherry_subscriber no_subscriber = WHERRY_NONE;
static const wherry_mailbox no_mailbox = WHERRY_NONE;
static const wherry_stream no_stream = WHERRY_NONE;
static const wherry_connecting no_connecting = WHERRY_NONE;
static const wherry_file no_file = WHERRY_NONE;
static char byte;
static struct iovec piece = {&byte, 1};
static const struct iovec bad_piece = {NULL, 1};

static void zero_handles_of_streams_are_refused(void) {
  wherry_framed framed = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  struct wherry_counters counters;
  const void* message = NULL;
  void* room = NULL;
  size_t size = 0;
  SAME(wherry_framed_open(no_stream, &framed), -EBADF);
  SAME(wherry_framed_release(no_framed, &stream), -EBADF);
  SAME(wherry_framed_get_stream(no_framed, &stream), -EBADF);
  SAME(wherry_framed_send(no_framed, &byte, 1, ALWAYS), -EBADF);
  SAME(wherry_framed_sendv(no_framed, &piece, 1, ALWAYS), -EBADF);
  SAME(wherry_framed_try_send(no_framed, &byte, 1), -EBADF);
  SAME(wherry_framed_try_sendv(no_framed, &piece, 1), -EBADF);
  SAME(wherry_framed_reserve(no_framed, 1, &room), -EBADF);
  SAME(wherry_framed_commit(no_framed, 1), -EBADF);
  SAME(wherry_framed_wait_writable(no_framed, 1, ALWAYS), -EBADF);
  SAME(wherry_framed_hold(no_framed), -EBADF);
  SAME(wherry_framed_flush(no_framed), -EBADF);
  SAME(wherry_framed_receive(no_framed, &message, &size, ALWAYS), -EBADF);
  SAME(wherry_framed_try_receive(no_framed, &message, &size), -EBADF);
  SAME(wherry_framed_max_send(no_framed), -EBADF);
  SAME(wherry_framed_max_receive(no_framed), -EBADF);
  wherry_framed_close(no_framed);
  SAME(wherry_try_sendv(no_stream, &piece, 1), -EBADF);
  SAME(wherry_try_receivev(no_stream, &piece, 1), -EBADF);
  SAME(wherry_try_readable(no_stream), -EBADF);
  SAME(wherry_receive_event_descriptor(no_stream), -EBADF);
  SAME(wherry_send_event_descriptor(no_stream), -EBADF);
  SAME(wherry_raise_send_descriptor(no_stream), -EBADF);
  SAME(wherry_limit_unread(no_stream, 4096), -EBADF);
  SAME(wherry_get_counters(no_stream, &counters), -EBADF);
  SAME(wherry_stream_address(no_stream, &byte, 1), -EBADF);
  SAME(wherry_peer_host(no_stream, &byte, 1), -EBADF);
  SAME(wherry_finish_connect(no_connecting, ALWAYS, &stream), -EBADF);
  SAME(wherry_file_get_path(no_file), -EBADF);
}

static void zero_handles_of_publishers_and_subscribers_are_refused(void) {
  wherry_loan loan = WHERRY_NONE;
  wherry_message message = WHERRY_NONE;
  SAME(wherry_publisher_listen(no_publisher, "wherry://*:*"), -EBADF);
  SAME(wherry_publisher_connect(no_publisher, "wherry://0:1", ALWAYS), -EBADF);
  SAME(wherry_publisher_start_connect(no_publisher, "wherry://0:1", ALWAYS), -EBADF);
  SAME(wherry_publisher_admit(no_publisher, 1, ALWAYS), -EBADF);
  SAME(wherry_publisher_loan(no_publisher, 1, ALWAYS, &loan), -EBADF);
  SAME(wherry_publisher_try_loan(no_publisher, 1, &loan), -EBADF);
  SAME(wherry_publisher_publish(no_publisher, &loan, ALWAYS), -EBADF);
  SAME(wherry_publisher_try_publish(no_publisher, &loan), -EBADF);
  SAME(wherry_publisher_descriptor(no_publisher), -EBADF);
  SAME(wherry_publisher_cancel(no_publisher), -EBADF);
  SAME(wherry_publisher_subscribers(no_publisher), -EBADF);
  SAME(wherry_publisher_address(no_publisher, &byte, 1), -EBADF);
  SAME(wherry_publisher_pool_bytes(no_publisher), -EBADF);
  wherry_publisher_close(no_publisher);
  SAME(wherry_subscriber_listen(no_subscriber, "wherry://*:*"), -EBADF);
  SAME(wherry_subscriber_connect(no_subscriber, "wherry://0:1", ALWAYS), -EBADF);
  SAME(wherry_subscriber_start_connect(no_subscriber, "wherry://0:1", ALWAYS), -EBADF);
  SAME(wherry_subscriber_admit(no_subscriber, 1, ALWAYS), -EBADF);
  SAME(wherry_subscriber_take(no_subscriber, ALWAYS, &message), -EBADF);
  SAME(wherry_subscriber_try_take(no_subscriber, &message), -EBADF);
  SAME(wherry_subscriber_descriptor(no_subscriber), -EBADF);
  SAME(wherry_subscriber_cancel(no_subscriber), -EBADF);
  SAME(wherry_subscriber_publishers(no_subscriber), -EBADF);
  SAME(wherry_subscriber_dropped(no_subscriber), -EBADF);
  SAME(wherry_subscriber_address(no_subscriber, &byte, 1), -EBADF);
  wherry_subscriber_close(no_subscriber);
}

static void zero_handles_of_pollers_and_mailboxes_are_refused(void) {
  struct wherry_outgoing message = {&piece, 1, 0, 0, 0};
  struct wherry_piece part;
  uint64_t ready = 0;
  uint32_t peer = 0;
  memset(&part, 0, sizeof part);
  SAME(wherry_poller_add(no_poller, no_stream, 1), -EBADF);
  SAME(wherry_poller_remove(no_poller, no_stream), -EBADF);
  SAME(wherry_poller_add_descriptor(no_poller, 0, 1), -EBADF);
  SAME(wherry_poller_remove_descriptor(no_poller, 0), -EBADF);
  SAME(wherry_poller_wait(no_poller, &ready, 1, ALWAYS), -EBADF);
  SAME(wherry_poller_interrupt(no_poller), -EBADF);
  SAME(wherry_poller_descriptor(no_poller), -EBADF);
  wherry_poller_close(no_poller);
  SAME(wherry_mailbox_peers(no_mailbox), -EBADF);
  SAME(wherry_mailbox_try_send_parts(no_mailbox, 0, &byte, 1, &byte, 1), -EBADF);
  SAME(wherry_mailbox_try_send_whole(no_mailbox, 0, &piece, 1), -EBADF);
  SAME(wherry_mailbox_try_send_outgoing(no_mailbox, 0, &message), -EBADF);
  SAME(wherry_mailbox_send_outgoing(no_mailbox, 0, &message, ALWAYS), -EBADF);
  SAME(wherry_mailbox_room(no_mailbox, 0, 1), -EBADF);
  SAME(wherry_mailbox_writable(no_mailbox, &peer, 1), -EBADF);
  SAME(wherry_mailbox_try_peek(no_mailbox, &part), -EBADF);
  SAME(wherry_mailbox_consume(no_mailbox, &part, 0), -EBADF);
  SAME(wherry_mailbox_reaches_private_memory(no_mailbox, 0), -EBADF);
  SAME(wherry_mailbox_read_private(no_mailbox, 0, &byte, 1, 0), -EBADF);
  wherry_mailbox_close(no_mailbox);
}

static void missing_places_of_streams_and_pollers_are_refused(void) {
  char address[64];
  wherry_listener listener = listen_there(NULL, address, sizeof address);
  wherry_connecting connecting = WHERRY_NONE;
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  wherry_framed framed = WHERRY_NONE;
  wherry_poller poller = WHERRY_NONE;
  const void* message = NULL;
  size_t size = 0;
  SAME(wherry_start_connect(address, NULL, ALWAYS, &connecting), 0);
  SAME(wherry_accept(listener, ALWAYS, &far), 0);
  SAME(wherry_finish_connect(connecting, ALWAYS, NULL), -EINVAL);
  SAME(wherry_finish_connect(connecting, ALWAYS, &near), 0);
  wherry_connecting_close(connecting);
  wherry_listener_close(listener);
  SAME(wherry_get_counters(near, NULL), -EINVAL);
  SAME(wherry_stream_address(near, NULL, 1), -EINVAL);
  SAME(wherry_peer_host(near, NULL, 1), -EINVAL);
  SAME(wherry_try_sendv(near, NULL, 1), -EINVAL);
  SAME(wherry_try_receivev(near, &piece, -1), -EINVAL);
  SAME(wherry_framed_open(near, NULL), -EINVAL);
  SAME(wherry_framed_open(near, &framed), 0);
  SAME(wherry_framed_get_stream(framed, NULL), -EINVAL);
  SAME(wherry_framed_release(framed, NULL), -EINVAL);
  SAME(wherry_framed_send(framed, NULL, 1, ALWAYS), -EINVAL);
  SAME(wherry_framed_try_send(framed, NULL, 1), -EINVAL);
  SAME(wherry_framed_sendv(framed, NULL, 1, ALWAYS), -EINVAL);
  SAME(wherry_framed_try_sendv(framed, &piece, -1), -EINVAL);
  SAME(wherry_framed_reserve(framed, 1, NULL), -EINVAL);
  SAME(wherry_framed_receive(framed, NULL, &size, ALWAYS), -EINVAL);
  SAME(wherry_framed_try_receive(framed, &message, NULL), -EINVAL);
  SAME(wherry_poller_open(NULL), -EINVAL);
  SAME(wherry_poller_open(&poller), 0);
  SAME(wherry_poller_wait(poller, NULL, 1, ALWAYS), -EINVAL);
  SAME(wherry_poller_add(poller, no_stream, 1), -EBADF);
  wherry_poller_close(poller);
  wherry_framed_close(framed);
  wherry_stream_close(far);
}

static void bad_options_and_missing_places_of_messages_are_refused(void) {
  const struct wherry_publisher_options flags = {0, 2, 0}, reserved = {0, 0, 1}, much = {(size_t)1 << 45, 0, 0};
  const struct wherry_subscriber_options overflow = {0, 2, 0, {0, 0}}, deep = {1 << 20, 0, 0, {0, 0}};
  wherry_publisher publisher = WHERRY_NONE;
  wherry_subscriber subscriber = WHERRY_NONE;
  wherry_loan loan = WHERRY_NONE;
  struct wherry_peer peer;
  SAME(wherry_publisher_open(&flags, &publisher), -EINVAL);
  SAME(wherry_publisher_open(&reserved, &publisher), -EINVAL);
  SAME(wherry_publisher_open(&much, &publisher), -EINVAL);
  SAME(wherry_publisher_open(NULL, NULL), -EINVAL);
  SAME(wherry_subscriber_open(&overflow, &subscriber), -EINVAL);
  SAME(wherry_subscriber_open(&deep, &subscriber), -EINVAL);
  SAME(wherry_subscriber_open(NULL, NULL), -EINVAL);
  SAME(wherry_publisher_open(NULL, &publisher), 0);
  SAME(wherry_subscriber_open(NULL, &subscriber), 0);
  SAME(wherry_publisher_listen(publisher, NULL), -EINVAL);
  SAME(wherry_publisher_listen(publisher, "nonsense"), -EINVAL);
  CHECK(strstr(wherry_last_error(), "nonsense") != NULL);
  SAME(wherry_publisher_connect(publisher, NULL, ALWAYS), -EINVAL);
  SAME(wherry_subscriber_start_connect(subscriber, NULL, ALWAYS), -EINVAL);
  SAME(wherry_subscriber_connect(subscriber, "wherry+shm://0:9", 0), -ECONNREFUSED);
  SAME(wherry_publisher_loan(publisher, 1, ALWAYS, NULL), -EINVAL);
  SAME(wherry_publisher_loan(publisher, 1, ALWAYS, &loan), -ENOTCONN);
  SAME(wherry_publisher_admit(publisher, 1, ALWAYS), -ENOTCONN);
  SAME(wherry_publisher_publish(publisher, NULL, ALWAYS), -EINVAL);
  SAME(wherry_publisher_publish(publisher, &loan, ALWAYS), -EINVAL);
  SAME(wherry_subscriber_take(subscriber, ALWAYS, NULL), -EINVAL);
  SAME(wherry_publisher_address(publisher, NULL, 1), -EINVAL);
  SAME(wherry_loan_shorten(&loan, 0), -EINVAL);
  SAME(wherry_loan_shorten(NULL, 0), -EINVAL);
  SAME(wherry_message_publisher(NULL, &peer), -EINVAL);
  wherry_loan_release(&loan);
  wherry_loan_release(NULL);
  wherry_message_release(NULL);
  wherry_subscriber_close(subscriber);
  wherry_publisher_close(publisher);
}

static void bad_arguments_of_mailboxes_are_refused(void) {
  const struct iovec huge[2] = {{&byte, SIZE_MAX / 2 + 1}, {&byte, SIZE_MAX / 2 + 1}};
  struct wherry_outgoing message = {&piece, 1, 0, 2, 0};
  wherry_mailbox mailbox = WHERRY_NONE;
  struct wherry_piece part;
  memset(&part, 0, sizeof part);
  SAME(wherry_mailbox_open(NULL, &mailbox), 0);
  SAME(wherry_mailbox_try_send_outgoing(mailbox, 0, NULL), -EINVAL);
  SAME(wherry_mailbox_try_send_outgoing(mailbox, 0, &message), -EINVAL); /* more was taken than there is */
  message.taken = 0;
  message.reserved = 1;
  SAME(wherry_mailbox_send_outgoing(mailbox, 0, &message, ALWAYS), -EINVAL);
  message.reserved = 0;
  SAME(wherry_mailbox_send_outgoing(mailbox, 0, &message, ALWAYS), -EINVAL); /* no such peer */
  SAME(wherry_mailbox_try_send_whole(mailbox, 0, &bad_piece, 1), -EINVAL);
  SAME(wherry_mailbox_try_send_whole(mailbox, 0, NULL, 1), -EINVAL);
  SAME(wherry_mailbox_try_send_whole(mailbox, 0, huge, 2), -EINVAL);
  SAME(wherry_mailbox_try_send_parts(mailbox, 0, NULL, 1, &byte, 1), -EINVAL);
  SAME(wherry_mailbox_try_peek(mailbox, NULL), -EINVAL);
  SAME(wherry_mailbox_try_peek(mailbox, &part), -EAGAIN);
  SAME(wherry_mailbox_consume(mailbox, NULL, 0), -EINVAL);
  SAME(wherry_mailbox_consume(mailbox, &part, 1), -EINVAL);
  SAME(wherry_mailbox_writable(mailbox, NULL, 1), -EINVAL);
  SAME(wherry_mailbox_read_private(mailbox, 0, NULL, 1, 0), -EINVAL);
  wherry_mailbox_close(mailbox);
}

int main(void) {
  begin("arguments");
  zero_handles_of_streams_are_refused();
  zero_handles_of_publishers_and_subscribers_are_refused();
  zero_handles_of_pollers_and_mailboxes_are_refused();
  missing_places_of_streams_and_pollers_are_refused();
  bad_options_and_missing_places_of_messages_are_refused();
  bad_arguments_of_mailboxes_are_refused();
  return 0;
}
