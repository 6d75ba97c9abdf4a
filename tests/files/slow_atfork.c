// SPDX-License-Identifier: Apache-2.0
//
// A library whose __register_atfork stands behind that of libwherry-preload.so: the first handler that is not the
// program's takes a while to register. Prints whose handlers come, in their order.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

typedef void Handler(void);
typedef int Register(Handler*, Handler*, Handler*, void*);

int __register_atfork(Handler* prepare, Handler* parent, Handler* child, void* library) {
  static atomic_flag seen = ATOMIC_FLAG_INIT;
  const struct timespec moment = {0, 100000000};
  const int is_programs = dlsym(RTLD_DEFAULT, "handler_of_program") == (void*)child;
  if (!is_programs && !atomic_flag_test_and_set(&seen)) nanosleep(&moment, NULL);
  const int result = ((Register*)dlsym(RTLD_NEXT, "__register_atfork"))(prepare, parent, child, library);
  puts(is_programs ? "program" : "library");
  return result;
}
