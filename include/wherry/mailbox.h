/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's bounded buffer, and this program's places in those of others. Part of <wherry/wherry.h>;
 * <wherry/mailbox.hpp> is the same in C++, and tells all. */
#ifndef WHERRY_MAILBOX_H
#define WHERRY_MAILBOX_H

#include <sys/uio.h>

#include <wherry/handles.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Many senders, one receiver, a fixed budget of bytes, in which each sender has a section. A layout says how large, and
 * changes while messages flow. Peers are known by numbers. One thread at a time, but for wherry_mailbox_interrupt.
 * Nothing happens in a mailbox but in its calls. */
enum {
  WHERRY_LAYOUT_EQUAL = 0,    /* all the same */
  WHERRY_LAYOUT_TOPOLOGY = 1, /* declared neighbours share what the headers leave, by their weights */
  WHERRY_LAYOUT_ADAPTIVE = 2  /* those that are seen to send share it */
};

struct wherry_mailbox_options {
  size_t budget;     /* of all sections together; 0: 64 KiB */
  size_t header;     /* that a sender always has once it has sent: a multiple of 64 up to 1024; 0: 128 */
  size_t quiet;      /* that it has before: a multiple of 64, at most `header`; 0: the same */
  size_t lane;       /* beyond the budget, by wherry_mailbox_widen: a multiple of 64 up to 1 GiB; 0: none */
  size_t most_peers; /* 0: 1024 */
  int layout;        /* WHERRY_LAYOUT_... */
  uint32_t overflow; /* that a sender may have under way while this side does not read, beyond the budget: a multiple of
                        64 up to 1 GiB; 0: not more than its section. wherry_mailbox_try_send_whole needs it */
};

/* `options`: NULL for an adaptive mailbox of the default sizes. -EINVAL, -EMFILE. */
int wherry_mailbox_open(const struct wherry_mailbox_options* options, wherry_mailbox* mailbox);
/* Peers receive everything sent so far, then the end. */
void wherry_mailbox_close(wherry_mailbox mailbox);
/* Once, and before the first connect. -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL. */
int wherry_mailbox_listen(wherry_mailbox mailbox, const char* address);
/* Where the mailbox listens, as wherry_listener_address. */
int wherry_mailbox_address(wherry_mailbox mailbox, char* text, size_t size);
/* Never blocks: messages wait until the peer has let this side in. Without a listener, waiting and progress try
 * again for the timeout (WHERRY_TIMEOUT_DEFAULT is WHERRY_CONNECT_TIMEOUT); then the peer is lost with ECONNREFUSED.
 * -ECONNREFUSED no listener, and the timeout is 0; -ENOSPC most_peers, -EMFILE. */
int wherry_mailbox_connect(wherry_mailbox mailbox, const char* address, int64_t timeout_ns, uint32_t* peer);
/* Where the peer listens, as it says; "": it does not. */
int wherry_mailbox_peer_address(wherry_mailbox mailbox, uint32_t peer, char* text, size_t size);
/* Peers that are not lost. */
int64_t wherry_mailbox_peers(wherry_mailbox mailbox);
/* Ends this side of a pair and frees its number. */
int wherry_mailbox_forget(wherry_mailbox mailbox, uint32_t peer);

/* Sending --------------------------------------------------------------------------------------------------------- */

/* Messages to one peer go one after the other: -EINVAL one begins before the last was whole, or there is no such peer.
 * -EPIPE the peer has left, -ECONNRESET it died, -EPROTO. */

/* Blocks until the whole message was taken. -ETIMEDOUT: a part of it may have been, and then nothing else goes to this
 * peer any more; wherry_mailbox_send_outgoing says how much, and continues. */
int64_t wherry_mailbox_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size, int64_t timeout_ns);
/* The whole message or -EAGAIN. -EMSGSIZE longer than what the peer always has room for: its `quiet`, or `header`, less
 * 16. */
int64_t wherry_mailbox_try_send(wherry_mailbox mailbox, uint32_t peer, const void* bytes, size_t size);
/* The same of a message in two parts, one behind the other. */
int64_t wherry_mailbox_try_send_parts(wherry_mailbox mailbox, uint32_t peer, const void* head, size_t head_size,
                                      const void* rest, size_t rest_size);
/* The whole message, in any number of pieces, or -EAGAIN: also into the receiver's overflow, so that nothing of it
 * waits for another call of this side. For messages of at most three eighths of that: a longer one that no section
 * holds may never go. */
int64_t wherry_mailbox_try_send_whole(wherry_mailbox mailbox, uint32_t peer, const struct iovec* pieces, int count);

/* A message of any length that leaves in parts. The program sets the first two members, zeroes the others, and leaves
 * all unchanged until taken == size: then the message is whole. */
struct wherry_outgoing {
  const struct iovec* pieces;
  int count;
  uint32_t reserved; /* 0 */
  uint64_t taken;    /* how much of it has left */
  uint64_t size;     /* of all pieces; set by each call */
};
/* Takes as much as there is room for, and returns how much; 0 only of an empty message, which then was taken. -EAGAIN
 * there is no room. */
int64_t wherry_mailbox_try_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message);
/* Blocks until all of it was taken. Returns how much this call took. After -ETIMEDOUT `taken` says how much has left,
 * and the rest must follow before anything else goes to this peer. */
