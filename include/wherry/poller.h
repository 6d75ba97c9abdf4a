/* SPDX-License-Identifier: Apache-2.0 */
/* One receiver of a thousand streams. Part of <wherry/wherry.h>; <wherry/poller.hpp> is the same in C++.
 *
 * A poller finds out which of many streams have something to receive, without looking at the others. Descriptors may be
 * waited for along with them. A stream is ready while bytes, the end or a failure wait; one that stays so is reported
 * again by every wait, in turn with the others. A report may prove spurious: receive by calls that do not block.
 *
 * Threads: one thread uses a poller, and receives from its streams, and closes them; wherry_poller_interrupt may be
 * called from any. Closing a stream takes it out; closing the poller takes out all. */
#ifndef WHERRY_POLLER_H
#define WHERRY_POLLER_H

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -EMFILE; -EINVAL a bad setting of WHERRY_SPIN. */
int wherry_poller_open(wherry_poller* poller);
void wherry_poller_close(wherry_poller poller);

/* `token`: what the program knows the stream by. A stream is in one poller at most, and while it is, its own
 * wherry_receive_descriptor says nothing. -EBADF the stream is closed, -EEXIST it is in a poller already, -EMFILE,
 * -ENOSPC (the limit fs.epoll.max_user_watches). */
int wherry_poller_add(wherry_poller poller, wherry_stream stream, uint64_t token);
/* Does nothing if the stream is not in this poller. */
int wherry_poller_remove(wherry_poller poller, wherry_stream stream);
/* Waits for a descriptor to become readable, too; it stays the caller's. -EBADF, -EPERM (a file that is always ready),
 * -EEXIST, -ENOSPC. */
int wherry_poller_add_descriptor(wherry_poller poller, int descriptor, uint64_t token);
/* To be called before the descriptor is closed. Does nothing if it is not in this poller. */
int wherry_poller_remove_descriptor(wherry_poller poller, int descriptor);

/* Blocks until something is ready, the timeout has passed, or wherry_poller_interrupt was called. Puts the tokens of
 * what is ready into `ready`, at most `count`, each once, and returns how many: 0 after a timeout or an interruption.
 */
int64_t wherry_poller_wait(wherry_poller poller, uint64_t* ready, size_t count, int64_t timeout_ns);
/* Makes the wait under way, or else the next, return at once. From any thread. */
int wherry_poller_interrupt(wherry_poller poller);
/* For another event loop: readable while a wait may have something to report; a wait that reports nothing silences it.
 * Belongs to the poller. */
int wherry_poller_descriptor(wherry_poller poller);

#ifdef __cplusplus
}
#endif

#endif
