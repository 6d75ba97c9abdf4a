/* SPDX-License-Identifier: Apache-2.0 */
/* Connects that wait, and the calls on streams that event loops and diagnosis use. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "check.h"

static const struct wherry_options small = {4096, 0, 0};

static int readable(int descriptor, int timeout_ms) {
  struct pollfd watched = {0, POLLIN, 0};
  watched.fd = descriptor;
  return poll(&watched, 1, timeout_ms);
}

/* Both ends in this process. */
static void pair(wherry_stream* near, wherry_stream* far) {
  char address[64], own[64];
  wherry_listener listener = listen_there(&small, address, sizeof address);
  wherry_connecting connecting = WHERRY_NONE;
  SAME(wherry_start_connect(address, &small, ALWAYS, &connecting), 0);
  SAME(wherry_finish_connect(connecting, SOON, near), -ETIMEDOUT);
  CHECK(strcmp(wherry_last_error_address(), address) == 0);
  CHECK(strlen(wherry_last_error_operation()) > 0 && strlen(wherry_last_error_advice()) > 0);
  SAME(wherry_accept(listener, ALWAYS, far), 0);
  SAME(wherry_finish_connect(connecting, ALWAYS, near), 0);
  CHECK(wherry_stream_address(*far, own, sizeof own) > 0);
  CHECK(strcmp(own, address) == 0);
  SAME(wherry_peer_host(*far, own, sizeof own), 0);
  CHECK(own[0] == '\0');
  wherry_connecting_close(connecting);
  wherry_listener_close(listener);
}

static int listen_later(const char* address) {
  wherry_listener listener = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  char byte = 0;
  SAME(wherry_listen(address, NULL, &listener), 0);
  SAME(wherry_accept(listener, ALWAYS, &stream), 0);
  SAME(wherry_receive(stream, &byte, 1, ALWAYS), 1);
  wherry_stream_close(stream);
  wherry_listener_close(listener);
  return 0;
}

static void a_connect_waits_for_its_listener(void) {
  const char* address = "wherry+shm://0:4321";
  wherry_connecting connecting = WHERRY_NONE;
  wherry_stream stream = WHERRY_NONE;
  pid_t child = 0;
  int error = wherry_start_connect(address, NULL, SOON, &connecting); /* that time may be over before it returns */
  if (error == 0) error = wherry_finish_connect(connecting, ALWAYS, &stream);
  SAME(error, -ECONNREFUSED);
  wherry_connecting_close(connecting);
  SAME(wherry_start_connect(address, NULL, ALWAYS, &connecting), 0);
  child = in_child(listen_later, address);
  SAME(wherry_finish_connect(connecting, ALWAYS, &stream), 0);
  wherry_connecting_close(connecting);
  SAME(wherry_send(stream, "x", 1, ALWAYS), 1);
  expect_success(child);
  wherry_stream_close(stream);
}

static void vectors_move_what_they_can(void) {
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  static char out[5000], in[5000];
  struct iovec parts[2] = {{out, 2000}, {out + 2000, 3000}};
  struct iovec places[2] = {{in, 1}, {in + 1, 4999}};
  struct wherry_counters counters;
  pair(&near, &far);
  memset(out, 'v', sizeof out);
  SAME(wherry_try_receivev(far, places, 2), -EAGAIN);
  SAME(wherry_try_sendv(near, parts, 2), 4096);
  SAME(wherry_try_sendv(near, parts, 2), -EAGAIN);
  SAME(wherry_try_readable(far), 4096);
  SAME(wherry_try_receivev(far, places, 2), 4096);
  CHECK(memcmp(in, out, 4096) == 0);
  SAME(wherry_try_readable(far), -EAGAIN);
  SAME(wherry_get_counters(near, &counters), 0);
  SAME(counters.bytes_sent, 4096);
  SAME(counters.bytes_received, 0);
  SAME(wherry_get_counters(far, &counters), 0);
  SAME(counters.bytes_received, 4096);
  SAME(wherry_finish_sending(near), 0);
  SAME(wherry_wait_readable(far, ALWAYS), 0);
  SAME(wherry_try_readable(far), 0);
  wherry_stream_close(near);
  wherry_stream_close(far);
}

static void what_lies_unread_is_limited(void) {
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  struct wherry_capacities capacities;
  pair(&near, &far);
  SAME(wherry_limit_unread(near, 4096), 0);
  SAME(wherry_get_capacities(near, &capacities), 0);
  SAME(capacities.send, 4096);
  SAME(wherry_send(near, "x", 1, ALWAYS), 1);
  SAME(wherry_limit_unread(near, 4096), -EINVAL);
  wherry_stream_close(near);
  wherry_stream_close(far);
}

