/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of Wherry: all that C++ has, streams, windows and files here, framed streams, pollers, messages and
 * mailboxes in the headers that this one includes. C99; link with -lwherry_c (pkg-config wherry-c), which needs no C++
 * compiler. docs/bindings.md is for bindings of other languages.
 *
 * Handles are structs of one pointer, passed by value. A zeroed one (WHERRY_NONE) is "none": functions that take it
 * fail with -EBADF. The function that makes a handle gives it to the caller, which gives it back with the matching
 * `..._close`; after that it must not be used again.
 *
 * Results: 0 or more on success; on failure a negative errno value, never errno itself. wherry_last_error() tells the
 * last failure of a call that sets something up (listen, accept, connect, open), in words. Calls that move data return
 * how many bytes they moved. If a failure comes after some bytes were moved they return that number, and the next call
 * returns the failure.
 *
 * Timeouts are nanoseconds: how long a call may block. 0: not at all. WHERRY_FOREVER: without limit. Some calls have a
 * configured time and say so; there WHERRY_TIMEOUT_DEFAULT means that time. In all other calls it means without limit,
 * as any other negative value does in every call.
 *
 * Errors of moving data: -EAGAIN nothing can be moved now (only the forms that never block); -EPIPE the peer will
 * receive no more; -ECONNRESET the peer died, or closed before it finished, and everything it had sent was received;
 * -EPROTO the peer wrote nonsense into shared memory; -ECANCELED after wherry_cancel; -ETIMEDOUT; -EINVAL.
 *
 * Threads: one thread may send on a stream while another receives. wherry_cancel may be called from any thread while
 * the stream exists. Everything else of one handle: one thread at a time.
 *
 * Cancellation: no call is a cancellation point. A pthread_cancel waits until the call has returned, which it does not
 * hasten: wherry_cancel ends a wait.
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
/* Why the last call of this thread that sets something up failed, and what to do about it; "" if none has. Valid until
 * this thread's next such call. */
const char* wherry_last_error(void);
/* Parts of that text: what was tried, on which address, and the advice; "" if there is none. As long valid. */
const char* wherry_last_error_operation(void);
const char* wherry_last_error_address(void);
const char* wherry_last_error_advice(void);
/* The node that this process is: WHERRY_NODE; else the line of WHERRY_HOSTS that names this machine, if exactly one
 * does; else 0, the host. -EINVAL WHERRY_NODE is no 16-bit number. */
int wherry_own_node(void);

/* Listening and connecting ---------------------------------------------------------------------------------------- */

struct wherry_options {
  size_t ring_bytes; /* of the ring this side receives into; 0: the configured size */
  uint32_t flags;    /* WHERRY_WINDOWS or 0 */
  uint32_t reserved; /* 0 */
};
/* This side wants windows; there are some if the other does too. */
#define WHERRY_WINDOWS 1u

/* Listens on `address`, such as "wherry://0:2000"; * as node is this process's own, as port a free one. `options`:
 * NULL for the defaults, else for each stream accepted there. -EADDRINUSE, -EADDRNOTAVAIL (another node's), -EINVAL,
 * -EMFILE. */
int wherry_listen(const char* address, const struct wherry_options* options, wherry_listener* listener);
/* Blocks until a connector comes. -ETIMEDOUT, -EMFILE. A timeout of 0 never blocks: -EAGAIN when none waits. */
int wherry_accept(wherry_listener listener, int64_t timeout_ns, wherry_stream* stream);
/* Readable while a connector may wait. Belongs to the listener. */
int wherry_listener_descriptor(wherry_listener listener);
/* Writes the address that is listened on, wildcards resolved, with its terminating zero; returns its length, as
 * snprintf does: `size` or more means that it was cut. */
int wherry_listener_address(wherry_listener listener, char* text, size_t size);
void wherry_listener_close(wherry_listener listener);

/* Connects and blocks until the peer accepts. While there is no listener it tries again, 1 to 100 ms apart, so the
 * listener may start later. WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT (10 s); a timeout of 0 makes one attempt.
 * -ECONNREFUSED no listener before the timeout, or the listener refused; -ETIMEDOUT the listener did not
 * accept; -EACCES, -EINVAL, -EMFILE. */
int wherry_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                   wherry_stream* stream);
/* Starts to connect and returns at once. The timeout is how long the attempt waits for a listener:
 * WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT; with 0 it is -ECONNREFUSED here without a listener. */
