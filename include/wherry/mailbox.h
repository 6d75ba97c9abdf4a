/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's bounded buffer, and this program's sections in the buffers of others. Part of <wherry/wherry.h>;
 * <wherry/mailbox.hpp> is the same in C++, with the complete description. */
#ifndef WHERRY_MAILBOX_H
#define WHERRY_MAILBOX_H

#include <sys/uio.h>

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A mailbox has many senders, one receiver and a fixed budget of bytes. Each sender has a section of the budget. A
 * layout sets the sizes, and may change them while messages flow. Peers have numbers. Threads: one at a time, except
 * wherry_mailbox_interrupt. A mailbox makes progress only during its calls. */
enum {
  WHERRY_LAYOUT_EQUAL = 0,    /* equal sections */
  WHERRY_LAYOUT_TOPOLOGY = 1, /* declared neighbours share the budget minus the headers, by weight */
  WHERRY_LAYOUT_ADAPTIVE = 2  /* the peers that actually send share it */
};

struct wherry_mailbox_options {
  size_t budget;     /* bytes of all sections together; 0: 64 KiB */
  size_t header;     /* least section of a peer that has sent: a multiple of 64, 64 to 1024; 0: 128 */
  size_t quiet;      /* least section of a peer that has not sent: a multiple of 64, at most `header`; 0: as `header` */
  size_t lane;       /* bytes beyond the budget, for wherry_mailbox_widen: a multiple of 64 up to 1 GiB; 0: none */
  size_t most_peers; /* 0: 1024 */
  int layout;        /* WHERRY_LAYOUT_... */
  uint32_t overflow; /* bytes beyond the budget that a sender may have in flight while this side does not read: a
                        multiple of 64 up to 1 GiB; 0: none, only its section. wherry_mailbox_try_send_whole needs it */
};

/* Makes a mailbox. `options`: NULL for an adaptive mailbox of the default sizes. -EINVAL, -EMFILE. */
int wherry_mailbox_open(const struct wherry_mailbox_options* options, wherry_mailbox* mailbox);
/* Closes the mailbox: peers receive everything sent so far, then the end. */
void wherry_mailbox_close(wherry_mailbox mailbox);
/* Lets peers connect. Call it at most once, and before the first connect. -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL. */
int wherry_mailbox_listen(wherry_mailbox mailbox, const char* address);
/* The address on which the mailbox listens, as wherry_listener_address. */
int wherry_mailbox_address(wherry_mailbox mailbox, char* text, size_t size);
/* Connects to a peer without blocking. Messages may be sent at once, and wait until the peer has accepted this side.
 * Without a listener, wherry_mailbox_wait and wherry_mailbox_progress retry until the timeout; then the peer is lost
 * with ECONNREFUSED. WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT. -ECONNREFUSED: no listener on this host, and the
 * timeout is 0; -ENOSPC: most_peers is reached; -EMFILE. */
int wherry_mailbox_connect(wherry_mailbox mailbox, const char* address, int64_t timeout_ns, uint32_t* peer);
/* The address on which the peer listens, by its own statement; "" if it does not listen. */
int wherry_mailbox_peer_address(wherry_mailbox mailbox, uint32_t peer, char* text, size_t size);
/* The number of peers that are not lost. */
int64_t wherry_mailbox_peers(wherry_mailbox mailbox);
/* Ends this side of a pair and frees the peer's number. */
int wherry_mailbox_forget(wherry_mailbox mailbox, uint32_t peer);

/* Sending --------------------------------------------------------------------------------------------------------- */

/* Messages to one peer are sent one after the other. Errors of all sends: -EINVAL: the last message is not complete, or
 * there is no such peer; -EPIPE: the peer has left; -ECONNRESET: it died; -EPROTO: it wrote an invalid value into
 * shared memory. */

/* Sends a message, and blocks until all of it was accepted. -ETIMEDOUT: a part of it may have been sent; then no other
 * message can go to this peer. Use wherry_mailbox_send_outgoing if a send may time out: it returns how much was sent,
 * and can continue. */
int64_t wherry_mailbox_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size, int64_t timeout_ns);
/* Sends the whole message or returns -EAGAIN. -EMSGSIZE: longer than the least section that the peer grants (its
 * `quiet`, or `header`), minus 16 bytes. */
int64_t wherry_mailbox_try_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size);
/* The same for a message in two parts. */
int64_t wherry_mailbox_try_send_parts(wherry_mailbox mailbox, uint32_t peer, const void* head, size_t head_size,
                                      const void* rest, size_t rest_size);
/* Sends the whole message, in any number of pieces, or returns -EAGAIN. It may use the receiver's overflow, so no part
 * of the message waits for another call of this side. For messages of at most three quarters of the overflow: a longer
 * message that fits no section may never be sent. */
int64_t wherry_mailbox_try_send_whole(wherry_mailbox mailbox, uint32_t peer, const struct iovec* pieces, int count);

/* A message of any length that is sent in parts. The program sets the first two members and zeroes the others. It
 * changes none of them until taken == size; then the message is complete. */
struct wherry_outgoing {
  const struct iovec* pieces;
  int count;
  uint32_t reserved; /* 0 */
  uint64_t taken;    /* bytes sent so far */
  uint64_t size;     /* bytes of all pieces; set by each call */
};
/* Sends as many bytes as there is room for, and returns their number. 0 only for an empty message, which is then sent.
 * -EAGAIN: no room. */
