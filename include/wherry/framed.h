/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a stream, read in place. Part of <wherry/wherry.h>; <wherry/framed.hpp> is the same in C++.
 *
 * A framed stream carries messages: what one send sent, one receive receives, whole. Both sides must use one, each in
 * its direction. A message is at most wherry_framed_max_send bytes: half the ring less 8.
 *
 * Threads and errors: as for a stream. -EMSGSIZE the message is larger than that; -EPROTO what arrived are no messages.
 * A message whose send failed was not sent in part. */
#ifndef WHERRY_FRAMED_H
#define WHERRY_FRAMED_H

#include <sys/uio.h>

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes an open stream over, with all that it has received and not given out. On success the stream's handle must not
 * be used again; after a failure it is still to be closed. -EBADF; -ENOMEM: the stream may have been closed, and calls
 * on its handle are then -EBADF. */
int wherry_framed_open(wherry_stream stream, wherry_framed* framed);
/* Flushes, then closes as wherry_stream_close does. */
void wherry_framed_close(wherry_framed framed);
/* As wherry_stream_close_within; or what kept collected messages from being sent: -EPIPE the peer has closed or died,
 * -ECANCELED. */
int wherry_framed_close_within(wherry_framed framed, int64_t timeout_ns);
/* Flushes, lets the last message go, and gives the stream back. The framed stream's handle must not be used again. */
int wherry_framed_release(wherry_framed framed, wherry_stream* stream);
/* The stream within, for its addresses, counters, descriptors and windows, a poller, wherry_cancel and
 * wherry_finish_sending (flush first). It belongs to the framed stream: not to be closed, not for moving data, and gone
 * with it. */
int wherry_framed_get_stream(wherry_framed framed, wherry_stream* stream);

/* Blocks until the whole message was accepted. Returns its size. */
int64_t wherry_framed_send(wherry_framed framed, const void* message, size_t size, int64_t timeout_ns);
/* One message out of several pieces. */
int64_t wherry_framed_sendv(wherry_framed framed, const struct iovec* pieces, int count, int64_t timeout_ns);
/* Never block: the whole message, or -EAGAIN. */
int64_t wherry_framed_try_send(wherry_framed framed, const void* message, size_t size);
int64_t wherry_framed_try_sendv(wherry_framed framed, const struct iovec* pieces, int count);

/* Room for a message of `size` bytes where the receiver will read it, until the next call that sends. Never blocks.
 * -EAGAIN there is none now, or sending has failed: wherry_framed_wait_writable blocks until there is, or says why. */
int wherry_framed_reserve(wherry_framed framed, size_t size, void** room);
/* Sends the first `size` bytes of that room. -EINVAL nothing, or less, is reserved. */
int64_t wherry_framed_commit(wherry_framed framed, size_t size);
/* Blocks until wherry_framed_reserve will succeed. Returns `size`. */
int64_t wherry_framed_wait_writable(wherry_framed framed, size_t size, int64_t timeout_ns);

/* Holds messages back until wherry_framed_flush, to publish many small ones at once. They are also published when they
 * come to 64 KiB or a quarter of the ring, and before a send waits for space. */
int wherry_framed_hold(wherry_framed framed);
/* Publishes what is held, and holds no more. */
int wherry_framed_flush(wherry_framed framed);

/* Blocks until there is a message. 1: `message` and `size` tell where it lies, in the ring, until the next call that
 * receives; a message may be empty. 0: the end, the peer finished sending. A hostile peer may still change the bytes:
 * copy what is checked before it is used. */
int wherry_framed_receive(wherry_framed framed, const void** message, size_t* size, int64_t timeout_ns);
/* The same without blocking: -EAGAIN there is none. The last message makes a poller report the stream until then. */
int wherry_framed_try_receive(wherry_framed framed, const void** message, size_t* size);

/* The largest message that can be sent, and received. */
int64_t wherry_framed_max_send(wherry_framed framed);
int64_t wherry_framed_max_receive(wherry_framed framed);

#ifdef __cplusplus
}
#endif

#endif
