/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomics OPERATIONS [over libfabric]: all ranks but the last add one to every element of its window, by operations
 * that fetch what was there before. The target makes no other calls than those that end an epoch. Checks the sums, and
 * that no two operations fetched the same. Prints how long an operation took.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kElements = 8, kPerEpoch = 10 };

static int rank, ranks, wrong;
static int operations; /* of each origin in each round, a multiple of kPerEpoch */
static long* memory;
static MPI_Win window;
static const long ones[kElements] = {1, 1, 1, 1, 1, 1, 1, 1};
static MPI_Datatype every_other; /* kElements longs, with gaps */

static void fetch_and_op(long* before) { MPI_Fetch_and_op(ones, before, MPI_LONG, ranks - 1, 0, MPI_SUM, window); }

static void get_accumulate(long* before) {
  MPI_Get_accumulate(ones, kElements, MPI_LONG, before, kElements, MPI_LONG, ranks - 1, 0, kElements, MPI_LONG, MPI_SUM,
                     window);
}

static void get_accumulate_with_gaps(long* before) {
  MPI_Get_accumulate(ones, kElements, MPI_LONG, before, kElements, MPI_LONG, ranks - 1, 0, 1, every_other, MPI_SUM,
                     window);
}

static const struct kind {
  const char* name;
  int elements;
  int stride;
  void (*act)(long* before);
} kKinds[] = {{"fetch_and_op", 1, 1, fetch_and_op},
              {"get_accumulate", kElements, 1, get_accumulate},
              {"get_accumulate with gaps", kElements, 2, get_accumulate_with_gaps}};

/* Of all origins; before[i * kElements + e] is what operation i has fetched of element e. */
static void check_fetched(const struct kind* kind, const long* before) {
  const int total = operations * ranks; /* of which the target's are left out */
  long* const all = malloc(sizeof *all * kElements * (size_t)total);
  MPI_Gather(before, operations * kElements, MPI_LONG, all, operations * kElements, MPI_LONG, 0, MPI_COMM_WORLD);
  char* const seen = malloc((size_t)total);
  for (int element = 0; rank == 0 && element < kind->elements; ++element) {
    memset(seen, 0, (size_t)total);
    for (int i = 0; i < total - operations; ++i) {
      const long value = all[i * kElements + element];
      if (value < 0 || value >= total - operations || seen[value]++) ++wrong;
    }
  }
  free(seen);
  free(all);
}

static void play(const struct kind* kind, int waits) {
  const int expected = operations * (ranks - 1);
  long* const before = calloc((size_t)operations * kElements, sizeof *before);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(memory, 0, 2 * kElements * sizeof *memory);
  MPI_Win_unlock(rank, window);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; rank != ranks - 1 && i < operations;) {
    MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, 0, window);
    for (int end = i + kPerEpoch; i < end; ++i) {
      kind->act(before + i * kElements);
      if (waits) MPI_Win_flush(ranks - 1, window);
    }
    MPI_Win_unlock(ranks - 1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double microseconds = (MPI_Wtime() - begin) * 1e6 / operations;
  if (rank == 0) printf("%6.2f us for %s, %s\n", microseconds, kind->name, waits ? "each waited for" : "ten at once");
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  for (int i = 0; rank == ranks - 1 && i < kind->elements; ++i) wrong += memory[i * kind->stride] != expected;
  MPI_Win_unlock(rank, window);
  check_fetched(kind, before);
  free(before);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  operations = atoi(argv[1]) / kPerEpoch * kPerEpoch;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Type_vector(kElements, 1, 2, MPI_LONG, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Info info;
  MPI_Info_create(&info);
  if (argc > 2) MPI_Info_set(info, "disable_shm_accumulate", "true");
  MPI_Win_allocate(2 * kElements * sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &memory, &window);
  for (size_t i = 0; i < sizeof kKinds / sizeof *kKinds; ++i) {
    for (int waits = 0; waits < 2; ++waits) play(kKinds + i, waits);
  }
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(all_wrong == 0 ? "right" : "wrong");
  MPI_Win_free(&window);
  MPI_Info_free(&info);
  MPI_Type_free(&every_other);
  MPI_Finalize();
  return all_wrong != 0;
}
