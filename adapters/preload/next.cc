// SPDX-License-Identifier: Apache-2.0
#include "next.hpp"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/loaded_libraries.hpp"

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

/// Stands for a function that does not exist.
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
    case Hook::k_freopen:
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

void* ask_loader(const char* name) {
  if (looking) return nullptr;
  looking = true;
  const int error = errno;
  void* const function = dlsym(RTLD_NEXT, name);
  // Clears the error, which the program would get from its own dlerror().
  if (function == nullptr) (void)dlerror();
  errno = error;
  looking = false;
  return function;
}

void* look_up(Hook hook) {
  const auto index = static_cast<std::size_t>(hook);
  const NextSymbol next = next_symbol(kNames[index]);
  void* function = next.is_certain ? next.address : ask_loader(kNames[index]);
  if (function == nullptr) function = missing(hook);
  if (!looking) found[index].store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace

void find_functions_of_children() noexcept {
  for (const Hook hook : {Hook::k_execve, Hook::k_close, Hook::k_dup2, Hook::k_fcntl, Hook::k_open, Hook::k_openat,
                          Hook::k_pread, Hook::k_syscall}) {
    (void)next_function(hook);
  }
}

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
