/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages SCENARIO [unreadable]: one of the things that programs do with messages, with checks; a failure ends the
 * job. With `unreadable` the ranks may not read each other's memory, as in a sandbox. Runs with 3 processes.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int rank;
static int size;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static unsigned char byte_at(size_t number, size_t i) { return (unsigned char)(number * 131 + i * 7 + (i >> 8)); }

static void fill(unsigned char* bytes, size_t count, size_t number) {
  for (size_t i = 0; i < count; ++i) bytes[i] = byte_at(number, i);
}

static void check(const unsigned char* bytes, size_t count, size_t number) {
  for (size_t i = 0; i < count; ++i) require(bytes[i] == byte_at(number, i), "a byte is wrong");
}

static int is_refused = 0; /* reading the memory of other ranks */

static void refuse_reading_others_memory(void) {
  is_refused = 1;
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    exit(77);
}

/* Messages of all sizes go round, both ways at once. */
static void around(MPI_Comm ring, int tag) {
  enum { kMost = 1 << 20 };
  unsigned char* const buffers = malloc(4 * (size_t)kMost);
  const int peers[2] = {(rank + size - 1) % size, (rank + 1) % size};
  for (int bytes = 0; bytes <= kMost; bytes = bytes * 5 + 1) {
    MPI_Request requests[4];
    for (int side = 0; side < 2; ++side) {
      unsigned char* const out = buffers + (size_t)(2 + side) * kMost;
      fill(out, (size_t)bytes, (size_t)(rank * 10 + side));
      MPI_Irecv(buffers + (size_t)side * kMost, bytes, MPI_BYTE, peers[side], tag + 1 - side, ring, &requests[side]);
      MPI_Isend(out, bytes, MPI_BYTE, peers[side], tag + side, ring, &requests[2 + side]);
    }
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int side = 0; side < 2; ++side) {
      check(buffers + (size_t)side * kMost, (size_t)bytes, (size_t)(peers[side] * 10 + 1 - side));
    }
  }
  free(buffers);
}

static void long_and_short(void) {
  for (int i = 0; i < 5; ++i) around(MPI_COMM_WORLD, 2 * i);
}

static size_t resident_bytes(void) {
  long pages = 0;
  long resident = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  require(fscanf(file, "%ld %ld", &pages, &resident) == 2, "no /proc/self/statm");
  fclose(file);
  return (size_t)resident * 4096;
}

/* 1.6 GB that nothing was posted for; what is sent last is received first. Where ranks may not read each other's
   memory, each message past the limit is a round trip: then 160 MB, since a yield beside other programs can last for 4
   ms. */
