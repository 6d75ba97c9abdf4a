/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for libwherry-fi.so where a test asks which neighbours are declared: preloaded under its soname, it writes
 * every call into a file of this process, RECORD/rank. A process's name is its rank in the job. The process of the rank
 * WITHOUT_MEMORY has none for a table of names in libwherry-topology.so.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/mpi/provider/topology.h"

static const char* rank_of_this_process(void) {
  const char* rank = getenv("PMI_RANK");
  if (rank == NULL) rank = getenv("OMPI_COMM_WORLD_RANK");
  return rank == NULL ? "none" : rank;
}

void* __libc_calloc(size_t count, size_t bytes);

void* calloc(size_t count, size_t bytes) {
  Dl_info caller;
  const char* const rank = getenv("WITHOUT_MEMORY");
  if (bytes == WHERRY_FI_NAME_BYTES && rank != NULL && strcmp(rank, rank_of_this_process()) == 0 &&
      dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "libwherry-topology") != NULL) {
    return NULL;
  }
  return __libc_calloc(count, bytes);
}

static FILE* record(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("RECORD"), rank_of_this_process());
  return fopen(path, "a");
}

int wherry_fi_self(void* name, size_t* bytes) {
  memset(name, 0, *bytes);
  snprintf(name, *bytes, "%s", rank_of_this_process());
  return 0;
}

int wherry_fi_topology(const void* names, size_t name_bytes, size_t count, const struct wherry_fi_neighbour* neighbours,
                       size_t neighbour_count, uint64_t communicator) {
  FILE* const file = record();
  /* One call of the C library writes the line: threads declare at once. */
  char line[4096];
  size_t end = (size_t)snprintf(line, sizeof line, "topology %llu of %zu:", (unsigned long long)communicator, count);
  for (size_t i = 0; i < neighbour_count; ++i) {
    const char* name = (const char*)names + neighbours[i].rank * name_bytes;
    end += (size_t)snprintf(line + end, sizeof line - end, " %s*%u", name, neighbours[i].weight);
  }
  fprintf(file, "%s\n", line);
  fclose(file);
  return 0;
}

int wherry_fi_forget(uint64_t communicator) {
  FILE* const file = record();
  fprintf(file, "forget %llu\n", (unsigned long long)communicator);
  fclose(file);
  return 0;
}
