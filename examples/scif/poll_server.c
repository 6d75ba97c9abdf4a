/* SPDX-License-Identifier: Apache-2.0 */
/* One server, many clients, one thread: scif_poll.
 *
 *   poll_server serve PORT [CLIENTS]     adds up what clients send, answers each with its own sum; leaves after CLIENTS
 *   poll_server NODE PORT [NUMBERS]      sends 1, 2 ... NUMBERS and checks the sum
 */
#include <errno.h>
#include <scif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CLIENTS 500

struct client {
  uint64_t sum;
  unsigned char part[8]; /* a number may come in pieces: it is a stream of bytes */
  int have;
};

static void die(const char *what) {
  perror(what);
  exit(1);
}

/* Takes what is there. A zero ends the list, and is answered. */
static void receive(scif_epd_t epd, struct client *client) {
  int n;
  while ((n = scif_recv(epd, client->part + client->have, 8 - client->have, 0)) > 0) {
    uint64_t number;
    client->have += n;
    if (client->have < 8) continue;
    client->have = 0;
    memcpy(&number, client->part, 8);
    client->sum += number;
    if (number == 0) scif_send(epd, &client->sum, sizeof client->sum, SCIF_SEND_BLOCK);
  }
}

static void welcome(scif_epd_t listener, struct scif_pollepd *polled, struct client *clients, int *count) {
  struct scif_portID peer;
  scif_epd_t epd;
  if (*count == MOST_CLIENTS || scif_accept(listener, &peer, &epd, 0) < 0) return;
  memset(&clients[*count], 0, sizeof clients[0]);
  polled[1 + (*count)++] = (struct scif_pollepd){epd, SCIF_POLLIN, 0};
}

static int serve(uint16_t port, int until) {
  static struct scif_pollepd polled[1 + MOST_CLIENTS];
  static struct client clients[MOST_CLIENTS];
  scif_epd_t listener = scif_open();
  int count = 0, gone = 0, i;
  if (scif_bind(listener, port) < 0) die("scif_bind");
  if (scif_listen(listener, MOST_CLIENTS) < 0) die("scif_listen");
  polled[0] = (struct scif_pollepd){listener, SCIF_POLLIN, 0};
  while (gone < until) {
    if (scif_poll(polled, (unsigned)(1 + count), -1) < 0 && errno != EINTR) die("scif_poll");
    for (i = count - 1; i >= 0; --i) {
      const short events = polled[1 + i].revents;
      if (events & SCIF_POLLIN) receive(polled[1 + i].epd, &clients[i]);
      if (events != 0 && !(events & SCIF_POLLIN)) { /* hung up, and all was read */
        scif_close(polled[1 + i].epd);
        polled[1 + i] = polled[count];
        clients[i] = clients[--count];
        ++gone;
      }
    }
    if (polled[0].revents & SCIF_POLLIN) welcome(listener, polled, clients, &count);
  }
  printf("%d clients served\n", gone);
  scif_close(listener);
  return 0;
}

static int ask(uint16_t node, uint16_t port, uint64_t numbers) {
  struct scif_portID server;
  scif_epd_t epd = scif_open();
  uint64_t i, sum = 0, zero = 0;
  server.node = node;
  server.port = port;
  if (scif_connect(epd, &server) < 0) die("scif_connect");
  for (i = 1; i <= numbers; ++i) {
    if (scif_send(epd, &i, sizeof i, SCIF_SEND_BLOCK) < 0) die("scif_send");
  }
  if (scif_send(epd, &zero, sizeof zero, SCIF_SEND_BLOCK) < 0) die("scif_send");
  if (scif_recv(epd, &sum, sizeof sum, SCIF_RECV_BLOCK) != (int)sizeof sum) die("scif_recv");
  scif_close(epd);
  if (sum != numbers * (numbers + 1) / 2) {
    fprintf(stderr, "the sum is wrong: %llu\n", (unsigned long long)sum);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc >= 3 && strcmp(argv[1], "serve") == 0)
    return serve((uint16_t)atoi(argv[2]), argc > 3 ? atoi(argv[3]) : MOST_CLIENTS);
  if (argc == 3 || argc == 4)
    return ask((uint16_t)atoi(argv[1]), (uint16_t)atoi(argv[2]), argc == 4 ? strtoull(argv[3], NULL, 10) : 1000);
  fprintf(stderr, "usage: %s serve PORT [CLIENTS] | %s NODE PORT [NUMBERS]\n", argv[0], argv[0]);
  return 2;
}
