/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of Wherry: streams, windows and files. It includes the headers of framed streams, pollers, messages and
 * mailboxes, and offers everything that the C++ API offers. C99; link with -lwherry_c (pkg-config wherry-c), which
 * needs no C++ compiler. docs/bindings.md is for authors of bindings of other languages.
 *
 * Handles are structs of one pointer, passed by value. A zeroed handle (WHERRY_NONE) is "none": functions that take it
 * fail with -EBADF. The function that makes a handle gives it to the caller. The caller frees it with the matching
 * `..._close` and must not use it afterwards.
 *
 * Results: 0 or more on success, a negative errno value on failure. errno itself is not set. If a call that sets
 * something up (listen, accept, connect, open) fails, wherry_last_error() explains the failure in words. Calls that
 * move data return the number of bytes moved. If such a call fails after it moved some bytes, it returns their number,
 * and the next call returns the failure.
 *
 * Timeouts are in nanoseconds: how long a call may block. 0: it does not block. WHERRY_FOREVER: without limit.
 * WHERRY_TIMEOUT_DEFAULT means the configured time in calls that document one, and without limit in all others. Any
 * other negative value means without limit in every call.
 *
 * Errors of moving data: -EAGAIN: nothing can be moved now (only the forms that never block); -EPIPE: the peer receives
 * no more; -ECONNRESET: the peer died, or closed before it finished sending, and everything it had sent was received;
 * -EPROTO: the peer wrote an invalid value into shared memory; -ECANCELED: after wherry_cancel; -ETIMEDOUT; -EINVAL.
 *
 * Threads: one thread may send on a stream while another receives. wherry_cancel may be called from any thread while
 * the stream exists. All other calls on one handle: one thread at a time.
 *
 * Cancellation: no call is a cancellation point. pthread_cancel takes effect after the call has returned and does not
 * shorten it; wherry_cancel ends a wait.
 */
#ifndef WHERRY_WHERRY_H
#define WHERRY_WHERRY_H

#include <sys/types.h>

#include <wherry/file_path.h>
#include <wherry/framed.h>
#include <wherry/handles.h>
#include <wherry/mailbox.h>
#include <wherry/message.h>
#include <wherry/poller.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. */
#define WHERRY_VERSION "0.1.0"
/* The version of the library that is loaded. */
const char* wherry_version(void);
/* Explains why the last call of this thread that sets something up failed, and what to do about it. "" if none has
 * failed. Valid until this thread's next such call. */
const char* wherry_last_error(void);
/* Parts of that text: the operation, its address, and the advice. "" if there is none. Valid as long as the whole text.
 */
const char* wherry_last_error_operation(void);
const char* wherry_last_error_address(void);
const char* wherry_last_error_advice(void);
/* The node number of this process: WHERRY_NODE if set. Otherwise the line of WHERRY_HOSTS that names this machine, if
 * exactly one does. Otherwise 0, the host. -EINVAL: WHERRY_NODE is not a 16-bit number. */
int wherry_own_node(void);

/* Listening and connecting ---------------------------------------------------------------------------------------- */

struct wherry_options {
  size_t ring_bytes; /* capacity of the ring this side receives into; 0: the configured size */
  uint32_t flags;    /* WHERRY_WINDOWS or 0 */
  uint32_t reserved; /* 0 */
};
/* This side wants windows. The stream has windows only if both sides set this flag. */
#define WHERRY_WINDOWS 1u

/* Listens on `address`, such as "wherry://0:2000". `*` as node is this process's own node; `*` as port is a free port.
 * `options` (NULL: the defaults) apply to each stream accepted there. -EADDRINUSE; -EADDRNOTAVAIL: the node is not this
 * process's; -EINVAL; -EMFILE. */
int wherry_listen(const char* address, const struct wherry_options* options, wherry_listener* listener);
/* Blocks until a peer connects. -ETIMEDOUT, -EMFILE. With a timeout of 0 it never blocks: -EAGAIN if no peer waits. */
int wherry_accept(wherry_listener listener, int64_t timeout_ns, wherry_stream* stream);
/* Readable while a peer may wait to be accepted. The descriptor belongs to the listener. */
int wherry_listener_descriptor(wherry_listener listener);
/* Writes the address of the listener, with wildcards resolved and a terminating zero. Returns its length, as snprintf
 * does: `size` or more means that the text was cut. */
int wherry_listener_address(wherry_listener listener, char* text, size_t size);
void wherry_listener_close(wherry_listener listener);

/* Connects, and blocks until the peer accepts. Without a listener it retries every 1 to 100 ms, so the listener may
 * start later. WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT (10 s); a timeout of 0 makes one attempt.
 * -ECONNREFUSED: no listener before the timeout, or the listener refused; -ETIMEDOUT: the listener did not accept;
 * -EACCES, -EINVAL, -EMFILE. */
