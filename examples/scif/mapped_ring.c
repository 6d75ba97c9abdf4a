/* SPDX-License-Identifier: Apache-2.0 */
/* A ring buffer in the consumer's memory that the producer fills by plain stores, through scif_mmap.
 *
 *   mapped_ring consume PORT            owns the ring, prints what came
 *   mapped_ring NODE PORT [NUMBERS]     stores NUMBERS numbers
 */
#include <scif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 1024

/* Two pages of the consumer's: what each side counts lies on a cache line of its own. */
struct ring {
  volatile uint64_t tail; /* numbers ever stored: the producer's */
  char line1[56];
  volatile uint64_t head; /* numbers ever taken: the consumer's */
  char line2[56];
  char rest_of_page[4096 - 128];
  volatile uint64_t places[PLACES];
};
#define BYTES ((sizeof(struct ring) + 4095) / 4096 * 4096)

static void die(const char *what) {
  perror(what);
  exit(1);
}

static int consume(uint16_t port) {
  scif_epd_t listener = scif_open(), epd;
  struct scif_portID peer;
  struct ring *ring = NULL;
  uint64_t expected = 0, count;
  off_t offset;
  if (posix_memalign((void **)&ring, 4096, BYTES) != 0) die("posix_memalign");
  memset(ring, 0, BYTES);
  if (scif_bind(listener, port) < 0) die("scif_bind");
  if (scif_listen(listener, 1) < 0) die("scif_listen");
  if (scif_accept(listener, &peer, &epd, SCIF_ACCEPT_SYNC) < 0) die("scif_accept");
  offset = scif_register(epd, ring, BYTES, 0, SCIF_PROT_READ | SCIF_PROT_WRITE, 0);
  if (offset == SCIF_REGISTER_FAILED) die("scif_register");
  if (scif_send(epd, &offset, sizeof offset, SCIF_SEND_BLOCK) < 0) die("scif_send");
  if (scif_recv(epd, &count, sizeof count, SCIF_RECV_BLOCK) != (int)sizeof count) die("scif_recv");
  while (expected < count) {
    while (ring->tail == expected) sched_yield();
    __sync_synchronize();
    if (ring->places[expected % PLACES] != expected) {
      fprintf(stderr, "place %llu holds another number\n", (unsigned long long)expected);
      return 1;
    }
    __sync_synchronize();
    ring->head = ++expected;
  }
  printf("%llu numbers taken\n", (unsigned long long)count);
  scif_close(epd);
  scif_close(listener);
  free(ring);
  return 0;
}

static int produce(uint16_t node, uint16_t port, uint64_t count) {
  struct scif_portID consumer;
  scif_epd_t epd = scif_open();
  struct ring *ring;
  uint64_t i;
  off_t offset;
  consumer.node = node;
  consumer.port = port;
  if (scif_connect(epd, &consumer) < 0) die("scif_connect");
  if (scif_recv(epd, &offset, sizeof offset, SCIF_RECV_BLOCK) != (int)sizeof offset) die("scif_recv");
  ring = scif_mmap(NULL, BYTES, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, epd, offset);
  if (ring == SCIF_MMAP_FAILED) die("scif_mmap");
  if (scif_send(epd, &count, sizeof count, SCIF_SEND_BLOCK) < 0) die("scif_send");
  for (i = 0; i < count; ++i) {
    while (i - ring->head == PLACES) sched_yield();
    ring->places[i % PLACES] = i;
    __sync_synchronize();
    ring->tail = i + 1;
  }
  while (ring->head < count) sched_yield();
  printf("%llu numbers stored\n", (unsigned long long)count);
  scif_munmap(ring, BYTES);
  scif_close(epd);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "consume") == 0) return consume((uint16_t)atoi(argv[2]));
  if (argc == 3 || argc == 4)
    return produce((uint16_t)atoi(argv[1]), (uint16_t)atoi(argv[2]), argc == 4 ? strtoull(argv[3], NULL, 10) : 1000000);
  fprintf(stderr, "usage: %s consume PORT | %s NODE PORT [NUMBERS]\n", argv[0], argv[0]);
  return 2;
}