int wherry_start_connect(const char* address, const struct wherry_options* options, int64_t timeout_ns,
                         wherry_connecting* connecting);
/* Never blocks. -EAGAIN while there is no listener, or no answer; else as wherry_connect. On success the
 * attempt is over, but still to be closed. */
int wherry_try_finish(wherry_connecting connecting, wherry_stream* stream);
/* The same, and blocks until then. Also -ETIMEDOUT; WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT. */
int wherry_finish_connect(wherry_connecting connecting, int64_t timeout_ns, wherry_stream* stream);
/* Readable when wherry_try_finish has something to do. Belongs to the attempt. */
int wherry_connecting_descriptor(wherry_connecting connecting);
void wherry_connecting_close(wherry_connecting connecting);

/* Moving data ----------------------------------------------------------------------------------------------------- */

/* Blocks until all of it was accepted. */
int64_t wherry_send(wherry_stream stream, const void* bytes, size_t size, int64_t timeout_ns);
int64_t wherry_sendv(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns);
/* Blocks until at least one byte is there. 0: the end, the peer finished sending (or `size` is 0). */
int64_t wherry_receive(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns);
int64_t wherry_receivev(wherry_stream stream, const struct iovec* buffers, int count, int64_t timeout_ns);
/* Blocks until the buffer is full. Fewer: the end. */
int64_t wherry_receive_all(wherry_stream stream, void* buffer, size_t size, int64_t timeout_ns);
/* Never block; move what can be moved now, -EAGAIN if that is nothing. */
int64_t wherry_try_send(wherry_stream stream, const void* bytes, size_t size);
int64_t wherry_try_receive(wherry_stream stream, void* buffer, size_t size);
int64_t wherry_try_sendv(wherry_stream stream, const struct iovec* buffers, int count);
int64_t wherry_try_receivev(wherry_stream stream, const struct iovec* buffers, int count);

/* Zero-copy: at most two pieces of the ring, in `regions[0]` and `regions[1]`; returns the bytes in both, 0 if none.
 * Never block. The sender writes into what it reserved and commits the first bytes of it; the receiver reads what it
 * peeks at in place (a hostile peer may change it meanwhile) and gives it back by consuming it. */
int64_t wherry_reserve(wherry_stream stream, size_t want, struct iovec regions[2]);
int64_t wherry_commit(wherry_stream stream, size_t bytes);
int64_t wherry_peek(wherry_stream stream, size_t want, struct iovec regions[2]);
int64_t wherry_consume(wherry_stream stream, size_t bytes);

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* Block until there is something to receive (returns how much; 0: the end), or space for `bytes` but at most half the
 * ring (returns how much). */
int64_t wherry_wait_readable(wherry_stream stream, int64_t timeout_ns);
int64_t wherry_wait_writable(wherry_stream stream, size_t bytes, int64_t timeout_ns);
/* Never blocks: what wherry_wait_readable would return, or -EAGAIN, which counts as that of a wherry_try_receive. */
int64_t wherry_try_readable(wherry_stream stream);
/* For poll, select and epoll: readable while bytes, the end or a failure wait; silenced by a wherry_try_receive that
 * returns -EAGAIN. Belongs to the stream. */
int wherry_receive_descriptor(wherry_stream stream);
/* Becomes *readable* when space returns after a wherry_try_send that moved less than all. Belongs to the stream. */
int wherry_send_descriptor(wherry_stream stream);
/* For an event loop that calls wherry_try_receive until it is -EAGAIN: the descriptor that the peer itself rings, which
 * wakes sooner. To be polled level-triggered. <wherry/stream.hpp> says what it leaves out. The second one is for space:
 * readable once it returned after a wherry_try_send or wherry_reserve that found none. Both belong to the stream. */
int wherry_receive_event_descriptor(wherry_stream stream);
int wherry_send_event_descriptor(wherry_stream stream);
/* Makes the send descriptor readable, if there is one, until the next wherry_try_send: for an event loop in which this
 * stream has had its turn and has more to send. */
int wherry_raise_send_descriptor(wherry_stream stream);

/* Windows --------------------------------------------------------------------------------------------------------- */