int wherry_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                   wherry_stream* stream);
/* Starts to connect and returns at once. The timeout limits how long the attempt waits for a listener.
 * WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT. With 0 and no listener this call fails with -ECONNREFUSED; for
 * another host wherry_try_finish does, which knows later. */
int wherry_start_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                         wherry_connecting* connecting);
/* Completes an attempt without blocking. -EAGAIN: no listener or no answer yet; other errors as wherry_connect. On
 * success the attempt is over, but its handle must still be closed. */
int wherry_try_finish(wherry_connecting connecting, wherry_stream* stream);
/* The same, but blocks until the attempt is over. Also -ETIMEDOUT. WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT. */
int wherry_finish_connect(wherry_connecting connecting, int64_t timeout_ns, wherry_stream* stream);
/* Readable when wherry_try_finish has something to do. The descriptor belongs to the attempt. */
int wherry_connecting_descriptor(wherry_connecting connecting);
void wherry_connecting_close(wherry_connecting connecting);

/* Moving data ----------------------------------------------------------------------------------------------------- */

/* Send all bytes, and block until they were accepted. */
int64_t wherry_send(wherry_stream stream, const void* bytes, size_t size, int64_t timeout_ns);
int64_t wherry_sendv(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns);
/* Receive bytes, and block until at least one has arrived. Return 0 at the end, when the peer finished sending, or if
 * `size` is 0. */
int64_t wherry_receive(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns);
int64_t wherry_receivev(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns);
/* Blocks until the buffer is full. A smaller result means that the peer finished sending. */
int64_t wherry_receive_all(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns);
/* Move the bytes that can be moved now, without blocking. -EAGAIN: none. */
int64_t wherry_try_send(wherry_stream stream, const void* bytes, size_t size);
int64_t wherry_try_receive(wherry_stream stream, void* buffer, size_t size);
int64_t wherry_try_sendv(wherry_stream stream, const struct iovec* buffers, int count);
int64_t wherry_try_receivev(wherry_stream stream, const struct iovec* buffers, int count);

/* Access the ring in place, without blocking. A region has at most two pieces, `regions[0]` and `regions[1]`; the calls
 * return the bytes in both, 0 if there are none. The sender reserves space, writes into it, and commits the first bytes
 * of it. The receiver peeks at bytes, reads them in place, and returns them to the sender by consuming them. A hostile
 * peer may change the bytes while they are read. */
int64_t wherry_reserve(wherry_stream stream, size_t want, struct iovec regions[2]);
int64_t wherry_commit(wherry_stream stream, size_t bytes);
int64_t wherry_peek(wherry_stream stream, size_t want, struct iovec regions[2]);
int64_t wherry_consume(wherry_stream stream, size_t bytes);

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* Block until there are bytes to receive, or space. wherry_wait_readable returns the number of bytes, 0 at the end.
 * wherry_wait_writable waits for space for `bytes`, at most half the ring, and returns the free space. */
int64_t wherry_wait_readable(wherry_stream stream, int64_t timeout_ns);
int64_t wherry_wait_writable(wherry_stream stream, size_t bytes, int64_t timeout_ns);
/* Returns what wherry_wait_readable would return, or -EAGAIN, without blocking. An -EAGAIN has the same effect on the
 * descriptors as that of wherry_try_receive. */
int64_t wherry_try_readable(wherry_stream stream);
/* For poll, select and epoll: readable while bytes, the end or a failure can be received. A wherry_try_receive that
 * returns -EAGAIN silences it. The descriptor belongs to the stream. */
int wherry_receive_descriptor(wherry_stream stream);
/* Becomes *readable* when space returns after a wherry_try_send that moved less than all. The descriptor belongs to the
 * stream. */
int wherry_send_descriptor(wherry_stream stream);
/* For an event loop that calls wherry_try_receive until it returns -EAGAIN. The peer makes this descriptor readable
 * directly, so a wake-up takes less time than by wherry_receive_descriptor. Poll it level-triggered.
 * <wherry/stream.hpp> lists the events that it does not report. The second descriptor is for space: readable when space
 * returns after a wherry_try_send or wherry_reserve that found none. Both belong to the stream. */
int wherry_receive_event_descriptor(wherry_stream stream);
int wherry_send_event_descriptor(wherry_stream stream);
/* Makes the send descriptor readable, if there is one, until the next wherry_try_send. For an event loop that ends the
 * turn of a stream which has more to send. */
int wherry_raise_send_descriptor(wherry_stream stream);

/* Windows --------------------------------------------------------------------------------------------------------- */

