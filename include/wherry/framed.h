/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a stream, read in place. Part of <wherry/wherry.h>; <wherry/framed.hpp> is the same in C++.
 *
 * A framed stream carries messages: one receive returns exactly what one send sent. Both sides must use a framed
 * stream, each in its direction. A message is at most wherry_framed_max_send bytes: half the ring, minus 8.
 *
 * Threads and errors: as for a stream. -EMSGSIZE: the message is larger than that; -EPROTO: the received bytes are not
 * messages. If a send fails, no part of its message was sent. */
#ifndef WHERRY_FRAMED_H
#define WHERRY_FRAMED_H

#include <sys/uio.h>

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes over an open stream, with the bytes that it has received and not yet returned. On success the stream's handle
 * must not be used again. After a failure it must still be closed. -EBADF; -ENOMEM: the stream may have been closed,
 * and calls on its handle then return -EBADF. */
int wherry_framed_open(wherry_stream stream, wherry_framed* framed);
/* Flushes, then closes as wherry_stream_close does. */
void wherry_framed_close(wherry_framed framed);
/* As wherry_stream_close_within. If held messages could not be sent it returns that error: -EPIPE: the peer has closed
 * or died; -ECANCELED. */
int wherry_framed_close_within(wherry_framed framed, int64_t timeout_ns);
/* Flushes, consumes the last message, and returns the stream. The framed stream's handle must not be used again. */
int wherry_framed_release(wherry_framed framed, wherry_stream* stream);
/* The underlying stream, for addresses, counters, descriptors, windows, a poller, wherry_cancel and
 * wherry_finish_sending (flush first). It belongs to the framed stream and ends with it. Do not close it or move data
 * by it. */
int wherry_framed_get_stream(wherry_framed framed, wherry_stream* stream);

/* Sends a message, and blocks until all of it was accepted. Returns its size. */
int64_t wherry_framed_send(wherry_framed framed, const void* message, size_t size, int64_t timeout_ns);
/* The same for one message in several pieces. */
int64_t wherry_framed_sendv(wherry_framed framed, const struct iovec* pieces, int count, int64_t timeout_ns);
/* Send the whole message or return -EAGAIN, without blocking. */
int64_t wherry_framed_try_send(wherry_framed framed, const void* message, size_t size);
int64_t wherry_framed_try_sendv(wherry_framed framed, const struct iovec* pieces, int count);

/* Reserves space for a message of `size` bytes in place, until the next call that sends. Never blocks. -EAGAIN: no
 * space now, or sending has failed. wherry_framed_wait_writable then blocks until there is space, or returns the
 * failure. */
int wherry_framed_reserve(wherry_framed framed, size_t size, void** room);
/* Sends the first `size` bytes of that space. -EINVAL: fewer bytes, or none, are reserved. */
int64_t wherry_framed_commit(wherry_framed framed, size_t size);
/* Blocks until wherry_framed_reserve will succeed. Returns `size`. */
int64_t wherry_framed_wait_writable(wherry_framed framed, size_t size, int64_t timeout_ns);

/* Holds messages back until wherry_framed_flush, to publish many small messages at once. Held messages are also
 * published when they reach 64 KiB or a quarter of the ring, and before a send waits for space. */
int wherry_framed_hold(wherry_framed framed);
/* Publishes the held messages, and ends the holding. */
int wherry_framed_flush(wherry_framed framed);

/* Receives a message, and blocks until there is one. 1: `message` and `size` describe it in place, in the ring, until
 * the next call that receives; a message may be empty. 0: the end, the peer finished sending. A hostile peer may still
 * change the bytes: copy bytes that are checked before they are used. */
int wherry_framed_receive(wherry_framed framed, const void** message, size_t* size, int64_t timeout_ns);
/* The same without blocking. -EAGAIN: there is no message. Call it until -EAGAIN: until then the last message stays in
 * the ring, and a poller reports the stream. */
int wherry_framed_try_receive(wherry_framed framed, const void** message, size_t* size);

/* The sizes of the largest message that can be sent, and that can be received. */
int64_t wherry_framed_max_send(wherry_framed framed);
int64_t wherry_framed_max_receive(wherry_framed framed);

#ifdef __cplusplus
}
#endif

#endif
