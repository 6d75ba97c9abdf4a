// SPDX-License-Identifier: Apache-2.0
// All ranks but the last accumulate into its window, in bursts, until a burst has passed with fewer sleeps of all ranks
// than operations of one. Prints that. It never ends if ranks sleep whenever they wait.
//
//   accumulates [over libfabric]
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>

enum { kOperations = 100 };

static int rank, ranks;
static long* memory;
static MPI_Win window;

static long sleeps(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

static void accumulate(void) {
  const long one = 1;
  long before;
  MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, 0, window);
  MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, ranks - 1, 0, 1, MPI_LONG, MPI_SUM, window);
  MPI_Win_unlock(ranks - 1, window);
}

// Returns the sleeps of all ranks.
static long burst(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  const long begin = sleeps();
  if (rank != ranks - 1) {
    for (int i = 0; i < kOperations; ++i) accumulate();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  long own = sleeps() - begin;
  long all;
  MPI_Allreduce(&own, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info;
  MPI_Info_create(&info);
  if (argc > 1) MPI_Info_set(info, "disable_shm_accumulate", "true");
  MPI_Win_allocate(sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &memory, &window);
  memory[0] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  long bursts = 1;
  while (burst() >= kOperations) ++bursts;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  const long expected = rank == ranks - 1 ? bursts * kOperations * (ranks - 1) : 0;
  const int wrong = memory[0] != expected;
  MPI_Win_unlock(rank, window);
  if (rank == ranks - 1) printf("%s after %ld bursts\n", wrong ? "wrong" : "right", bursts);
  MPI_Win_free(&window);
  MPI_Info_free(&info);
  MPI_Finalize();
  return wrong;
}