/* Each side of a stream registers ranges of its memory at offsets of its own address space. The other side reads,
 * writes and maps them at any time; the owner's program takes no part. The program transfers the offsets, such as over
 * the stream. Both sides must have set WHERRY_WINDOWS, else -ENOTSUP. Threads: any. -ENXIO: a part of a range is not
 * registered; -EPERM: a window does not permit the access; -EFAULT: memory is not mapped; -EINVAL: no bytes, or not
 * whole pages; -ECONNRESET; -ENOMEM. */

#define WHERRY_READ     1
#define WHERRY_WRITE    2
#define WHERRY_ANYWHERE ((int64_t)-1)

/* Registers memory of the program, in whole pages. The program may use and free it as before: the registered pages stay
 * until they are unregistered. Other threads may use the memory during the call (docs/limits.md). `access`: what the
 * peer may do. `at`: WHERRY_ANYWHERE, or a multiple of the page size below 2^62. -EADDRINUSE: a window is there;
 * -EBUSY: the peer still maps a former window there. */
int wherry_register(wherry_stream stream, void* memory, size_t size, int access, int64_t at, uint64_t* offset);
/* Unregisters the windows within a range of whole pages. The peer can start no new transfer on them; its mappings stay.
 */
int wherry_unregister(wherry_stream stream, uint64_t offset, size_t size);

/* For `flags` of transfers. COMPLETE: return after completion; without it, a transfer on a put fabric may complete
 * later. ORDERED: the last cache line of the destination becomes visible after all others. */
#define WHERRY_COMPLETE 1
#define WHERRY_ORDERED  2

/* Copy between a range of this side's windows and one of the peer's, at any alignment. A range may span adjacent
 * windows. Return 0. */
int wherry_write_to(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags);
int wherry_read_from(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags);
/* The same with any memory of this process. */
int wherry_vwrite_to(wherry_stream stream, const void* source, size_t size, uint64_t remote, int flags);
int wherry_vread_from(wherry_stream stream, void* destination, size_t size, uint64_t remote, int flags);

/* Which side's transfers a fence covers. */
#define WHERRY_STARTED_HERE    0
#define WHERRY_STARTED_BY_PEER 1

/* Mark all transfers started so far, and wait until they are complete. WHERRY_TIMEOUT_DEFAULT is 10 s. With a timeout
 * of 0 the wait returns -ETIMEDOUT if they are not complete. */
int wherry_fence_mark(wherry_stream stream, int whose, uint64_t* mark);
int wherry_fence_wait(wherry_stream stream, int whose, uint64_t mark, int64_t timeout_ns);
/* Stores one or two words once all transfers started so far are complete: 8 bytes in a window of this side (NULL:
 * none), then 8 bytes in a window of the peer (NULL: none). A load that sees a word also sees all bytes of those
 * transfers. */
struct wherry_signal {
  uint64_t offset; /* a multiple of 4 */
  uint64_t value;
};
int wherry_fence_signal(wherry_stream stream, int whose, const struct wherry_signal* local,
                        const struct wherry_signal* remote);

/* Maps whole pages of the peer's windows as shared memory, until wherry_unmap. The mapping outlives the stream and the
 * peer. -ENOTSUP: the memory cannot be mapped, for example on a put fabric. */
int wherry_map(wherry_stream stream, uint64_t remote, size_t size, int access, void** start);
int wherry_unmap(void* start, size_t size);

/* Files ----------------------------------------------------------------------------------------------------------- */

/* Files of this machine and of hosts (docs/files.md); <wherry/files.hpp> is the same in C++. A file has no offset: each
 * call has one. Threads: any number at once, but one thread closes a file while no other uses it. After a fork a file
 * of a host belongs to the parent: calls of the child fail with -EBADF. */

/* The path of a call is one of WHERRY_PATH_... (wherry/file_path.h). */
struct wherry_file_options {
  int32_t path;         /* WHERRY_PATH_... */
  uint32_t timeout_ms;  /* how long a call waits for a server that is gone, then -EIO; 0: 1 minute */
  uint32_t reserved[2]; /* 0 */
};

/* Opens a path, or wherry://NODE:PORT/PATH of a `wherry serve`. `flags` and `mode` as of open(2): an access mode,
 * O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_NOFOLLOW, O_DIRECTORY. `options`: NULL for the defaults.
 * Errors as open(2). -EINVAL also: another flag, or an invalid name. For a host also as wherry_connect. */
int wherry_file_open(const char* name, int flags, mode_t mode, const struct wherry_file_options* options,
                     wherry_file* file);
/* Closes the file in any case. -EIO: the host was restarted and lost writes that were not synced. */
int wherry_file_close(wherry_file file);

/* Read at an offset. A short result means the end of the file; 0 at the end. */
int64_t wherry_file_pread(wherry_file file, void* buffer, size_t size, uint64_t offset, int path);
int64_t wherry_file_preadv(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path);
/* Write at an offset. A short result means an error, which the next call returns. -EINVAL: the file was opened with
 * O_APPEND. */
