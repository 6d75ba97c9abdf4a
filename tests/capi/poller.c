/* SPDX-License-Identifier: Apache-2.0 */
/* One poller for the streams of several processes, their listener and another descriptor. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "check.h"

#define SENDERS  6
#define LISTENER 1000

static int send_text(const char* address) {
  wherry_stream stream = WHERRY_NONE;
  SAME(wherry_connect(address, NULL, ALWAYS, &stream), 0);
  SAME(wherry_send(stream, "0123456789", 10, ALWAYS), 10);
  wherry_stream_close(stream);
  return 0;
}

static int send_text_and_stay(const char* address) {
  wherry_stream stream = WHERRY_NONE;
  SAME(wherry_connect(address, NULL, ALWAYS, &stream), 0);
  SAME(wherry_send(stream, "0123456789", 10, ALWAYS), 10);
  return stay();
}

struct server {
  wherry_listener listener;
  wherry_poller poller;
  wherry_stream streams[SENDERS];
  int come, ended, broken;
  int64_t bytes;
};

static void accept_all(struct server* server) {
  while (server->come < SENDERS && wherry_accept(server->listener, 0, &server->streams[server->come]) == 0) {
    SAME(wherry_poller_add(server->poller, server->streams[server->come], (uint64_t)server->come), 0);
    ++server->come;
  }
}

static void receive_from(struct server* server, uint64_t token) {
  char buffer[4];
  const int64_t got = wherry_try_receive(server->streams[token], buffer, sizeof buffer);
  if (got == -EAGAIN) return;
  if (got > 0) {
    server->bytes += got;
    return;
  }
  if (got == 0) ++server->ended;
  if (got < 0) {
    SAME(got, -ECONNRESET);
    ++server->broken;
  }
  wherry_stream_close(server->streams[token]);
}

static void all_streams_are_served_and_a_killed_peer_is_told_of(void) {
  struct server server;
  pid_t children[SENDERS];
  char address[64];
  int i;
  memset(&server, 0, sizeof server);
  server.listener = listen_there(NULL, address, sizeof address);
  SAME(wherry_poller_open(&server.poller), 0);
  SAME(wherry_poller_add_descriptor(server.poller, wherry_listener_descriptor(server.listener), LISTENER), 0);
  for (i = 0; i < SENDERS; ++i) children[i] = in_child(i == 0 ? send_text_and_stay : send_text, address);
  while (server.ended + server.broken < SENDERS) {
    uint64_t ready[2];
    const int64_t found = wherry_poller_wait(server.poller, ready, 2, ALWAYS);
    CHECK(found >= 0 && found <= 2);
    for (i = 0; i < found; ++i) {
      if (ready[i] == LISTENER) {
        accept_all(&server);
      } else {
        receive_from(&server, ready[i]);
      }
    }
    if (server.bytes == 10 * SENDERS && children[0] != 0) {
      kill_it(children[0]);
      children[0] = 0;
    }
  }
  SAME(server.bytes, 10 * SENDERS);
  SAME(server.broken, 1);
  for (i = 1; i < SENDERS; ++i) expect_success(children[i]);
  wherry_poller_close(server.poller);
  wherry_listener_close(server.listener);
}

static void* interrupt_it(void* poller) {
  SAME(wherry_poller_interrupt(*(wherry_poller*)poller), 0);
  return NULL;
}

static void an_interruption_and_a_timeout_end_a_wait(void) {
  wherry_poller poller = WHERRY_NONE;
  pthread_t thread;
  uint64_t ready = 0;
  SAME(wherry_poller_open(&poller), 0);
  SAME(wherry_poller_wait(poller, &ready, 1, SOON), 0);
  SAME(pthread_create(&thread, NULL, interrupt_it, &poller), 0);
  SAME(wherry_poller_wait(poller, &ready, 1, ALWAYS), 0);
  SAME(pthread_join(thread, NULL), 0);
  CHECK(wherry_poller_descriptor(poller) >= 0);
  wherry_poller_close(poller);
}

static void a_descriptor_is_reported_until_it_is_removed(void) {
  wherry_poller poller = WHERRY_NONE;
  uint64_t ready = 0;
  int ends[2];
  SAME(pipe(ends), 0);
  SAME(wherry_poller_open(&poller), 0);
  SAME(wherry_poller_add_descriptor(poller, ends[0], 7), 0);
  SAME(wherry_poller_add_descriptor(poller, ends[0], 8), -EEXIST);
  SAME(wherry_poller_add_descriptor(poller, 1 << 20, 8), -EBADF);
  SAME(write(ends[1], "x", 1), 1);
  SAME(wherry_poller_wait(poller, &ready, 1, ALWAYS), 1);
  SAME(ready, 7);
  SAME(wherry_poller_remove_descriptor(poller, ends[0]), 0);
  SAME(wherry_poller_wait(poller, &ready, 1, 0), 0);
  wherry_poller_close(poller);
  close(ends[0]);
  close(ends[1]);
}

static void a_stream_is_in_one_poller_and_leaves_it(void) {
  char address[64];
  wherry_listener listener = listen_there(NULL, address, sizeof address);
  const pid_t child = in_child(send_text_and_stay, address);
  wherry_stream stream = WHERRY_NONE;
  wherry_poller one = WHERRY_NONE, two = WHERRY_NONE;
  uint64_t ready = 0;
  SAME(wherry_accept(listener, ALWAYS, &stream), 0);
  SAME(wherry_poller_open(&one), 0);
  SAME(wherry_poller_open(&two), 0);
  SAME(wherry_poller_add(one, stream, 1), 0);
  SAME(wherry_poller_add(two, stream, 2), -EEXIST);
  CHECK(strstr(wherry_last_error_advice(), "remove it there first") != NULL);
  SAME(wherry_poller_wait(one, &ready, 1, ALWAYS), 1);
  SAME(ready, 1);
  SAME(wherry_poller_remove(two, stream), 0);
  SAME(wherry_poller_remove(one, stream), 0);
  SAME(wherry_poller_add(two, stream, 2), 0);
  SAME(wherry_poller_wait(two, &ready, 1, ALWAYS), 1);
  SAME(ready, 2);
  wherry_poller_close(two);
  kill_it(child);
  wherry_stream_close(stream);
  wherry_poller_close(one);
  wherry_listener_close(listener);
}

int main(void) {
  begin("poller");
  all_streams_are_served_and_a_killed_peer_is_told_of();
  an_interruption_and_a_timeout_end_a_wait();
  a_descriptor_is_reported_until_it_is_removed();
  a_stream_is_in_one_poller_and_leaves_it();
  return 0;
}
