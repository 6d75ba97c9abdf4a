/* SPDX-License-Identifier: Apache-2.0 */
/* A producer that writes blocks into the consumer's memory, and signals instead of messages.
 *
 *   remote_write consume PORT            registers two slots and a word, and checks what is written there
 *   remote_write NODE PORT [BLOCKS]      writes BLOCKS blocks of 1 MiB
 *
 * The consumer's window is [word page][slot 0][slot 1]; the producer's has one page too. The producer writes a block
 * and has SCIF store its number in the consumer's word once the block is there; the consumer reads the block and has
 * its number stored in the producer's word: the slot is free. No message is sent until all is done.
 */
#include <scif.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define BLOCK ((size_t)1 << 20)
#define SLOTS 2

struct words {
  volatile uint64_t written; /* in the consumer's window: blocks that are there */
  volatile uint64_t read;    /* in the producer's window: blocks that were read */
};

static void die(const char *what) {
  perror(what);
  exit(1);
}

static void *pages(size_t bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, PAGE, bytes) != 0) die("posix_memalign");
  memset(memory, 0, bytes);
  return memory;
}

static off_t share(scif_epd_t epd, void *memory, size_t bytes) {
  off_t offset = scif_register(epd, memory, bytes, 0, SCIF_PROT_READ | SCIF_PROT_WRITE, 0);
  if (offset == SCIF_REGISTER_FAILED) die("scif_register");
  return offset;
}

/* Each side tells the other where its window begins. */
static off_t exchange(scif_epd_t epd, off_t own) {
  off_t peers;
  if (scif_send(epd, &own, sizeof own, SCIF_SEND_BLOCK) < 0) die("scif_send");
  if (scif_recv(epd, &peers, sizeof peers, SCIF_RECV_BLOCK) != (int)sizeof peers) die("scif_recv");
  return peers;
}

static void await(const volatile uint64_t *word, uint64_t value) {
  while (*word < value) sched_yield();
  __sync_synchronize();
}

static uint64_t sum(const unsigned char *block) {
  uint64_t total = 0;
  size_t i;
  for (i = 0; i < BLOCK; ++i) total += block[i];
  return total;
}

static int consume(uint16_t port) {
  scif_epd_t listener = scif_open(), epd;
  struct scif_portID peer;
  unsigned char *window = pages(PAGE + SLOTS * BLOCK);
  struct words *words = (struct words *)window;
  uint64_t blocks, i;
  off_t own, peers;
  if (scif_bind(listener, port) < 0) die("scif_bind");
  if (scif_listen(listener, 1) < 0) die("scif_listen");
  if (scif_accept(listener, &peer, &epd, SCIF_ACCEPT_SYNC) < 0) die("scif_accept");
  own = share(epd, window, PAGE + SLOTS * BLOCK);
  peers = exchange(epd, own);
  if (scif_recv(epd, &blocks, sizeof blocks, SCIF_RECV_BLOCK) != (int)sizeof blocks) die("scif_recv");
  for (i = 0; i < blocks; ++i) {
    await(&words->written, i + 1);
    if (sum(window + PAGE + i % SLOTS * BLOCK) != BLOCK * (i % 251)) {
      fprintf(stderr, "block %llu is not what was written\n", (unsigned long long)i);
      return 1;
    }
    if (scif_fence_signal(epd, 0, 0, peers + (off_t)offsetof(struct words, read), i + 1,
                          SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE) < 0)
      die("scif_fence_signal");
  }
  printf("%llu blocks read\n", (unsigned long long)blocks);
  if (scif_send(epd, &blocks, sizeof blocks, SCIF_SEND_BLOCK) < 0) die("scif_send");
  scif_recv(epd, &blocks, 1, SCIF_RECV_BLOCK); /* until the producer has closed */
  scif_close(epd);
  scif_close(listener);
  free(window);
  return 0;
}

static int produce(uint16_t node, uint16_t port, uint64_t blocks) {
  struct scif_portID consumer;
  scif_epd_t epd = scif_open();
  unsigned char *window = pages(PAGE + BLOCK);
  struct words *words = (struct words *)window;
  uint64_t i, answer;
  off_t own, peers;
  consumer.node = node;
  consumer.port = port;
  if (scif_connect(epd, &consumer) < 0) die("scif_connect");
  own = share(epd, window, PAGE + BLOCK);
  peers = exchange(epd, own);
  if (scif_send(epd, &blocks, sizeof blocks, SCIF_SEND_BLOCK) < 0) die("scif_send");
  for (i = 0; i < blocks; ++i) {
    const off_t slot = peers + (off_t)(PAGE + i % SLOTS * BLOCK);
    if (i >= SLOTS) await(&words->read, i - SLOTS + 1);
    memset(window + PAGE, (int)(i % 251), BLOCK);
    if (scif_writeto(epd, own + (off_t)PAGE, BLOCK, slot, 0) < 0) die("scif_writeto");
    if (scif_fence_signal(epd, 0, 0, peers + (off_t)offsetof(struct words, written), i + 1,
                          SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE) < 0)
      die("scif_fence_signal");
    /* The block is ours again once it has left. */
    {
      int mark;
      if (scif_fence_mark(epd, SCIF_FENCE_INIT_SELF, &mark) < 0 || scif_fence_wait(epd, mark) < 0) die("scif_fence_wait");
    }
  }
  if (scif_recv(epd, &answer, sizeof answer, SCIF_RECV_BLOCK) != (int)sizeof answer || answer != blocks) die("scif_recv");
  printf("%llu blocks of 1 MiB written\n", (unsigned long long)blocks);
  scif_close(epd);
  free(window);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "consume") == 0) return consume((uint16_t)atoi(argv[2]));
  if (argc == 3 || argc == 4)
    return produce((uint16_t)atoi(argv[1]), (uint16_t)atoi(argv[2]), argc == 4 ? strtoull(argv[3], NULL, 10) : 1000);
  fprintf(stderr, "usage: %s consume PORT | %s NODE PORT [BLOCKS]\n", argv[0], argv[0]);
  return 2;
}
