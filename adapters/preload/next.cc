// SPDX-License-Identifier: Apache-2.0
#include "next.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace wherry::preload {
namespace {

constexpr auto kCount = static_cast<std::size_t>(Hook::kCount);

constexpr std::array<const char*, kCount> kNames{
#define WHERRY_HOOK_TEXT(name) #name,
    WHERRY_HOOKS(WHERRY_HOOK_TEXT)
#undef WHERRY_HOOK_TEXT
};

constinit std::array<std::atomic<void*>, kCount> found{};
// A lookup may allocate, and an allocator may open files when it is first used.
constinit thread_local bool looking = false;
constinit bool plain_writes = false;

/// In place of a function that is not there.
long fails() {
  errno = ENOSYS;
  return -1;
}

void* fails_with_null() {
  errno = ENOSYS;
  return nullptr;
}

bool returns_pointer(Hook hook) {
  switch (hook) {
    case Hook::k_fopen:
    case Hook::k_fopen64:
    case Hook::k_freopen:
    case Hook::k_freopen64:
    case Hook::k_fdopen:
    case Hook::k_fdopendir:
    case Hook::k_popen:
      return true;
    default:
      return false;
  }
}

void* missing(Hook hook) {
  return returns_pointer(hook) ? reinterpret_cast<void*>(&fails_with_null) : reinterpret_cast<void*>(&fails);
}

void* look_up(Hook hook) {
  if (looking) return missing(hook);
  looking = true;
  const int error = errno;
  const auto index = static_cast<std::size_t>(hook);
  void* function = dlsym(RTLD_NEXT, kNames[index]);
  if (function == nullptr) {
    // Clears the error, which the program would get from its own dlerror().
    (void)dlerror();
    function = missing(hook);
  }
  found[index].store(function, std::memory_order_relaxed);
  errno = error;
  looking = false;
  return function;
}

/// Where the library with the function behind a hook is; null: not known.
const void* library_of(Hook hook) {
  Dl_info info{};
  return dladdr(next_function(hook), &info) == 0 ? nullptr : info.dli_fbase;
}

}  // namespace

void find_next_functions() noexcept {
  for (std::size_t i = 0; i < kCount; i++) {
    if (found[i].load(std::memory_order_relaxed) == nullptr) look_up(static_cast<Hook>(i));
  }
  const void* const library = library_of(Hook::k_syscall);
  plain_writes = library != nullptr;
  for (const Hook hook : {Hook::k_write, Hook::k_pwrite64, Hook::k_writev, Hook::k_pwritev64}) {
    plain_writes = plain_writes && library_of(hook) == library;
  }
}

bool writes_are_plain() noexcept { return plain_writes; }

void* next_function(Hook hook) noexcept {
  void* const function = found[static_cast<std::size_t>(hook)].load(std::memory_order_relaxed);
  return function != nullptr ? function : look_up(hook);
}

void* next_function_for(const void* caller, const char* name) noexcept {
  void* function = dlsym(RTLD_NEXT, name);
  Dl_info info{};
  if (function == nullptr && dladdr(caller, &info) != 0) {
    void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) function = dlsym(library, name);
    if (library != nullptr) dlclose(library);
  }
  if (function != nullptr) return function;
  (void)dlerror();
  return reinterpret_cast<void*>(&fails);
}

}  // namespace wherry::preload