int64_t wherry_file_pwrite(wherry_file file, const void* bytes, size_t size, uint64_t offset, int path);
int64_t wherry_file_pwritev(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path);
/* Appends to a file opened with O_APPEND (else -EINVAL). Up to 16 MiB are appended in one piece. */
int64_t wherry_file_append(wherry_file file, const void* bytes, size_t size);
/* After success, all earlier writes are durable at the file's machine. `data_only`: 1 as fdatasync, 0 as fsync. */
int wherry_file_sync(wherry_file file, int data_only);
int wherry_file_set_size(wherry_file file, uint64_t size);

struct wherry_file_status {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  uint64_t blocks; /* of 512 bytes */
  uint32_t mode;   /* type and permissions, as st_mode */
  uint32_t links;
  uint32_t user;
  uint32_t group;
  int64_t accessed_ns; /* since 1970, as the next three */
  int64_t modified_ns;
  int64_t changed_ns;
  int64_t born_ns; /* 0: the file system does not say */
};
/* The status of an open file, as fstat. */
int wherry_file_stat(wherry_file file, struct wherry_file_status* status);
/* The status of a name, as wherry_file_open takes it. Follows symbolic links. */
int wherry_file_stat_name(const char* name, const struct wherry_file_options* options,
                          struct wherry_file_status* status);
/* Removes a file's name. */
int wherry_file_remove(const char* name, const struct wherry_file_options* options);

/* Maps bytes of a file of this machine from the kernel's page cache: `size` bytes from `offset`, or up to the end of
 * the file. Returns their number. 0: the end of the file, a file of a host, or a file that cannot be read in place. The
 * mapping stays until the file is closed and behaves as one of mmap(2): later changes are visible. A read behind the
 * end of a file that was made shorter raises SIGBUS. */
int64_t wherry_file_view(wherry_file file, uint64_t offset, size_t size, const void** bytes);

/* Sets the path of later calls that pass WHERRY_PATH_AS_SET. */
int wherry_file_set_path(wherry_file file, int path);
/* Returns the path of such calls: WHERRY_PATH_... */
int wherry_file_get_path(wherry_file file);

/* Ending ---------------------------------------------------------------------------------------------------------- */

/* Half-close: the peer receives everything sent so far, then the end. */
int wherry_finish_sending(wherry_stream stream);
/* Finishes sending, waits until all accepted bytes are in the receiver's memory, and frees the stream. On a network it
 * waits for at most 10 s, and then logs that bytes may be lost. */
void wherry_stream_close(wherry_stream stream);
/* The same with a timeout, and returns whether all bytes arrived. -ETIMEDOUT: the peer's side has not acknowledged all
 * of them, and may lose the rest; -ECONNRESET: the peer is gone, and has not said that it has read all of them, or
 * the stream has windows. The stream is freed in every case. */
int wherry_stream_close_within(wherry_stream stream, int64_t timeout_ns);
/* Makes every blocked and later call on the stream fail with -ECANCELED. May be called from any thread. */
int wherry_cancel(wherry_stream stream);

/* Addresses and counters ------------------------------------------------------------------------------------------ */

/* This side's address, as wherry_listener_address. */
int wherry_stream_address(wherry_stream stream, char* text, size_t size);
/* The process at the other end. */
int wherry_get_peer(wherry_stream stream, struct wherry_peer* peer);
/* The name or address of the peer's host, as wherry_listener_address. On the same machine the text is empty, and 0 is
 * returned. */
int wherry_peer_host(wherry_stream stream, char* text, size_t size);

struct wherry_capacities {
  size_t send;    /* capacity of the ring the peer receives into, or the limit of wherry_limit_unread */
  size_t receive; /* capacity of the ring this side receives into */
};
/* The sizes of the two rings of a stream. */
int wherry_get_capacities(wherry_stream stream, struct wherry_capacities* capacities);
/* Limits the unread bytes in the peer's ring to `bytes`, at least 4 KiB. -EINVAL: the stream has sent already. */
int wherry_limit_unread(wherry_stream stream, size_t bytes);

/* Counters of this side, since the stream was connected. May be read from any thread. */
struct wherry_counters {
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t bytes_sent_split;     /* of bytes_sent: copied by both sides at the same time, past the ring */
  uint64_t bytes_received_split; /* of bytes_received: likewise */
  uint64_t sends;                /* publications: a large send is published in pieces */
  uint64_t receives;             /* calls that received bytes */
  uint64_t send_sleeps;          /* times this side went to sleep for space */
  uint64_t receive_sleeps;       /* times this side went to sleep for bytes */
  uint64_t wakes;                /* times this side woke the peer (one system call each) */
  uint64_t reserved[7];          /* 0 */
};
int wherry_get_counters(wherry_stream stream, struct wherry_counters* counters);

#ifdef __cplusplus
}
#endif

#endif
