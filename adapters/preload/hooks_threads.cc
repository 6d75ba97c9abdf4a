// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "direct_files.hpp"
#include "hook.hpp"
#include "next.hpp"

using namespace wherry::preload;

namespace {

struct ThreadStart {
  void* (*function)(void*);
  void* argument;
};

void* start_of_library(void* start) {
  const ThreadStart copy = *static_cast<ThreadStart*>(start);
  std::free(start);
  become_thread_of_direct();
  return copy.function(copy.argument);
}

}  // namespace

// The network's threads, which libwherry-direct.so starts, close its descriptors while they hold locks that transfers
// wait for. They must not wait for transfers, as threads of the program do that close such a number.
WHERRY_HOOK int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                               void* argument) noexcept {
  if (!is_in_direct()) return WHERRY_NEXT(pthread_create, thread, attributes, function, argument);
  void* const room = std::malloc(sizeof(ThreadStart));
  if (room == nullptr) return EAGAIN;
  ThreadStart* const start = new (room) ThreadStart{.function = function, .argument = argument};
  const int error = WHERRY_NEXT(pthread_create, thread, attributes, &start_of_library, start);
  if (error != 0) std::free(start);
  return error;
}
