// SPDX-License-Identifier: Apache-2.0
//
// Hooks of calls that limit the memory of this process, or the calls that it may make.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdarg>

#include "hook.hpp"
#include "next.hpp"
#include "stepping_aside.hpp"
#include "write_rings.hpp"

using namespace wherry::preload;

WHERRY_HOOK int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  const unsigned long second = va_arg(arguments, unsigned long);
  const unsigned long third = va_arg(arguments, unsigned long);
  const unsigned long fourth = va_arg(arguments, unsigned long);
  const unsigned long fifth = va_arg(arguments, unsigned long);
  va_end(arguments);
  const auto call = [&] { return WHERRY_NEXT(prctl, option, second, third, fourth, fifth); };
  if (option != PR_SET_SECCOMP) return call();
  const FilterBegins filter;
  return static_cast<int>(filter.ended(call()));
}

WHERRY_HOOK int mlockall(int flags) noexcept {
  unmap_for_good();
  return WHERRY_NEXT(mlockall, flags);
}

// The C++ library's headers give the first argument two types.

WHERRY_HOOK int setrlimit(__rlimit_resource_t resource, const rlimit* limit) noexcept {
  if (resource == RLIMIT_AS) unmap_for_good();
  if (resource == RLIMIT_FSIZE) file_size_limit_changes();
  return WHERRY_NEXT(setrlimit, resource, limit);
}

WHERRY_HOOK int prlimit(pid_t process, __rlimit_resource resource, const rlimit* limit, rlimit* before) noexcept {
  if (resource == RLIMIT_AS && limit != nullptr) unmap_for_good();
  if (resource == RLIMIT_FSIZE && limit != nullptr) file_size_limit_changes();
  return WHERRY_NEXT(prlimit, process, resource, limit, before);
}

WHERRY_OTHER_NAME(setrlimit64, setrlimit);
WHERRY_OTHER_NAME(prlimit64, prlimit);
