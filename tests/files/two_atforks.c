// SPDX-License-Identifier: Apache-2.0
//
// files_two_atforks: two threads register a handler of forks while none was registered before. An ordinary program.
#include <pthread.h>
#include <stddef.h>

void handler_of_program(void) {}

static void* register_it(void* nothing) {
  pthread_atfork(NULL, NULL, handler_of_program);
  return nothing;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, register_it, NULL);
  register_it(NULL);
  return pthread_join(thread, NULL);
}
