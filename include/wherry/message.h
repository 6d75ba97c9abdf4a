/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a copy, from any number of publishers to any number of subscribers. Part of <wherry/wherry.h>;
 * <wherry/message.hpp> is the same in C++.
 *
 * Either side may be the one that listens. A message stays where the publisher wrote it, in its pool, until the last
 * subscriber has released it.
 *
 * Threads: a publisher, and a subscriber with its messages, is used by one thread at a time; the two cancel calls come
 * from any. Fork: both stay the parent's; a child closes its copies, which ends nothing. */
#ifndef WHERRY_MESSAGE_H
#define WHERRY_MESSAGE_H

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For `flags` of both: touch the pool in advance, so that no message waits for the system to find memory. */
#define WHERRY_PREFAULT 1u

struct wherry_publisher_options {
  size_t pool_bytes; /* all messages loaned, waiting or being read; 0: the configured size (WHERRY_POOL) */
  uint32_t flags;    /* WHERRY_PREFAULT or 0 */
  uint32_t reserved; /* 0 */
};

/* What a publisher does when a subscriber's queue is full. */
enum {
  WHERRY_OVERFLOW_WAIT = 0,       /* it waits for that subscriber: nothing is lost */
  WHERRY_OVERFLOW_DROP_OLDEST = 1 /* the subscriber loses the oldest message that it has not taken */
};

struct wherry_subscriber_options {
  size_t queue;         /* messages of one publisher that wait or are held, up to 65536; 0: 16 */
  uint32_t overflow;    /* WHERRY_OVERFLOW_... */
  uint32_t flags;       /* WHERRY_PREFAULT or 0 */
  uint32_t reserved[2]; /* 0 */
};

/* Memory of a publisher's pool, to write one message into. The program reads the first two members. It changes none,
 * passes the struct by pointer, and makes no second copy of it. A loan may outlive its publisher. */
typedef struct wherry_loan {
  void* bytes; /* the content is what an earlier message left there; NULL: nothing is held */
  size_t size;
  void* pool; /* this and the next: the library's; NULL: nothing is held */
  uint32_t block;
  uint32_t reserved;
} wherry_loan;

/* A message that was taken, to read in place; otherwise as a loan. It stays readable until it is released, also when
 * its publisher has died or the subscriber is closed. A hostile publisher may change it meanwhile: copy what is checked
 * before it is used. */
typedef struct wherry_message {
  const void* bytes;
  size_t size;
  void* connection; /* this and the next two: the library's; NULL: nothing is held */
  uint32_t ticket;
  uint32_t process;
} wherry_message;

/* Publishing ------------------------------------------------------------------------------------------------------ */

/* `options`: NULL for the defaults. -EINVAL a bad option. */
int wherry_publisher_open(const struct wherry_publisher_options* options, wherry_publisher* publisher);
/* Subscribers receive everything published so far, then the end. Never blocks. */
void wherry_publisher_close(wherry_publisher publisher);
/* Lets subscribers connect. Once per publisher. Errors as wherry_listen; -ENOTSUP on a fabric without shared memory. */
int wherry_publisher_listen(wherry_publisher publisher, const char* address);
/* Connects to a subscriber that listens, or will, and blocks until it has let this publisher in. Timeout and errors as
 * wherry_connect. Any number of times. */
int wherry_publisher_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns);
/* The same without blocking: wherry_publisher_admit completes it. The timeout is how long it waits for a listener. */
int wherry_publisher_start_connect(wherry_publisher publisher, const char* address, int64_t timeout_ns);
/* Accepts connectors that wait, completes connections under way, drops subscribers that are gone, and blocks until at
 * least `wanted` are joined (0: never blocks). Returns how many are. -ETIMEDOUT; -ENOTCONN before the first listen or
 * connect; and as wherry_try_finish. */
int64_t wherry_publisher_admit(wherry_publisher publisher, size_t wanted, int64_t timeout_ns);

/* Lends memory for a message of `size` bytes, any number at a time; what `loan` held is given back first. Blocks while
 * the pool is in use by subscribers. 0; -EMSGSIZE larger than the pool, -ENOBUFS this program's own loans hold what is
 * missing, -EPIPE no subscriber is joined and none can join, -ENOTCONN, -ECANCELED, -ETIMEDOUT. */