static void event_descriptors_tell_of_bytes_and_of_space(void) {
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  static char text[4096];
  int bytes = 0, space = 0;
  pair(&near, &far);
  bytes = wherry_receive_event_descriptor(far);
  space = wherry_send_event_descriptor(near);
  CHECK(bytes >= 0 && space >= 0);
  SAME(wherry_try_receive(far, text, sizeof text), -EAGAIN);
  SAME(wherry_try_send(near, text, sizeof text), sizeof text);
  SAME(readable(bytes, -1), 1);
  SAME(wherry_try_send(near, text, 1), -EAGAIN);
  SAME(wherry_receive_all(far, text, sizeof text, ALWAYS), sizeof text);
  SAME(readable(space, -1), 1);
  wherry_stream_close(near);
  wherry_stream_close(far);
}

static void a_raised_send_descriptor_is_readable_until_the_next_send(void) {
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  int space = 0;
  pair(&near, &far);
  space = wherry_send_descriptor(near);
  SAME(wherry_try_send(near, "x", 1), 1);
  SAME(readable(space, 0), 0);
  SAME(wherry_raise_send_descriptor(near), 0);
  SAME(readable(space, 0), 1);
  SAME(wherry_try_send(near, "x", 1), 1);
  SAME(readable(space, 0), 0);
  wherry_stream_close(near);
  wherry_stream_close(far);
}

static void files_are_found_and_removed_by_name(void) {
  char name[64];
  const struct wherry_file_options by_kernel = {WHERRY_PATH_KERNEL, 0, {0, 0}};
  struct wherry_file_status status;
  wherry_file file = WHERRY_NONE;
  snprintf(name, sizeof name, "/tmp/wherry-capi-%ld", (long)getpid());
  SAME(wherry_file_stat_name(name, NULL, &status), -ENOENT);
  SAME(wherry_file_open(name, O_RDWR | O_CREAT, 0600, &by_kernel, &file), 0);
  SAME(wherry_file_get_path(file), WHERRY_PATH_KERNEL);
  SAME(wherry_file_pwrite(file, "12345", 5, 0, WHERRY_PATH_AS_SET), 5);
  SAME(wherry_file_stat_name(name, NULL, &status), 0);
  SAME(status.size, 5);
  SAME(wherry_file_close(file), 0);
  SAME(wherry_file_remove(name, NULL), 0);
  SAME(wherry_file_remove(name, NULL), -ENOENT);
}

static void the_own_node_is_the_environments(void) {
  SAME(wherry_own_node(), 0);
  SAME(setenv("WHERRY_NODE", "12", 1), 0);
  SAME(wherry_own_node(), 12);
  SAME(setenv("WHERRY_NODE", "many", 1), 0);
  SAME(wherry_own_node(), -EINVAL);
  CHECK(strstr(wherry_last_error(), "WHERRY_NODE") != NULL);
  SAME(unsetenv("WHERRY_NODE"), 0);
}

static void a_close_says_what_became_of_the_bytes(void) {
  wherry_stream near = WHERRY_NONE, far = WHERRY_NONE;
  wherry_framed framed = WHERRY_NONE;
  char bytes[8];
  pair(&near, &far);
  SAME(wherry_send(near, "bytes", 5, ALWAYS), 5);
  SAME(wherry_framed_open(far, &framed), 0);
  SAME(wherry_framed_close_within(framed, ALWAYS), 0);
  SAME(wherry_receive(near, bytes, sizeof bytes, ALWAYS), 0);
  SAME(wherry_stream_close_within(near, ALWAYS), 0);
  near.impl = NULL;
  framed.impl = NULL;
  SAME(wherry_stream_close_within(near, ALWAYS), -EBADF);
  SAME(wherry_framed_close_within(framed, ALWAYS), -EBADF);
}

int main(void) {
  begin("stream");
  a_connect_waits_for_its_listener();
  vectors_move_what_they_can();
  what_lies_unread_is_limited();
  event_descriptors_tell_of_bytes_and_of_space();
  a_raised_send_descriptor_is_readable_until_the_next_send();
  files_are_found_and_removed_by_name();
  the_own_node_is_the_environments();
  a_close_says_what_became_of_the_bytes();
  return 0;
}