/* Each side of a stream (both with WHERRY_WINDOWS, else -ENOTSUP) registers ranges of its memory at offsets of its own
 * address space; the other reads, writes and maps them at any time, without the owner's program taking part. Offsets
 * are told over the stream. From any thread. -ENXIO not all of a range is registered; -EPERM a window does not allow
 * it; -EFAULT memory is not there; -EINVAL no bytes, or no whole pages; -ECONNRESET; -ENOMEM. */

#define WHERRY_READ     1
#define WHERRY_WRITE    2
#define WHERRY_ANYWHERE ((int64_t)-1)

/* Registers memory that the program already has, and may use and free as before: what the peer reaches stays until it
 * is unregistered. Whole pages; other threads may go on using them (docs/limits.md). `access`: what the peer may do.
 * `at`: WHERRY_ANYWHERE, or a multiple of the page size below 2^62: -EADDRINUSE a window is there, -EBUSY is still
 * mapped. */
int wherry_register(wherry_stream stream, void* memory, size_t size, int access, int64_t at, uint64_t* offset);
/* Unregisters the windows within a range of whole pages. The peer can start nothing new on them; what it has mapped
 * stays. */
int wherry_unregister(wherry_stream stream, uint64_t offset, size_t size);

/* For `flags` of transfers: return after completion (put fabrics complete late otherwise); the last cache line of the
 * destination becomes visible after all the rest. */
#define WHERRY_COMPLETE 1
#define WHERRY_ORDERED  2

/* Copy between a range of this side's windows and one of the peer's, at any alignment, over windows that follow each
 * other. Return 0. */
int wherry_write_to(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags);
int wherry_read_from(wherry_stream stream, uint64_t local, size_t size, uint64_t remote, int flags);
/* The same with any memory of this process's. */
int wherry_vwrite_to(wherry_stream stream, const void* source, size_t size, uint64_t remote, int flags);
int wherry_vread_from(wherry_stream stream, void* destination, size_t size, uint64_t remote, int flags);

/* Whose transfers a fence is about. */
#define WHERRY_STARTED_HERE    0
#define WHERRY_STARTED_BY_PEER 1

/* All transfers that have been started so far; and waiting until they are complete. WHERRY_TIMEOUT_DEFAULT
 * is 10 s; a timeout of 0 is -ETIMEDOUT if they are not. */
int wherry_fence_mark(wherry_stream stream, int whose, uint64_t* mark);
int wherry_fence_wait(wherry_stream stream, int whose, uint64_t mark, int64_t timeout_ns);
/* Once all transfers started so far are complete, stores 8 bytes in a window of this side's (NULL: none), then 8 bytes
 * in one of the peer's (NULL: none). A load that sees a word also sees all bytes of those transfers. */
struct wherry_signal {
  uint64_t offset; /* a multiple of 4 */
  uint64_t value;
};
int wherry_fence_signal(wherry_stream stream, int whose, const struct wherry_signal* local,
                        const struct wherry_signal* remote);

/* Maps whole pages of the peer's windows, as shared memory that outlives the stream and the peer; until wherry_unmap.
 * -ENOTSUP where memory cannot be mapped. */
int wherry_map(wherry_stream stream, uint64_t remote, size_t size, int access, void** start);
int wherry_unmap(void* start, size_t size);

/* Files ----------------------------------------------------------------------------------------------------------- */

/* Files of this machine and of hosts: docs/files.md, and wherry/files.hpp, of which this is the same in C. A file has
 * no offset. From any thread, any number at once; only closing is one thread's, while no other uses the file. After a
 * fork a file of a host is the parent's: -EBADF. */

/* The path of a call is one of WHERRY_PATH_... (wherry/file_path.h). */
struct wherry_file_options {
  int32_t path;         /* WHERRY_PATH_... */
  uint32_t timeout_ms;  /* how long a call waits for a server that is gone, then -EIO; 0: a minute */
  uint32_t reserved[2]; /* 0 */
};

/* Opens a path, or wherry://NODE:PORT/PATH of a `wherry serve`. `flags` and `mode` as of open(2): an access mode,
 * O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_NOFOLLOW, O_DIRECTORY. `options`: NULL for the defaults.
 * -EINVAL also for other flags, and a name that makes no sense; for a host also as wherry_connect. */
int wherry_file_open(const char* name, int flags, mode_t mode, const struct wherry_file_options* options,
                     wherry_file* file);
/* -EIO: a host was started again, and lost what was not synced. The file is closed in any case. */
int wherry_file_close(wherry_file file);