int wherry_publisher_loan(wherry_publisher publisher, size_t size, int64_t timeout_ns, wherry_loan* loan);
/* Never blocks: -EAGAIN. */
int wherry_publisher_try_loan(wherry_publisher publisher, size_t size, wherry_loan* loan);
/* Only the first `size` bytes are to be published. -EINVAL there are fewer, or nothing is held. */
int wherry_loan_shorten(wherry_loan* loan, size_t size);
/* Gives the memory back unpublished. Does nothing if nothing is held. */
void wherry_loan_release(wherry_loan* loan);
/* Hands the message to every subscriber; the loan is then WHERRY_NONE. Blocks while a subscriber that is waited for has
 * a full queue. 0; after a failure the loan is kept. Without a subscriber the message is discarded, which succeeds as
 * long as the publisher listens. -EINVAL nothing is held, or it is another publisher's; otherwise as the loan. */
int wherry_publisher_publish(wherry_publisher publisher, wherry_loan* loan, int64_t timeout_ns);
/* Never blocks: -EAGAIN. */
int wherry_publisher_try_publish(wherry_publisher publisher, wherry_loan* loan);

/* Becomes readable when a try_loan or try_publish that was -EAGAIN may succeed, or admit has something to do. Belongs
 * to the publisher. */
int wherry_publisher_descriptor(wherry_publisher publisher);
/* Makes every blocked and later call that moves data fail with -ECANCELED. From any thread. */
int wherry_publisher_cancel(wherry_publisher publisher);
/* Subscribers that are joined, as far as is known. */
int64_t wherry_publisher_subscribers(wherry_publisher publisher);
/* Where it listens, as wherry_listener_address. */
int wherry_publisher_address(wherry_publisher publisher, char* text, size_t size);
/* The size of the largest message. */
int64_t wherry_publisher_pool_bytes(wherry_publisher publisher);

/* Subscribing ----------------------------------------------------------------------------------------------------- */

/* As the publisher's calls. wherry_subscriber_close leaves: what was not taken goes back to the publishers. */
int wherry_subscriber_open(const struct wherry_subscriber_options* options, wherry_subscriber* subscriber);
void wherry_subscriber_close(wherry_subscriber subscriber);
int wherry_subscriber_listen(wherry_subscriber subscriber, const char* address);
int wherry_subscriber_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns);
int wherry_subscriber_start_connect(wherry_subscriber subscriber, const char* address, int64_t timeout_ns);
int64_t wherry_subscriber_admit(wherry_subscriber subscriber, size_t wanted, int64_t timeout_ns);

/* Releases what `message` held, and blocks until there is a message. 1: there is one, which may be empty. 0: the end,
 * no publisher is joined any more and none can join. -ECONNRESET a publisher died before it closed, and everything it
 * had published was taken, -EPROTO it wrote nonsense into shared memory: once for each, then the others go on.
 * -ECONNREFUSED no publisher, and a start_connect was refused. -ENOTSUP in a forked child whose parent held a message.
 * -ENOTCONN, -ECANCELED, -ETIMEDOUT. */
int wherry_subscriber_take(wherry_subscriber subscriber, int64_t timeout_ns, wherry_message* message);
/* Never blocks: -EAGAIN. */
int wherry_subscriber_try_take(wherry_subscriber subscriber, wherry_message* message);
/* Gives the memory back to the publisher, in any order. Does nothing if nothing is held. */
void wherry_message_release(wherry_message* message);
/* The process that published it. -EINVAL nothing is held. */
int wherry_message_publisher(const wherry_message* message, struct wherry_peer* peer);

/* Readable while messages, the end or a failure wait, or admit has something to do; silenced by a try_take that is
 * -EAGAIN. Belongs to the subscriber. */
int wherry_subscriber_descriptor(wherry_subscriber subscriber);
int wherry_subscriber_cancel(wherry_subscriber subscriber);
int64_t wherry_subscriber_publishers(wherry_subscriber subscriber);
/* Messages lost to WHERRY_OVERFLOW_DROP_OLDEST, of all publishers. */
int64_t wherry_subscriber_dropped(wherry_subscriber subscriber);
int wherry_subscriber_address(wherry_subscriber subscriber, char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