static void unexpected(void) {
  enum { kBytes = 16 << 10, kContents = 16 };
  const int count = is_refused ? 10000 : 100000;
  unsigned char* const contents = malloc((size_t)kContents * kBytes);
  for (size_t i = 0; i < kContents; ++i) fill(contents + i * kBytes, kBytes, i);
  if (rank == 1) {
    MPI_Request* const requests = malloc(count * sizeof *requests);
    for (int i = 0; i < count; ++i) {
      MPI_Isend(contents + (size_t)(i % kContents) * kBytes, kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Send(&rank, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
  } else if (rank == 0) {
    unsigned char* const buffer = malloc(kBytes);
    const size_t before = resident_bytes();
    int last;
    MPI_Recv(&last, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const size_t kept = resident_bytes() - before;
    printf("%zu MiB kept\n", kept >> 20);
    require(kept < (size_t)256 << 20, "unexpected messages took more memory than they may");
    for (int i = 0; i < count; ++i) {
      MPI_Recv(buffer, kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (i % 64 == 0) check(buffer, kBytes, (size_t)(i % kContents));
      require(memcmp(buffer, contents + (size_t)(i % kContents) * kBytes, kBytes) == 0, "a message is another one");
    }
    free(buffer);
  }
  free(contents);
  MPI_Barrier(MPI_COMM_WORLD);
}

struct Lane {
  MPI_Comm ring;
  int number;
};

static void* go_round(void* argument) {
  const struct Lane* const lane = argument;
  for (int i = 0; i < 10; ++i) around(lane->ring, 100 * lane->number);
  return NULL;
}

/* Some threads have a communicator of their own, two share one. */
static void threads(void) {
  enum { kThreads = 4 };
  struct Lane lanes[kThreads];
  pthread_t ids[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    lanes[i].number = i;
    if (i == 1) {
      lanes[i].ring = lanes[0].ring;
    } else {
      MPI_Comm_dup(MPI_COMM_WORLD, &lanes[i].ring);
    }
  }
  for (int i = 0; i < kThreads; ++i) pthread_create(&ids[i], NULL, go_round, &lanes[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < kThreads; ++i) {
    if (i != 1) MPI_Comm_free(&lanes[i].ring);
  }
}

/* Blocks of `block` ints, each `gap` ints apart: typed at both ends, or at one. */
static void with_gaps(int count, int block, int gap) {
  MPI_Datatype type;
  MPI_Type_vector(count, block, block + gap, MPI_INT, &type);
  MPI_Type_commit(&type);
  const int all = count * (block + gap);
  const int payload = count * block;
  int* const buffer = malloc((size_t)all * sizeof *buffer);
  const int before = (rank + size - 1) % size;
  const int after = (rank + 1) % size;
  for (int way = 0; way < 3; ++way) {
    const int out_typed = way != 1;
    const int in_typed = way != 2;
    MPI_Request request;
    for (int i = 0; i < all; ++i) buffer[i] = rank * 1000 + i;
    MPI_Isend(buffer, out_typed ? 1 : payload, out_typed ? type : MPI_INT, after, way, MPI_COMM_WORLD, &request);
    int* const in = malloc((size_t)all * sizeof *in);
    for (int i = 0; i < all; ++i) in[i] = -1;
    MPI_Status status;
    MPI_Recv(in, in_typed ? 1 : payload, in_typed ? type : MPI_INT, before, way, MPI_COMM_WORLD, &status);
    int got;
    MPI_Get_count(&status, MPI_INT, &got);
    require(got == payload, "a count is wrong");
    for (int i = 0; i < payload; ++i) {
      const int spread = i / block * (block + gap) + i % block;
      require(in[in_typed ? spread : i] == before * 1000 + (out_typed ? spread : i), "an element is wrong");
    }
    for (int i = 0; in_typed && i < all; ++i) require(i % (block + gap) < block || in[i] == -1, "a gap was written");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(in);
  }
  free(buffer);
  MPI_Type_free(&type);
}

static void gaps(void) {
  with_gaps(3, 1, 1);
  with_gaps(100, 7, 3);
  with_gaps(2, 2048, 5);
  with_gaps(3, 100000, 1);
  with_gaps(100000, 3, 2);
}

static void truncation(void) {
  const int sizes[3] = {100, 16 << 10, 1 << 20};
  unsigned char* const buffer = malloc((size_t)sizes[2]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 3; ++i) {
    for (int late = 0; late < 2; ++late) {
      fill(buffer, (size_t)sizes[i], 1);
      if (rank == 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(buffer, sizes[i], MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Send(buffer, 10, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      } else if (rank == 0) {
        MPI_Request request;
        memset(buffer, 0, 100);
        if (!late) MPI_Irecv(buffer, 50, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        if (late) MPI_Probe(1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (late) MPI_Irecv(buffer, 50, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        int error_class = MPI_SUCCESS;
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &error_class);
        require(error_class == MPI_ERR_TRUNCATE, "a message that is too long is no error");
        require(buffer[50] == 0, "a message was written beyond its buffer");
        require(MPI_Recv(buffer, 10, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS,
                "the next failed");
        check(buffer, 10, 1);
      } else {
        MPI_Barrier(MPI_COMM_WORLD);
      }
    }
  }
  free(buffer);
}

/* Synchronous sends end though their receives have too small a buffer. */
static void synchronous_truncation(void) {
  const int sizes[3] = {100, 16 << 10, 1 << 20};
  unsigned char* const buffer = calloc((size_t)sizes[2], 1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 6; ++i) {
    const int is_late = i % 2;
    MPI_Request request;
    if (rank == 0 && !is_late) MPI_Irecv(buffer, 50, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) MPI_Ssend(buffer, sizes[i / 2], MPI_BYTE, 0, i, MPI_COMM_WORLD);
    if (rank == 0 && is_late) MPI_Probe(1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0 && is_late) MPI_Irecv(buffer, 50, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request);
    int error_class = MPI_ERR_TRUNCATE;
    if (rank == 0) MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &error_class);
    require(error_class == MPI_ERR_TRUNCATE, "a message that is too long is no error");
  }
  free(buffer);
}

/* The others' messages from any of them with any tag, each one's in order; every other is probed first. */
static void wildcards(void) {
  enum { kCount = 5000, kMost = 40000 };
  unsigned char* const buffer = malloc(kMost);
  if (rank != 0) {
    for (int i = 0; i < kCount; ++i) {
      const int bytes = i % 50 == 0 ? kMost : i % 300;
      fill(buffer, (size_t)bytes, (size_t)i);
      MPI_Send(buffer, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD);
    }
  } else {
    int* const next = calloc((size_t)size, sizeof *next);
    for (int left = kCount * (size - 1); left > 0; --left) {
      MPI_Status status;
      int source = MPI_ANY_SOURCE;
      int tag = MPI_ANY_TAG;
      if (left % 2 == 0) {
        MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
        source = status.MPI_SOURCE;
        tag = status.MPI_TAG;
      }
      MPI_Recv(buffer, kMost, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
      require(status.MPI_TAG == next[status.MPI_SOURCE]++, "messages of one sender were mixed up");
      int bytes;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      require(bytes == (status.MPI_TAG % 50 == 0 ? kMost : status.MPI_TAG % 300), "a length is wrong");
      check(buffer, (size_t)bytes, (size_t)status.MPI_TAG);
    }
    free(next);
  }
  free(buffer);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Receives that are cancelled take nothing; those between them take what was sent. */
static void cancelled(void) {
  enum { kCount = 100 };
  int values[kCount];
  MPI_Request requests[kCount];
  if (rank == 0) {
    for (int i = 0; i < kCount; ++i) MPI_Irecv(&values[i], 1, MPI_INT, 1, i % 5, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < kCount; i += 3) {
      MPI_Status status;
      int was_cancelled;
      MPI_Cancel(&requests[i]);
      MPI_Wait(&requests[i], &status);
      MPI_Test_cancelled(&status, &was_cancelled);
      require(was_cancelled, "a receive was not cancelled");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) {
      if (i % 3 == 0) continue;
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      require(values[i] == i, "a message went to a receive that was cancelled");
    }
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; rank == 1 && i < kCount; ++i) {
      if (i % 3 != 0) MPI_Send(&i, 1, MPI_INT, 0, i % 5, MPI_COMM_WORLD);
    }
  }
}

/* More bytes than an int counts, in one message. */
static void huge(void) {
  enum { kBlock = 65537, kBlocks = 32769 };
  const size_t bytes = (size_t)kBlock * kBlocks;
  MPI_Datatype block;
  MPI_Type_contiguous(kBlock, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  unsigned char* const buffer = rank < 2 ? malloc(bytes) : NULL;
  if (rank == 1) {
    fill(buffer, bytes, 3);
    MPI_Send(buffer, kBlocks, block, 0, 0, MPI_COMM_WORLD);
  } else if (rank == 0) {
    memset(buffer, 0, bytes);
    MPI_Recv(buffer, kBlocks, block, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(buffer, bytes, 3);
  }
  free(buffer);
  MPI_Type_free(&block);
}

/* WHERRY_MESSAGES short messages from each rank to the next, 64 at a time, which are answered. Both sides fall asleep
   now and then, so a lost wake-up ends this. */
static void many(void) {
  enum { kAtOnce = 64, kMostBytes = 256 };
  const char* const text = getenv("WHERRY_MESSAGES");
  const long count = text == NULL ? 100000 : atol(text);
  static unsigned char in[kAtOnce][kMostBytes], out[kAtOnce][kMostBytes];
  unsigned state = (unsigned)rank + 1;
  for (long done = 0; done < count; done += kAtOnce) {
    MPI_Request requests[2 * kAtOnce];
    MPI_Status statuses[2 * kAtOnce];
    for (int i = 0; i < kAtOnce; ++i)
      MPI_Irecv(in[i], kMostBytes, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < kAtOnce; ++i) {
      const int bytes = (int)((done + i) * 37 % (kMostBytes + 1));
      fill(out[i], (size_t)bytes, (size_t)(done + i));
      MPI_Isend(out[i], bytes, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[kAtOnce + i]);
    }
    state = state * 1664525U + 1013904223U;
    if (state >> 22 == 0) usleep(2000);
    MPI_Waitall(2 * kAtOnce, requests, statuses);
    for (int i = 0; i < kAtOnce; ++i) {
      int bytes = 0;
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      require(bytes == (int)((done + i) * 37 % (kMostBytes + 1)), "a message has another length");
      check(in[i], (size_t)bytes, (size_t)(done + i));
    }
  }
}

static const char* file_of_pids;

static void endless(void) {
  for (int i = 0;; ++i) {
    around(MPI_COMM_WORLD, 2 * (i % 100));
    if (i != 3) continue;
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", file_of_pids, rank);
    FILE* const file = fopen(path, "w");
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
  }
}

static const struct {
  const char* name;
  void (*act)(void);
} kScenarios[] = {
    {"long_and_short", long_and_short},
    {"unexpected", unexpected},
    {"threads", threads},
    {"gaps", gaps},
    {"truncation", truncation},
    {"synchronous_truncation", synchronous_truncation},
    {"wildcards", wildcards},
    {"cancelled", cancelled},
    {"huge", huge},
    {"many", many},
    {"endless", endless},
};

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[2], "unreadable") == 0) refuse_reading_others_memory();
  if (argc > 2) file_of_pids = argv[2];
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  require(provided == MPI_THREAD_MULTIPLE, "threads may not use this MPI at once");
  int found = 0;
  for (size_t i = 0; i < sizeof kScenarios / sizeof *kScenarios; ++i) {
    if (argc < 2 || strcmp(argv[1], kScenarios[i].name) != 0) continue;
    found = 1;
    kScenarios[i].act();
  }
  require(found, "there is no such scenario");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("passed\n");
  MPI_Finalize();
  return 0;
}
