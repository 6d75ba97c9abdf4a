// SPDX-License-Identifier: Apache-2.0
#include "fabric/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace wherry::fabric {
namespace {

std::atomic<bool> refused{false};

}  // namespace

std::span<std::byte> bring_in_huge_pages(int file, std::uint64_t place, std::span<std::byte> view) {
  const std::size_t before = (kHugePage - place % kHugePage) % kHugePage;
  if (view.size() < before + kHugePage || refused.load(std::memory_order_relaxed)) return {};
  const auto huge = view.subspan(before, (view.size() - before) / kHugePage * kHugePage);
  // The kernel makes huge pages of small ones only: of one and a hole, here.
  for (std::size_t at = 0; at < huge.size(); at += kHugePage) {
    if (::pwrite(file, "", 1, static_cast<off_t>(place + before + at)) != 1) return {};
  }
  // Linux 6.1 and later. Asked for by name, they do not depend on the settings for shared memory in general.
  if (::madvise(huge.data(), huge.size(), MADV_COLLAPSE) == 0) return huge;
  if (errno == EINVAL) refused.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace wherry::fabric
