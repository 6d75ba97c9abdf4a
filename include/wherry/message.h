/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a copy, from any number of publishers to any number of subscribers. Part of <wherry/wherry.h>;
 * <wherry/message.hpp> is the same in C++.
 *
 * Either side may be the one that listens. A message stays where the publisher wrote it, in its pool, until the last
 * subscriber has released it.
 *
 * Threads: one thread at a time uses a publisher, or a subscriber with its messages. The two cancel calls may be made
 * from any thread.
 *
 * Fork: both belong to the parent. A child closes its copies, which ends no connection. */
#ifndef WHERRY_MESSAGE_H
#define WHERRY_MESSAGE_H

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For `flags` of both: touch the pool in advance, so that no message waits for page faults. */
#define WHERRY_PREFAULT 1u

struct wherry_publisher_options {
  size_t pool_bytes; /* bytes of all messages loaned, waiting or being read; 0: the configured size (WHERRY_POOL) */
  uint32_t flags;    /* WHERRY_PREFAULT or 0 */
  uint32_t reserved; /* 0 */
};

/* What a publisher does when a subscriber's queue is full. */
enum {
  WHERRY_OVERFLOW_WAIT = 0,       /* the publisher waits for that subscriber; no message is lost */
  WHERRY_OVERFLOW_DROP_OLDEST = 1 /* the subscriber loses the oldest message that it has not taken */
};

struct wherry_subscriber_options {
  size_t queue;         /* messages of one publisher that wait or are held, up to 65536; 0: 16 */
  uint32_t overflow;    /* WHERRY_OVERFLOW_... */
  uint32_t flags;       /* WHERRY_PREFAULT or 0 */
  uint32_t reserved[2]; /* 0 */
};

/* Memory of a publisher's pool, for one message. The program reads the first two members and changes none. It passes
 * the struct by pointer, and makes no second copy of it. A loan may outlive its publisher. */
typedef struct wherry_loan {
  void* bytes; /* contains bytes of an earlier message; NULL: nothing is held */
  size_t size;
  void* pool; /* this and the next are internal; NULL: nothing is held */
  uint32_t block;
  uint32_t reserved;
} wherry_loan;

/* A received message, read in place. Rules for the struct as for a loan. It stays readable until it is released, also
 * after its publisher has died or the subscriber was closed. A hostile publisher may change it meanwhile: copy bytes
 * that are checked before they are used. */
typedef struct wherry_message {
  const void* bytes;
  size_t size;
  void* connection; /* this and the next two are internal; NULL: nothing is held */
  uint32_t ticket;
  uint32_t process;
} wherry_message;

/* Publishing ------------------------------------------------------------------------------------------------------ */

/* Makes a publisher. `options`: NULL for the defaults. -EINVAL: an invalid option. */
int wherry_publisher_open(const struct wherry_publisher_options* options, wherry_publisher* publisher);
/* Closes the publisher without blocking: subscribers receive everything published so far, then the end. */
void wherry_publisher_close(wherry_publisher publisher);
/* Lets subscribers connect. At most once per publisher. Errors as wherry_listen; -ENOTSUP on a fabric without shared
 * memory. */
int wherry_publisher_listen(wherry_publisher publisher, const char* address);
/* Connects to a subscriber that listens, or will, and blocks until it has accepted this publisher. Timeout and errors
 * as wherry_connect. Any number of times. */
int wherry_publisher_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns);
/* The same without blocking: wherry_publisher_admit completes it. The timeout limits how long it waits for a listener.
 */
int wherry_publisher_start_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns);
/* Accepts waiting subscribers, completes connections in progress, removes subscribers that are gone, and blocks until
 * at least `wanted` are connected (0: never blocks). Returns their number. -ETIMEDOUT; -ENOTCONN: before the first
 * listen or connect; other errors as wherry_try_finish. */
int64_t wherry_publisher_admit(wherry_publisher publisher, size_t wanted, int64_t timeout_ns);

/* Lends memory for a message of `size` bytes. A program may hold any number of loans. Memory that `loan` held is
 * returned first. Blocks while subscribers use the pool. 0; -EMSGSIZE: larger than the pool; -ENOBUFS: this program's
 * own loans hold the missing memory; -ENOTCONN, -ECANCELED, -ETIMEDOUT. */
