/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that libwherry-fi.so exports besides fi_prov_ini. They pass the topology that a program declares to the
 * mailboxes. The interposer finds them with dlopen("libwherry-fi.so", RTLD_NOW | RTLD_NOLOAD) and dlsym. If the handle
 * is null, libfabric has not loaded the provider.
 *
 * Any thread may call them at any time. None of them waits for another process. Each returns 0 or a negative errno
 * value.
 */
#ifndef WHERRY_MPI_PROVIDER_TOPOLOGY_H
#define WHERRY_MPI_PROVIDER_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of every endpoint's name, as fi_getname returns it. Fixed, so that a table of names needs no lengths. */
#define WHERRY_FI_NAME_BYTES 64

/* A process that sends to this one: its index in the table of names, and its share of the budget. */
struct wherry_fi_neighbour {
  uint32_t rank;
  uint32_t weight; /* 0 counts as 1 */
};

/* Copies the name of this process's current endpoint, which is the first that is open. *bytes is the size of `name`,
 * and becomes the name's length. Returns -ETOOSMALL (FI_ETOOSMALL) if `name` is shorter than that, or -ENOTCONN if no
 * endpoint is open. */
typedef int wherry_fi_self_call(void* name, size_t* bytes);
int wherry_fi_self(void* name, size_t* bytes);

/* Declares the neighbours of one communicator. `names` is a table of `count` names by rank, of `name_bytes` each. A
 * name whose bytes are all zero stands for a process without a provider, and is left out, as is this process itself.
 * Copies what it needs. A later declaration of the same communicator replaces the earlier one. If the layout is
 * `topology`, the union over all communicators becomes the mailbox's neighbours. Returns -EINVAL if a rank is beyond
 * the table or the names have another length, or -ENOTCONN if no endpoint is open. */
typedef int wherry_fi_topology_call(const void* names, size_t name_bytes, size_t count,
                                    const struct wherry_fi_neighbour* neighbours, size_t neighbour_count,
                                    uint64_t communicator);
int wherry_fi_topology(const void* names, size_t name_bytes, size_t count, const struct wherry_fi_neighbour* neighbours,
                       size_t neighbour_count, uint64_t communicator);

/* Removes the neighbours of a communicator that is gone. Returns -ENOENT if it was never declared. */
typedef int wherry_fi_forget_call(uint64_t communicator);
int wherry_fi_forget(uint64_t communicator);

#ifdef __cplusplus
}
#endif

#endif
