// SPDX-License-Identifier: Apache-2.0
#include "program_memory.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "next.hpp"

namespace wherry::preload {
namespace {

// The smallest page size of any kernel. Larger pages are checked more than once.
constexpr std::uintptr_t kPage = 4096;

/// Whether the page can be read. The kernel copies the signal mask before it refuses the operation. Filters of system
/// calls allow this call, because the C library needs it.
bool is_readable_page(std::uintptr_t page) {
  constexpr int kNothingToDo = -1;
  const int error = errno;
  const long result = WHERRY_NEXT(syscall, SYS_rt_sigprocmask, kNothingToDo, page, nullptr, sizeof(std::uint64_t));
  const bool readable = result == 0 || errno != EFAULT;
  errno = error;
  return readable;
}

}  // namespace

bool ProgramMemory::can_read(const void* bytes, std::size_t size) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes);
  if (size == 0) return true;
  if (begin < kPage || begin + (size - 1) < begin) return false;
  for (std::uintptr_t page = begin / kPage * kPage; page <= begin + (size - 1); page += kPage) {
    if (std::find(pages_, pages_ + kRemembered, page) != pages_ + kRemembered) continue;
    if (!is_readable_page(page)) return false;
    pages_[next_++ % kRemembered] = page;
  }
  return true;
}

std::size_t ProgramMemory::length_of(const char* string) noexcept {
  std::size_t length = 0;
  while (true) {
    const std::size_t in_page = kPage - reinterpret_cast<std::uintptr_t>(string + length) % kPage;
    if (!can_read(string + length, in_page)) return kUnreadable;
    const auto* const end = static_cast<const char*>(std::memchr(string + length, '\0', in_page));
    if (end != nullptr) return static_cast<std::size_t>(end - string);
    length += in_page;
  }
}

bool can_read(const void* bytes, std::size_t size) noexcept {
  ProgramMemory memory;
  return memory.can_read(bytes, size);
}

}  // namespace wherry::preload
