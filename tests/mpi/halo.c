/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halo [exit STATUS | wait FILE]: every process exchanges messages of many sizes with its two neighbours of a ring,
 * which it declares half way through, and checks each byte; rank 0 says whether the messages went over Wherry. With
 * `exit` it ends with that status; with `wait` rank 0 then makes the file, and all wait for what never comes.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMost = 1 << 18 };

static unsigned char out[2][kMost];
static unsigned char in[2][kMost];

static unsigned char byte_of(int from, int to, int size, int i) {
  return (unsigned char)(from * 31 + to * 17 + size + i * 7);
}

static void exchange(MPI_Comm ring, int rank, int before, int after, int size) {
  const int peers[2] = {before, after};
  MPI_Request requests[4];
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < size; ++i) out[side][i] = byte_of(rank, peers[side], size, i);
    /* In a ring of two both neighbours are one process: the tags tell the sides apart. */
    MPI_Irecv(in[side], size, MPI_BYTE, peers[side], 1 - side, ring, &requests[side]);
    MPI_Isend(out[side], size, MPI_BYTE, peers[side], side, ring, &requests[2 + side]);
  }
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < size; ++i) {
      if (in[side][i] == byte_of(peers[side], rank, size, i)) continue;
      fprintf(stderr, "rank %d: byte %d of %d from %d is wrong\n", rank, i, size, peers[side]);
      MPI_Abort(MPI_COMM_WORLD, 9);
    }
  }
}

static void exchange_all(MPI_Comm ring) {
  int rank;
  int size;
  MPI_Comm_rank(ring, &rank);
  MPI_Comm_size(ring, &size);
  for (int bytes = 0; bytes <= kMost; bytes = bytes * 3 + 1)
    exchange(ring, rank, (rank + size - 1) % size, (rank + 1) % size, bytes);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  int size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  exchange_all(MPI_COMM_WORLD);
  const int periods[1] = {1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periods, 0, &ring);
  exchange_all(ring);
  int sum;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, ring);
  MPI_Comm_free(&ring);
  exchange_all(MPI_COMM_WORLD);
  if (rank == 0) {
    const char* const way = dlopen("libwherry-fi.so", RTLD_NOW | RTLD_NOLOAD) != NULL ? "Wherry" : "something else";
    printf("%d processes over %s, sum %d\n", size, way, sum);
    fflush(stdout);
  }
  if (argc > 2 && strcmp(argv[1], "wait") == 0) {
    if (rank == 0) fclose(fopen(argv[2], "w"));
    MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return argc > 2 && strcmp(argv[1], "exit") == 0 ? atoi(argv[2]) : 0;
}
