// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace wherry {

/// Makes a word that is zero again in a forked child. The kernel itself wipes its page, for every call that forks: also
/// for clone, which runs no handlers, and for a child with its parent's process number (in another namespace). Null
/// before Linux 4.14, or if madvise is refused. Never unmapped: its user may outlive static objects.
inline std::atomic<std::uint64_t>* make_word_wiped_on_fork() noexcept {
  constexpr std::size_t kPage = 4096;
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, kPage, MADV_WIPEONFORK) == 0) return new (page) std::atomic<std::uint64_t>{0};
  ::munmap(page, kPage);
  return nullptr;
}

}  // namespace wherry
