/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bursts FILE EAGER KINDS COUNTxBYTES...: one side sends each burst, and then makes no call of MPI until the other side
 * has received it. Each letter of KINDS is a run of every burst, and says where the senders wait meanwhile: s in sleep,
 * r in read() of a pipe, b in a barrier of threads that processes share. With a small letter rank 0 sends to all
 * others, with a capital letter all others send to rank 0. EAGER is the longest message whose send returns before its
 * receiver calls MPI. FILE has at least 4096 zeros; FILE.pipe is a FIFO.
 *
 * Receivers are away, too. They make a call of MPI only when as many sends have returned as may wait for them, and then
 * receive half of those.
 *
 * No rank sends before the first burst, which therefore connects the ranks.
 */
#include <ctype.h>
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

enum { kMostRanks = 64, kPromised = 256, kPromisedBytes = 256 << 10, kSecondsOfABurst = 60 };

struct shared {
  atomic_int ready;                /* the barrier is initialised */
  atomic_int returned[kMostRanks]; /* sends of the burst between rank 0 and this rank that have returned */
  atomic_int received;             /* ranks that have received or sent their burst, rank 0 apart */
  pthread_barrier_t barrier;
};

static int rank;
static int size;
static int eager;
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
  int length =
      snprintf(text, sizeof text, "rank %d, %s: not over; sends that have returned, by the other rank:", rank, burst);
  for (int i = 1; i < size; ++i) {
    length += snprintf(text + length, sizeof text - (size_t)length, " %d", atomic_load(&shared->returned[i]));
  }
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

/* Rank 0 sends to the ranks `first` to `last`; each other rank, to rank 0. */
static void send_all(int first, int last, unsigned char* buffer, int count, int bytes) {
  for (int message = 0; message < count; ++message) {
    for (int i = 0; i < bytes; ++i) buffer[i] = byte_of(message, i);
    for (int other = first; other <= last; ++other) {
      MPI_Send(buffer, bytes, MPI_BYTE, rank == 0 ? other : 0, message, MPI_COMM_WORLD);
      atomic_fetch_add(&shared->returned[other], 1);
    }
  }
}

/* Waits until all bursts of this run were received. */
static void be_away(char kind) {
  if (kind == 's') {
    while (atomic_load(&shared->received) < size - 1) usleep(1000);
  } else if (kind == 'r') {
    char byte;
    for (int i = rank == 0 ? 1 : size - 1; i < size; ++i) {
      require(read(pipe_of_all, &byte, 1) == 1, "the pipe cannot be read");
    }
  } else {
    pthread_barrier_wait(&shared->barrier);
  }
}

/* How many sends to one receiver return before it calls MPI. */
static int promised(int bytes) {
  if (bytes > eager) return 0;
  return kPromisedBytes / bytes < kPromised ? kPromisedBytes / bytes : kPromised;
}

static void receive(int from, unsigned char* buffer, int message, int bytes) {
  MPI_Status status;
  MPI_Recv(buffer, bytes, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  require(status.MPI_TAG == message, "a message is missing or out of order");
  for (int i = 0; i < bytes; ++i) require(buffer[i] == byte_of(message, i), "a byte is wrong");
}

static void receive_all(int first, int last, unsigned char* buffer, int count, int bytes) {
  const int step = promised(bytes) < 2 ? 1 : promised(bytes) / 2;
  for (int received = 0; received < count; received += step) {
    const int returned = received + promised(bytes) < count ? received + promised(bytes) : count;
    for (int other = first; other <= last; ++other) {
      while (bytes <= eager && atomic_load(&shared->returned[other]) < returned) usleep(1000);
    }
    for (int other = first; other <= last; ++other) {
      for (int i = received; i < received + step && i < count; ++i) receive(rank == 0 ? other : 0, buffer, i, bytes);
    }
  }
}

static void say_received(char kind) {
  const int others = rank == 0 ? size - 1 : 1;
  atomic_fetch_add(&shared->received, others);
  for (int i = 0; i < others && kind == 'r'; ++i) {
    require(write(pipe_of_all, "x", 1) == 1, "the pipe cannot be written");
  }
  if (kind == 'b') pthread_barrier_wait(&shared->barrier);
}

static void play(char kind, int count, int bytes) {
  const int gathers = isupper((unsigned char)kind) != 0;
  kind = (char)tolower((unsigned char)kind);
  snprintf(burst, sizeof burst, "%d messages of %d B %s rank 0, sender away in %c", count, bytes,
           gathers ? "to" : "from", kind);
  unsigned char* const buffer = malloc((size_t)bytes);
  const int first = rank == 0 ? 1 : rank;
  const int last = rank == 0 ? size - 1 : rank;
  pthread_barrier_wait(&shared->barrier);
  alarm(kSecondsOfABurst);
  if ((rank == 0) != gathers) {
    send_all(first, last, buffer, count, bytes);
    be_away(kind);
  } else {
    receive_all(first, last, buffer, count, bytes);
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
  eager = atoi(argv[2]);
  for (int i = 4; i < argc; ++i) {
    int count = 0;
    int bytes = 0;
    require(sscanf(argv[i], "%dx%d", &count, &bytes) == 2 && bytes > 0, "a burst is written as COUNTxBYTES");
    for (const char* kind = argv[3]; *kind != '\0'; ++kind) play(*kind, count, bytes);
  }
  alarm(0);
  MPI_Finalize();
  if (rank == 0) puts("passed");
  return 0;
}