/* Fewer bytes than asked for: the end of the file; 0 there. */
int64_t wherry_file_pread(wherry_file file, void* buffer, size_t size, uint64_t offset, int path);
int64_t wherry_file_preadv(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path);
/* Fewer bytes than asked for: an error, which the next call returns. -EINVAL on a file opened with O_APPEND. */
int64_t wherry_file_pwrite(wherry_file file, const void* bytes, size_t size, uint64_t offset, int path);
int64_t wherry_file_pwritev(wherry_file file, const struct iovec* buffers, int count, uint64_t offset, int path);
/* At the end of a file opened with O_APPEND (else -EINVAL); up to 16 MiB in one piece. */
int64_t wherry_file_append(wherry_file file, const void* bytes, size_t size);
/* 0: what was written is durable where the file is. `data_only`: 1 as fdatasync, 0 as fsync. */
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
  int64_t accessed_ns; /* since 1970, as the others */
  int64_t modified_ns;
  int64_t changed_ns;
  int64_t born_ns; /* 0: the file system does not say */
};
/* Of an open file, as fstat tells it. */
int wherry_file_stat(wherry_file file, struct wherry_file_status* status);
/* Of a name, as wherry_file_open takes it; follows symbolic links. */
int wherry_file_stat_name(const char* name, const struct wherry_file_options* options,
                          struct wherry_file_status* status);
/* Removes a file's name. */
int wherry_file_remove(const char* name, const struct wherry_file_options* options);

/* Bytes of a file of this machine in the kernel's page cache, without a copy: from `offset`, `size` of them or up to
 * the end of the file. They are mapped until the file is closed, as by mmap(2): a later change is seen there, and to
 * read them after the file was made shorter raises SIGBUS. Returns how many there are; 0: the end of the file, a file
 * of a host, or one that cannot be read in place. */
int64_t wherry_file_view(wherry_file file, uint64_t offset, size_t size, const void** bytes);

/* For the calls from now on that say WHERRY_PATH_AS_SET. */
int wherry_file_set_path(wherry_file file, int path);
/* The path of such calls: WHERRY_PATH_... */
int wherry_file_get_path(wherry_file file);

/* Ending ---------------------------------------------------------------------------------------------------------- */

/* Half-close: the peer receives everything sent so far, then the end. */
int wherry_finish_sending(wherry_stream stream);
/* Finishes sending, waits until everything accepted is in the receiver's memory, and frees the stream. On a network it
 * waits for 10 s at most, and then logs that bytes may be lost. */
void wherry_stream_close(wherry_stream stream);
/* The same with a limit, and says what became of the bytes: -ETIMEDOUT the peer's side has not acknowledged all of
 * them, and may lose the rest; -ECONNRESET it is known to be gone. The stream is freed either way. */
int wherry_stream_close_within(wherry_stream stream, int64_t timeout_ns);
/* Makes every blocked and later call on the stream fail with -ECANCELED. From any thread. */
int wherry_cancel(wherry_stream stream);

/* Addresses and counters ------------------------------------------------------------------------------------------ */

/* This side's address, as wherry_listener_address. */
int wherry_stream_address(wherry_stream stream, char* text, size_t size);
/* The process at the other end. */
int wherry_get_peer(wherry_stream stream, struct wherry_peer* peer);
/* The name or address of the peer's host, as wherry_listener_address; empty, and 0 is returned: this machine. */
int wherry_peer_host(wherry_stream stream, char* text, size_t size);

struct wherry_capacities {
  size_t send;    /* bytes of the ring the peer receives into */
  size_t receive; /* bytes of the ring this side receives into */
};
/* The sizes of the two rings of a stream. */
int wherry_get_capacities(wherry_stream stream, struct wherry_capacities* capacities);
/* Sends as if the peer's ring held `bytes`, at least 4 KiB, if it holds more. -EINVAL once something was sent. */
int wherry_limit_unread(wherry_stream stream, size_t bytes);

/* Of this side, since the stream was connected. From any thread. */
struct wherry_counters {
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t bytes_sent_split;     /* of bytes_sent: copied by both sides at once, straight between the buffers */
  uint64_t bytes_received_split; /* of bytes_received: the same */
  uint64_t sends;                /* publications: a large send is published in pieces */
  uint64_t receives;             /* calls that moved bytes out of the ring */
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
