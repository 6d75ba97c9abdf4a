/* SPDX-License-Identifier: Apache-2.0 */
/* Types that the parts of the C API share: handles, timeouts, the process at the other end. <wherry/wherry.h> includes
 * all parts, and documents the rules for all. */
#ifndef WHERRY_HANDLES_H
#define WHERRY_HANDLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct wherry_stream {
  void* impl;
} wherry_stream;

typedef struct wherry_listener {
  void* impl;
} wherry_listener;

typedef struct wherry_connecting {
  void* impl;
} wherry_connecting;

typedef struct wherry_framed {
  void* impl;
} wherry_framed;

typedef struct wherry_poller {
  void* impl;
} wherry_poller;

typedef struct wherry_publisher {
  void* impl;
} wherry_publisher;

typedef struct wherry_subscriber {
  void* impl;
} wherry_subscriber;

typedef struct wherry_mailbox {
  void* impl;
} wherry_mailbox;

typedef struct wherry_file {
  void* impl;
} wherry_file;

/* The zero value of any handle, of a wherry_loan and of a wherry_message. */
#ifdef __cplusplus
#define WHERRY_NONE \
  {                 \
  }
#else
#define WHERRY_NONE {0}
#endif
#define WHERRY_FOREVER         ((int64_t)-1)
#define WHERRY_TIMEOUT_DEFAULT INT64_MIN

/* The process at the other end. */
struct wherry_peer {
  int64_t pid;   /* from the operating system; 0: not vouched for, or the process is not visible here */
  uint32_t uid;  /* UINT32_MAX: not vouched for, as between machines */
  uint32_t gid;  /* likewise */
  uint16_t node; /* the peer's own statement */
  uint16_t port; /* 0: the peer has no port */
  uint32_t reserved;
};

#endif
