/* SPDX-License-Identifier: Apache-2.0 */
/* A message to and fro.
 *
 *   ping_pong serve PORT            waits for one client and sends back whatever it says
 *   ping_pong NODE PORT [COUNT]     says COUNT things and takes the time
 */
#include <errno.h>
#include <scif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what) {
  perror(what);
  exit(1);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int serve(uint16_t port) {
  scif_epd_t listener = scif_open(), peer_epd;
  struct scif_portID peer;
  uint64_t ball;
  int n;
  if (listener == SCIF_OPEN_FAILED) die("scif_open");
  if (scif_bind(listener, port) < 0) die("scif_bind");
  if (scif_listen(listener, 1) < 0) die("scif_listen");
  if (scif_accept(listener, &peer, &peer_epd, SCIF_ACCEPT_SYNC) < 0) die("scif_accept");
  printf("playing with %d:%d\n", peer.node, peer.port);
  /* There is no end of file: when the client has closed, what is queued comes first and then ECONNRESET. */
  while ((n = scif_recv(peer_epd, &ball, sizeof ball, SCIF_RECV_BLOCK)) == (int)sizeof ball) {
    if (scif_send(peer_epd, &ball, sizeof ball, SCIF_SEND_BLOCK) < 0) die("scif_send");
  }
  if (n >= 0 || errno != ECONNRESET) die("scif_recv");
  scif_close(peer_epd);
  scif_close(listener);
  return 0;
}

static int play(uint16_t node, uint16_t port, uint64_t count) {
  struct scif_portID server;
  scif_epd_t epd = scif_open();
  uint64_t i;
  double begin;
  server.node = node;
  server.port = port;
  if (epd == SCIF_OPEN_FAILED) die("scif_open");
  if (scif_connect(epd, &server) < 0) die("scif_connect");
  begin = now_us();
  for (i = 0; i < count; ++i) {
    uint64_t ball = i;
    if (scif_send(epd, &ball, sizeof ball, SCIF_SEND_BLOCK) < 0) die("scif_send");
    if (scif_recv(epd, &ball, sizeof ball, SCIF_RECV_BLOCK) != (int)sizeof ball) die("scif_recv");
    if (ball != i) {
      fprintf(stderr, "%llu came back as %llu\n", (unsigned long long)i, (unsigned long long)ball);
      return 1;
    }
  }
  printf("%llu round trips, %.2f us each\n", (unsigned long long)count, (now_us() - begin) / (double)count);
  scif_close(epd);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return serve((uint16_t)atoi(argv[2]));
  if (argc == 3 || argc == 4) {
    return play((uint16_t)atoi(argv[1]), (uint16_t)atoi(argv[2]), argc == 4 ? strtoull(argv[3], NULL, 10) : 100000);
  }
  fprintf(stderr, "usage: %s serve PORT | %s NODE PORT [COUNT]\n", argv[0], argv[0]);
  return 2;
}