int64_t wherry_mailbox_send_outgoing(wherry_mailbox mailbox, uint32_t peer, struct wherry_outgoing* message,
                                     int64_t timeout_ns);
/* Bytes that a message may have now to go as a whole into the section alone. 0: fewer than `least`; a wait tells when
 * there are as many, or as an empty section takes. */
int64_t wherry_mailbox_room(wherry_mailbox mailbox, uint32_t peer, size_t least);
/* Peers for which a try_send was -EAGAIN and that have room (or are lost), each once, as the last wait or progress
 * found. Returns how many, at most `count`; call again while it is `count`. */
int64_t wherry_mailbox_writable(wherry_mailbox mailbox, uint32_t* peers, size_t count);

/* Receiving ------------------------------------------------------------------------------------------------------- */

/* A whole message; 0 is an empty one. -EMSGSIZE the buffer is too short for it; it stays. -EAGAIN a peer was lost, or
 * wherry_mailbox_interrupt. -ETIMEDOUT: what has come of a message lies in the buffer, which the next call must have
 * again. */
int64_t wherry_mailbox_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from, int64_t timeout_ns);
/* -EAGAIN none is whole yet; otherwise as above. */
int64_t wherry_mailbox_try_receive(wherry_mailbox mailbox, void* buffer, size_t size, uint32_t* from);

/* A part of a message, in place, until it is consumed. A hostile peer may still change the bytes: copy what is checked
 * before it is used. */
struct wherry_piece {
  uint32_t from;
  int more; /* 1: more of this sender's has come behind it */
  uint64_t message_size;
  uint64_t offset;       /* within the message */
  struct iovec bytes[2]; /* the second is empty unless the piece wraps */
};
/* The next piece of any sender, in turn. Returns its size, which is 0 only of an empty message; -EAGAIN there is none.
 */
int64_t wherry_mailbox_try_peek(wherry_mailbox mailbox, struct wherry_piece* piece);
/* The first `size` bytes of the piece that was peeked last were read; an empty message is consumed by 0. -EINVAL the
 * piece has fewer. */
int wherry_mailbox_consume(wherry_mailbox mailbox, const struct wherry_piece* piece, size_t size);

/* 1: a peer was lost since the last call, and everything it had sent was received; `error`: 0 it left in order, else
 * an errno value. 0: none was. */
int wherry_mailbox_lost(wherry_mailbox mailbox, uint32_t* peer, int* error);

/* Waiting --------------------------------------------------------------------------------------------------------- */

/* 1: there is something to do: a message, room for a sender that had none, a loss, an interruption. 0: the timeout
 * passed. A timeout of 0 polls. */
int wherry_mailbox_wait(wherry_mailbox mailbox, int64_t timeout_ns);
/* As wherry_mailbox_wait, for a program that polls and found nothing for long. It sleeps without another spin, and
 * keeps the peers that were active before active after it. */
int wherry_mailbox_sleep(wherry_mailbox mailbox, int64_t timeout_ns);
/* As wherry_mailbox_wait with a timeout of 0, for a program that polls: it asks the kernel only now and then. */
int wherry_mailbox_progress(wherry_mailbox mailbox);
/* Makes the wait that sleeps now, or the next, return 1. From any thread. */
int wherry_mailbox_interrupt(wherry_mailbox mailbox);
/* Readable while wherry_mailbox_wait might return 1. Belongs to the mailbox. */
int wherry_mailbox_descriptor(wherry_mailbox mailbox);

/* Layout ---------------------------------------------------------------------------------------------------------- */

/* Sections change while messages flow. A pair that was made under a smaller budget cannot have a larger section than
 * that. -EINVAL: there is no such layout. */
int wherry_mailbox_set_layout(wherry_mailbox mailbox, int layout);
int wherry_mailbox_set_budget(wherry_mailbox mailbox, size_t bytes);
/* The peers that send to this mailbox, and their weights (NULL: 1 each). Replaces what was declared before. */
int wherry_mailbox_set_neighbours(wherry_mailbox mailbox, const uint32_t* peers, const uint32_t* weights, size_t count);
/* 1: gives the peer's section the options' lane beyond what the layout gives it, for much that is to come; 0: takes it
 * back. Nothing changes where there is no lane, or the peer is not connected yet. */
int wherry_mailbox_widen(wherry_mailbox mailbox, uint32_t peer, int wide);

struct wherry_section {
  size_t incoming;  /* bytes of the peer's section in this mailbox */
  size_t outgoing;  /* bytes of this side's section in the peer's */
  uint64_t changes; /* of either */
};
/* The sizes of the two sections of the pair with one peer. */
int wherry_mailbox_get_section(wherry_mailbox mailbox, uint32_t peer, struct wherry_section* section);

/* Where both run under one kernel, for large messages ------------------------------------------------------------- */

/* 1: the kernel lets this process read the peer's memory; 0: it does not. Costs a system call the first time. */
int wherry_mailbox_reaches_private_memory(wherry_mailbox mailbox, uint32_t peer);
/* Copies from memory of the peer's process, at the peer's address. Returns how many bytes, a prefix. */
int64_t wherry_mailbox_read_private(wherry_mailbox mailbox, uint32_t peer, void* buffer, size_t size, uint64_t address);

#ifdef __cplusplus
}
#endif

#endif
