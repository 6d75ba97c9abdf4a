/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libwherry-fi.so exports beside fi_prov_ini: how a topology that the program declares reaches the mailboxes. The
 * interposer finds them with dlopen("libwherry-fi.so", RTLD_NOW | RTLD_NOLOAD) and dlsym; a null handle means that
 * libfabric has not loaded the provider.
 *
 * Threads: any, at any time. None of them waits for another process. Each returns 0 or a negative errno value.
 */
#ifndef WHERRY_MPI_PROVIDER_TOPOLOGY_H
#define WHERRY_MPI_PROVIDER_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of every endpoint's name, as fi_getname gives it. Fixed: a table of names needs no lengths. */
#define WHERRY_FI_NAME_BYTES 64

/* A process that sends to this one, as its place in the table of names, and its share of the budget beside others'. */
struct wherry_fi_neighbour {
  uint32_t rank;
  uint32_t weight; /* 0 counts as 1 */
};

/* Copies the name of this process's current endpoint: the first that is open. *bytes is the room at `name`, and becomes
 * the name's length. -ETOOSMALL (FI_ETOOSMALL): too little room, *bytes tells how much. -ENOTCONN: none is open. */
typedef int wherry_fi_self_call(void* name, size_t* bytes);
int wherry_fi_self(void* name, size_t* bytes);

/* Declares the neighbours of one communicator: `names` is a table of `count` names of `name_bytes` each by rank; a name
 * whose bytes are all zero stands for a process without a provider, and is left out, as is this process itself. Copies
 * what it needs. Another declaration of the same communicator replaces the first. The union over all communicators
 * becomes the mailbox's neighbours while the layout is `topology`. -EINVAL: a rank beyond the table, or names of
 * another length. -ENOTCONN: no endpoint is open. */
typedef int wherry_fi_topology_call(const void* names, size_t name_bytes, size_t count,
                                    const struct wherry_fi_neighbour* neighbours, size_t neighbour_count,
                                    uint64_t communicator);
int wherry_fi_topology(const void* names, size_t name_bytes, size_t count, const struct wherry_fi_neighbour* neighbours,
                       size_t neighbour_count, uint64_t communicator);

/* The communicator is gone: its neighbours no longer count. -ENOENT: it was never declared. */
typedef int wherry_fi_forget_call(uint64_t communicator);
int wherry_fi_forget(uint64_t communicator);

#ifdef __cplusplus
}
#endif

#endif