int wherry_publisher_loan(wherry_publisher publisher, size_t size, int64_t timeout_ns, wherry_loan* loan);
/* The same without blocking: -EAGAIN. */
int wherry_publisher_try_loan(wherry_publisher publisher, size_t size, wherry_loan* loan);
/* Reduces the message to its first `size` bytes. -EINVAL: there are fewer, or nothing is held. */
int wherry_loan_shorten(wherry_loan* loan, size_t size);
/* Returns the memory without publishing it. Does nothing if nothing is held. */
void wherry_loan_release(wherry_loan* loan);
/* Publishes the message to every subscriber; the loan is then WHERRY_NONE. Blocks while a subscriber with
 * WHERRY_OVERFLOW_WAIT has a full queue. 0 on success; after a failure the loan is kept. Without a subscriber the
 * message is discarded, which succeeds as long as the publisher listens. -EPIPE: no subscriber is connected and none
 * can connect; -EINVAL: nothing is held, or the loan is another publisher's; -ENOTCONN, -ECANCELED, -ETIMEDOUT. */
int wherry_publisher_publish(wherry_publisher publisher, wherry_loan* loan, int64_t timeout_ns);
/* The same without blocking: -EAGAIN. */
int wherry_publisher_try_publish(wherry_publisher publisher, wherry_loan* loan);

/* Becomes readable when a try_loan or try_publish that returned -EAGAIN may succeed, or admit has something to do. The
 * descriptor belongs to the publisher. */
int wherry_publisher_descriptor(wherry_publisher publisher);
/* Makes every blocked and later call that moves data fail with -ECANCELED. May be called from any thread. */
int wherry_publisher_cancel(wherry_publisher publisher);
/* The number of connected subscribers, as far as is known. */
int64_t wherry_publisher_subscribers(wherry_publisher publisher);
/* The address on which the publisher listens, as wherry_listener_address. */
int wherry_publisher_address(wherry_publisher publisher, char* text, size_t size);
/* The size of the largest message. */
int64_t wherry_publisher_pool_bytes(wherry_publisher publisher);

/* Subscribing ----------------------------------------------------------------------------------------------------- */

/* Make, close, listen, connect and admit as for a publisher. wherry_subscriber_close leaves; messages that were not
 * taken return to the publishers. */
int wherry_subscriber_open(const struct wherry_subscriber_options* options, wherry_subscriber* subscriber);
void wherry_subscriber_close(wherry_subscriber subscriber);
int wherry_subscriber_listen(wherry_subscriber subscriber, const char* address);
int wherry_subscriber_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns);
int wherry_subscriber_start_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns);
int64_t wherry_subscriber_admit(wherry_subscriber subscriber, size_t wanted, int64_t timeout_ns);

/* Releases the message that `message` held, and blocks until there is a new one. 1: there is one, which may be empty.
 * 0: the end; no publisher is connected and none can connect. -ECONNRESET: a publisher died before it closed, and
 * everything it had published was taken; -EPROTO: a publisher wrote an invalid value into shared memory. Each of the
 * two is returned once per publisher; later calls take the messages of the others. If none is left and none can
 * connect, later calls return -ECONNRESET. -ECONNREFUSED: no publisher, and a start_connect was refused; -ENOTSUP: in a
 * forked child whose parent held a message; -ENOTCONN, -ECANCELED, -ETIMEDOUT. */
int wherry_subscriber_take(wherry_subscriber subscriber, int64_t timeout_ns, wherry_message* message);
/* The same without blocking: -EAGAIN. */
int wherry_subscriber_try_take(wherry_subscriber subscriber, wherry_message* message);
/* Returns the memory to the publisher. Messages may be released in any order. Does nothing if nothing is held. */
void wherry_message_release(wherry_message* message);
/* The process that published the message. -EINVAL: nothing is held. */
int wherry_message_publisher(const wherry_message* message, struct wherry_peer* peer);

/* Readable while a message, the end or a failure can be taken, or admit has something to do. A try_take that returns
 * -EAGAIN silences it. The descriptor belongs to the subscriber. */
int wherry_subscriber_descriptor(wherry_subscriber subscriber);
int wherry_subscriber_cancel(wherry_subscriber subscriber);
int64_t wherry_subscriber_publishers(wherry_subscriber subscriber);
/* The number of messages lost to WHERRY_OVERFLOW_DROP_OLDEST, of all publishers. */
int64_t wherry_subscriber_dropped(wherry_subscriber subscriber);
int wherry_subscriber_address(wherry_subscriber subscriber, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