int64_t wherry_mailbox_try_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message);
/* Blocks until the whole message was sent. Returns the bytes that this call sent. After -ETIMEDOUT `taken` is the
 * number of bytes sent, and the rest must follow before any other message to this peer. */
int64_t wherry_mailbox_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message,
                                     int64_t timeout_ns);
/* Returns the size of the largest message that now fits whole into the section, without the overflow. 0: less than
 * `least`. A wait then returns when there are as many bytes, or as many as an empty section takes. */
int64_t wherry_mailbox_room(wherry_mailbox mailbox, uint32_t peer, size_t least);
/* Peers for which a try_send returned -EAGAIN and that now have room, or are lost: each once, as found by the last wait
 * or progress. Returns their number, at most `count`. Call again while it returns `count`. */
int64_t wherry_mailbox_writable(wherry_mailbox mailbox, uint32_t* peers, size_t count);

/* Receiving ------------------------------------------------------------------------------------------------------- */

/* Receives a whole message and returns its size; 0 is an empty message. -EMSGSIZE: the buffer is too short, and the
 * message stays. -EAGAIN: a peer was lost, or wherry_mailbox_interrupt was called. -ETIMEDOUT: the part of a message
 * that has arrived is in the buffer; pass the same buffer to the next call. */
int64_t wherry_mailbox_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from, int64_t timeout_ns);
/* The same without blocking. -EAGAIN: no message is complete yet; pass the same buffer to the next call. */
int64_t wherry_mailbox_try_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from);

/* A part of a message, in place, valid until it is consumed. A hostile peer may still change the bytes: copy bytes that
 * are checked before they are used. */
struct wherry_piece {
  uint32_t from;
  int more; /* 1: more bytes of this sender have arrived behind it */
  uint64_t message_size;
  uint64_t offset;       /* within the message */
  struct iovec bytes[2]; /* the second is empty unless the piece wraps */
};
/* Finds the next piece, of all senders in turn. Returns its size, which is 0 only for an empty message. -EAGAIN: none.
 */
int64_t wherry_mailbox_try_peek(wherry_mailbox mailbox, struct wherry_piece* piece);
/* Consumes the first `size` bytes of the last piece that was peeked; 0 for an empty message. -EINVAL: the piece has
 * fewer bytes. */
int wherry_mailbox_consume(wherry_mailbox mailbox, const struct wherry_piece* piece, size_t size);

/* Takes the next loss. 1: `peer` was lost, and everything it had sent was received; `error` is 0 if it left in order,
 * else an errno value. 0: there is no loss. */
int wherry_mailbox_lost(wherry_mailbox mailbox, uint32_t* peer, int* error);

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* Blocks until there is something to do. 1: a message, room for a sender that had none, a loss, or an interruption. 0:
 * the timeout passed. A timeout of 0 polls. */
int wherry_mailbox_wait(wherry_mailbox mailbox, int64_t timeout_ns);
/* As wherry_mailbox_wait, for a program that has polled for long and found nothing. It sleeps without another spin.
 * Peers that were active before the sleep are active after it. */
int wherry_mailbox_sleep(wherry_mailbox mailbox, int64_t timeout_ns);
/* As wherry_mailbox_wait with a timeout of 0, for a program that polls. It makes a system call only now and then. */
int wherry_mailbox_progress(wherry_mailbox mailbox);
/* Makes the current wait, or the next, return 1. May be called from any thread. */
int wherry_mailbox_interrupt(wherry_mailbox mailbox);
/* Readable while wherry_mailbox_wait might return 1. The descriptor belongs to the mailbox. */
int wherry_mailbox_descriptor(wherry_mailbox mailbox);

/* Layout ---------------------------------------------------------------------------------------------------------- */

/* Change the sections while messages flow. A pair that was made under a smaller budget cannot get a larger section than
 * that budget. -EINVAL: there is no such layout. */
int wherry_mailbox_set_layout(wherry_mailbox mailbox, int layout);
int wherry_mailbox_set_budget(wherry_mailbox mailbox, size_t bytes);
/* Declares the peers that send to this mailbox, and their weights (NULL: 1 each). Replaces the earlier declaration. */
int wherry_mailbox_set_neighbours(wherry_mailbox mailbox, const uint32_t* peers, const uint32_t* weights, size_t count);
/* Adds the lane of the options to the peer's section (1), before many messages arrive, or takes it back (0). No effect
 * if there is no lane, or if the peer is not connected yet. */
int wherry_mailbox_widen(wherry_mailbox mailbox, uint32_t peer, int wide);

struct wherry_section {
  size_t incoming;  /* bytes of the peer's section in this mailbox */
  size_t outgoing;  /* bytes of this side's section in the peer's */
  uint64_t changes; /* of either */
};
/* The sizes of the two sections of the pair with one peer. */
int wherry_mailbox_get_section(wherry_mailbox mailbox, uint32_t peer, struct wherry_section* section);

/* Where both run under one kernel, for large messages ------------------------------------------------------------- */

/* Returns 1 if the kernel lets this process read the peer's memory, else 0. The first call makes a system call. */
int wherry_mailbox_reaches_private_memory(wherry_mailbox mailbox, uint32_t peer);
/* Copies from the memory of the peer's process, at an address of that process. Returns the number of bytes copied,
 * which may be fewer than `size`. */
int64_t wherry_mailbox_read_private(wherry_mailbox mailbox, uint32_t peer, void* buffer, size_t size, uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
