/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver of many streams. Part of <wherry/wherry.h>; <wherry/poller.hpp> is the same in C++.
 *
 * A poller finds the streams that have something to receive, without a look at the others. It can wait for descriptors
 * too. A stream is ready while bytes, the end or a failure can be received. A stream that stays ready is reported by
 * every wait, in turn with the others. A report may be spurious: receive by calls that do not block.
 *
 * Threads: one thread uses a poller, receives from its streams, and closes them. wherry_poller_interrupt may be called
 * from any thread. Closing a stream removes it from its poller; closing the poller removes all. */
#ifndef WHERRY_POLLER_H
#define WHERRY_POLLER_H

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a poller. -EMFILE; -EINVAL: WHERRY_SPIN is invalid. */
int wherry_poller_open(wherry_poller* poller);
void wherry_poller_close(wherry_poller poller);

/* Adds a stream, which is reported by its `token`. A stream is in at most one poller, and meanwhile its
 * wherry_receive_descriptor reports nothing. -EBADF: the stream is closed; -EEXIST: it is in a poller already; -EMFILE;
 * -ENOSPC: the limit fs.epoll.max_user_watches. */
int wherry_poller_add(wherry_poller poller, wherry_stream stream, uint64_t token);
/* Removes a stream. Does nothing if the stream is not in this poller. */
int wherry_poller_remove(wherry_poller poller, wherry_stream stream);
/* Adds a descriptor, which is reported when it is readable. The caller still owns it. -EBADF; -EPERM: a file that is
 * always ready; -EEXIST; -ENOSPC. */
int wherry_poller_add_descriptor(wherry_poller poller, int descriptor, uint64_t token);
/* Removes a descriptor. Must be called before the descriptor is closed. Does nothing if it is not in this poller. */
int wherry_poller_remove_descriptor(wherry_poller poller, int descriptor);

/* Blocks until something is ready, the timeout has passed, or wherry_poller_interrupt was called. Writes the tokens of
 * what is ready into `ready`: at most `count`, each once. Returns their number: 0 after a timeout or an interruption.
 */
int64_t wherry_poller_wait(wherry_poller poller, uint64_t* ready, size_t count, int64_t timeout_ns);
/* Makes the current wait, or else the next, return at once. May be called from any thread. */
int wherry_poller_interrupt(wherry_poller poller);
/* For another event loop: readable while a wait may have something to report. A wait that reports nothing silences it.
 * The descriptor belongs to the poller. */
int wherry_poller_descriptor(wherry_poller poller);

#ifdef __cplusplus
}
#endif

#endif
