// SPDX-License-Identifier: Apache-2.0
//
// A libzmq.so.5 that is preloaded into every process of `wherry run`, and loads the one with wherry:// if the process
// uses ZeroMQ. It does so at the start if the program or one of its libraries needs a libzmq. Otherwise it does so at
// the first call, for example from Python's wheel. That library takes 1 ms to load, with libsodium and the C++ library.
//
// Because its name is libzmq.so.5, the loader takes it for any other library of that name that a program needs.
#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/iterate_with_this_last.hpp"
#include "base/loaded_libraries.hpp"
#include "functions.hpp"

#define WHERRY_EXPORTED extern "C" __attribute__((visibility("default")))

namespace wherry {
namespace {

using Word = std::uintptr_t;
using Function = Word (*)(Word, Word, Word, Word, Word, Word);

enum class Name : unsigned {
#define WHERRY_ZMQ_NAME(name) name,
  WHERRY_ZMQ_FUNCTIONS(WHERRY_ZMQ_NAME)
#undef WHERRY_ZMQ_NAME
      count
};

constexpr auto kCount = static_cast<std::size_t>(Name::count);

constexpr std::array<const char*, kCount> kTexts{
#define WHERRY_ZMQ_TEXT(name) #name,
    WHERRY_ZMQ_FUNCTIONS(WHERRY_ZMQ_TEXT)
#undef WHERRY_ZMQ_TEXT
};

constinit std::array<std::atomic<Function>, kCount> functions{};
constinit std::atomic<void*> library{nullptr};

/// Ends the process, as the loader does if it cannot load a library that a program needs.
[[noreturn]] void end_because(const char* reason) {
  constexpr int kNotStarted = 127;
  std::fprintf(stderr, "wherry: cannot load %s; install it again (make zmq), or use wherry run --no-zmq\n", reason);
  _exit(kNotStarted);
}

/// Path of the real library, beside the folder of this one: PREFIX/lib/wherry/zmq/lib/libzmq.so.5.
void path_of_library(std::array<char, PATH_MAX>& path) {
  const char* const own = path_of_this_library();
  const char* const slash = own == nullptr ? nullptr : std::strrchr(own, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash - own);
  std::snprintf(path.data(), path.size(), "%.*s/../zmq/lib/libzmq.so.5", folder, own == nullptr ? "" : own);
}

/// Loads the real library. Threads that call this at the same time load the same one.
void* load() {
  void* loaded = library.load(std::memory_order_acquire);  // LIBZMQ acquire: what was loaded
  if (loaded != nullptr) return loaded;
  std::array<char, PATH_MAX> path{};
  path_of_library(path);
  const int error = errno;
  loaded = dlopen(path.data(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) end_because(dlerror());
  errno = error;
  library.store(loaded, std::memory_order_release);  // LIBZMQ release: what was loaded
  return loaded;
}

__attribute__((noinline, cold)) Function look_up(Name name) {
  const auto index = static_cast<std::size_t>(name);
  const auto function = reinterpret_cast<Function>(dlsym(load(), kTexts[index]));
  if (function == nullptr) end_because(dlerror());
  functions[index].store(function, std::memory_order_relaxed);
  return function;
}

inline Function function_of(Name name) {
  const Function function = functions[static_cast<std::size_t>(name)].load(std::memory_order_relaxed);
  return function != nullptr ? function : look_up(name);
}

using Iterate = int (*)(int (*)(dl_phdr_info*, std::size_t, void*), void*);

/// Returns the dl_iterate_phdr that the program would call without this library. Unwinders call it for each frame.
Iterate next_iterate() {
  static constinit std::atomic<Iterate> found{nullptr};
  Iterate next = found.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  const NextSymbol symbol = next_symbol("dl_iterate_phdr");
  const bool known = symbol.is_certain && symbol.address != nullptr;
  next = reinterpret_cast<Iterate>(known ? symbol.address : dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  found.store(next, std::memory_order_relaxed);
  return next;
}

/// A program that is linked with a libzmq gets it at its start, as without `wherry run`: it may change its root or drop
/// its rights before it makes a socket.
__attribute__((constructor)) void load_if_needed() {
  if (any_library_needs("libzmq.")) load();
}

}  // namespace
}  // namespace wherry

using wherry::Name;
using wherry::Word;

#define WHERRY_ZMQ_FORWARD(name)                                              \
  WHERRY_EXPORTED Word name(Word a, Word b, Word c, Word d, Word e, Word f) { \
    return wherry::function_of(Name::name)(a, b, c, d, e, f);                 \
  }
WHERRY_ZMQ_FUNCTIONS(WHERRY_ZMQ_FORWARD)

WHERRY_EXPORTED int dl_iterate_phdr(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  return wherry::iterate_with_this_last(wherry::next_iterate(), callback, data);
}
