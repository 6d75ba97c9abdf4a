/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bursts FILE KINDS COUNTxBYTES...: rank 0 sends each burst to every other rank, and then makes no call of MPI until
 * all of them have received what was sent. KINDS says where it waits meanwhile, one letter each: s in sleep, r in
 * read() of a pipe, b in a barrier of threads that processes share. FILE has at least 4096 zeros; FILE.pipe is a FIFO.
 *
 * No rank sends before the first burst, which therefore connects the ranks.
 */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMostRanks = 64, kPromised = 64, kPromisedBytes = 256 << 10, kEager = 4096, kSecondsOfABurst = 60 };

struct shared {
  atomic_int ready;                /* the barrier is initialised */
  atomic_int returned[kMostRanks]; /* sends of the burst to this rank that have returned */
  atomic_int received;             /* ranks that have received their burst */
  pthread_barrier_t barrier;
};

static int rank;
static int size;
static int pipe_of_all;
static struct shared* shared;
static char burst[100];

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d, %s: %s\n", rank, burst, what);
  MPI_Abort(MPI_COMM_WORLD, 9);
}

static void watchdog(int signal) {
  (void)signal;
  char text[300];
  const int returned = rank == 0 ? -1 : atomic_load(&shared->returned[rank]);
  const int length =
      snprintf(text, sizeof text, "rank %d, %s: not over; %d sends to it have returned\n", rank, burst, returned);
  (void)!write(STDERR_FILENO, text, (size_t)length);
  _exit(9);
}

static void share(const char* path) {
  const int file = open(path, O_RDWR);
  char name[4096];
  snprintf(name, sizeof name, "%s.pipe", path);
  pipe_of_all = open(name, O_RDWR);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || pipe_of_all < 0 || shared == MAP_FAILED) exit(77);
}

/* No call of MPI: all ranks come here after they have begun. */
static void meet(void) {
  if (rank == 0) {
    pthread_barrierattr_t of_processes;
    pthread_barrierattr_init(&of_processes);
    pthread_barrierattr_setpshared(&of_processes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &of_processes, (unsigned)size);
    atomic_store(&shared->ready, 1);
  }
  while (atomic_load(&shared->ready) == 0) usleep(1000);
}

static unsigned char byte_of(int message, int i) { return (unsigned char)(message * 7 + i * 3 + (message >> 8)); }

static void send_all(unsigned char* buffer, int count, int bytes) {
  for (int message = 0; message < count; ++message) {
    for (int i = 0; i < bytes; ++i) buffer[i] = byte_of(message, i);
    for (int to = 1; to < size; ++to) {
      MPI_Send(buffer, bytes, MPI_BYTE, to, message, MPI_COMM_WORLD);
      atomic_fetch_add(&shared->returned[to], 1);
    }
  }
}

/* Waits until all have received their bursts, which send_all has sent. */
static void be_away(char kind) {
  if (kind == 's') {
    while (atomic_load(&shared->received) < size - 1) usleep(1000);
  } else if (kind == 'r') {
    char byte;
    for (int i = 1; i < size; ++i) require(read(pipe_of_all, &byte, 1) == 1, "the pipe cannot be read");
  } else {
    pthread_barrier_wait(&shared->barrier);
  }
}

/* How many sends return before their receiver calls MPI. Longer messages may wait for their receives. */
static int promised(int count, int bytes) {
  if (bytes > kEager) return 0;
  const int fit = kPromisedBytes / bytes < kPromised ? kPromisedBytes / bytes : kPromised;
  return count < fit ? count : fit;
}

static void receive_all(unsigned char* buffer, int count, int bytes) {
  while (atomic_load(&shared->returned[rank]) < promised(count, bytes)) usleep(1000);
  for (int message = 0; message < count; ++message) {
    MPI_Status status;
    MPI_Recv(buffer, bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    require(status.MPI_TAG == message, "a message is missing or out of order");
    for (int i = 0; i < bytes; ++i) require(buffer[i] == byte_of(message, i), "a byte is wrong");
  }
}

static void say_received(char kind) {
  atomic_fetch_add(&shared->received, 1);
  if (kind == 'r') require(write(pipe_of_all, "x", 1) == 1, "the pipe cannot be written");
  if (kind == 'b') pthread_barrier_wait(&shared->barrier);
}

static void play(char kind, int count, int bytes) {
  snprintf(burst, sizeof burst, "%d messages of %d B, sender away in %c", count, bytes, kind);
  unsigned char* const buffer = malloc((size_t)bytes);
  pthread_barrier_wait(&shared->barrier);
  alarm(kSecondsOfABurst);
  if (rank == 0) {
    send_all(buffer, count, bytes);
    be_away(kind);
  } else {
    receive_all(buffer, count, bytes);
    say_received(kind);
  }
  pthread_barrier_wait(&shared->barrier);
  atomic_store(&shared->returned[rank], 0);
  atomic_store(&shared->received, 0);
  free(buffer);
}

int main(int argc, char** argv) {
  share(argv[1]);
  signal(SIGALRM, watchdog);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  meet();
  for (int i = 3; i < argc; ++i) {
    int count = 0;
    int bytes = 0;
    require(sscanf(argv[i], "%dx%d", &count, &bytes) == 2 && bytes > 0, "a burst is written as COUNTxBYTES");
    for (const char* kind = argv[2]; *kind != '\0'; ++kind) play(*kind, count, bytes);
  }
  alarm(0);
  MPI_Finalize();
  if (rank == 0) puts("passed");
  return 0;
}
