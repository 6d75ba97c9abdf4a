// SPDX-License-Identifier: Apache-2.0
// A program with windows: each claim is checked where its memory is, and a rank that finds it false says so.
//
//   windows [accumulates over libfabric]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLongs = 100000, kRounds = 100 };

static int rank, ranks, wrong;
static long* memory;
static MPI_Win window;

static void claim(int holds, const char* what) {
  if (holds) return;
  ++wrong;
  printf("rank %d: %s\n", rank, what);
}

static void begin_with_zeros(int assertion) {
  MPI_Win_fence(0, window);
  memset(memory, 0, kLongs * sizeof(long));
  MPI_Win_fence(assertion, window);
}

// What others have put is there for loads.
static void end_of_locks(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  MPI_Win_unlock(rank, window);
}

static void every_rank_adds_to_all(void) {
  const long one = 1;
  long before;
  begin_with_zeros(MPI_MODE_NOSUCCEED);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < kRounds; ++i) {
    for (int to = 0; to < ranks; ++to) {
      MPI_Fetch_and_op(&one, &before, MPI_LONG, to, 0, MPI_SUM, window);
      MPI_Win_flush(to, window);
    }
  }
  MPI_Win_unlock_all(window);
  end_of_locks();
  claim(memory[0] == (long)kRounds * ranks, "MPI_Fetch_and_op has lost some");
}

static void an_exclusive_lock_excludes(void) {
  begin_with_zeros(MPI_MODE_NOSUCCEED);
  for (int i = 0; i < kRounds; ++i) {
    long value;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }
  end_of_locks();
  if (rank == 0) claim(memory[1] == (long)kRounds * ranks, "MPI_LOCK_EXCLUSIVE excludes nobody");
}

static void a_swapped_word_is_a_lock(void) {
  const long nobody = 0;
  const long own = rank + 1;
  begin_with_zeros(MPI_MODE_NOSUCCEED);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < 20; ++i) {
    long holder, value;
    do {
      MPI_Compare_and_swap(&own, &nobody, &holder, MPI_LONG, 0, 2, window);
      MPI_Win_flush(0, window);
    } while (holder != nobody);
    MPI_Get(&value, 1, MPI_LONG, 0, 3, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_LONG, 0, 3, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    MPI_Accumulate(&nobody, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_REPLACE, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_unlock_all(window);
  end_of_locks();
  if (rank == 0) claim(memory[3] == 20L * ranks, "MPI_Compare_and_swap is no lock");
}

static void puts_and_gets_of_all_sizes_arrive(void) {
  static const int sizes[] = {1, 500, 2048, 2049, kLongs};
  const int to = (rank + 1) % ranks;
  const int from = (rank + ranks - 1) % ranks;
  long* sent = malloc(kLongs * sizeof(long));
  long* back = malloc(kLongs * sizeof(long));
  for (int i = 0; i < kLongs; ++i) sent[i] = i * 31L + rank;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; ++k) {
    begin_with_zeros(0);
    MPI_Put(sent, sizes[k], MPI_LONG, to, 0, sizes[k], MPI_LONG, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < sizes[k]; ++i) claim(memory[i] == i * 31L + from, "MPI_Put");
    memset(back, 0, kLongs * sizeof(long));
    MPI_Get(back, sizes[k], MPI_LONG, to, 0, sizes[k], MPI_LONG, window);
    MPI_Win_fence(0, window);
    claim(memcmp(sent, back, (size_t)sizes[k] * sizeof(long)) == 0, "MPI_Get");
  }
  free(sent);
  free(back);
}

static void strides_keep_what_lies_between(void) {
  const int to = (rank + 1) % ranks;
  MPI_Datatype strided;
  long sent[400];
  for (int i = 0; i < 400; ++i) sent[i] = i + 1;
  MPI_Type_vector(50, 3, 7, MPI_LONG, &strided);
  MPI_Type_commit(&strided);
  begin_with_zeros(0);
  MPI_Put(sent, 1, strided, to, 0, 1, strided, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 50 * 7; ++i) claim(memory[i] == (i % 7 < 3 ? i + 1 : 0), "MPI_Type_vector");
  MPI_Type_free(&strided);
}

static void accumulates_of_all_ranks_add_up(void) {
  static long sent[5000];
  for (int i = 0; i < 5000; ++i) sent[i] = i;
  begin_with_zeros(0);
  for (int to = 0; to < ranks; ++to) MPI_Accumulate(sent, 5000, MPI_LONG, to, 0, 5000, MPI_LONG, MPI_SUM, window);
  for (int to = 0; to < ranks; ++to) MPI_Accumulate(sent, 50, MPI_LONG, to, 6000, 50, MPI_LONG, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 5000; ++i) claim(memory[i] == (long)i * ranks, "MPI_Accumulate");
  for (int i = 0; i < 50; ++i) claim(memory[6000 + i] == (long)i * ranks, "MPI_Accumulate of few");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Info info;
  MPI_Info_create(&info);
  if (argc > 1) MPI_Info_set(info, "disable_shm_accumulate", "true");
  MPI_Win_allocate(kLongs * sizeof(long), sizeof(long), info, MPI_COMM_WORLD, &memory, &window);
  every_rank_adds_to_all();
  an_exclusive_lock_excludes();
  a_swapped_word_is_a_lock();
  puts_and_gets_of_all_sizes_arrive();
  strides_keep_what_lies_between();
  accumulates_of_all_ranks_add_up();
  MPI_Win_free(&window);
  MPI_Info_free(&info);
  MPI_Finalize();
  return wrong != 0;
}
