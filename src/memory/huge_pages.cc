// SPDX-License-Identifier: Apache-2.0
#include "memory/huge_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "memory/populate.hpp"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace wherry::memory {
namespace {

std::atomic<bool> refused{false};

/// Most CPU time per huge page: the time of 512 faults of small pages. A huge page usually takes a tenth of it. In a
/// virtual machine, whose host may first have to find the memory, it can take twice the limit and more.
constexpr std::chrono::nanoseconds kMaxCpuTimePerHugePage{1'000'000};
/// Most time by the clock per huge page. Besides its CPU time it waits: for other CPUs, mostly for microseconds; and
/// for the host, compaction or a lock of the kernel, without any bound.
constexpr std::chrono::nanoseconds kMaxTimePerHugePage{10'000'000};
std::atomic<bool> slow{false};  ///< a huge page took longer than one of these limits

std::chrono::nanoseconds read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

bool collapse(std::span<std::byte> memory) {
  for (std::size_t at = 0; at < memory.size(); at += kHugePage) {
    // The kernel collapses only present small pages. The last byte is used, since the bytes in use lie before it.
    if (!populate(memory.subspan(at + kHugePage - 1, 1), Access::write)) return false;
  }
  return ::madvise(memory.data(), memory.size(), MADV_COLLAPSE) == 0;
}

}  // namespace

std::byte* map_for_huge_pages(int file, std::uint64_t place, std::size_t wanted, int protection, int flags) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (wanted + page - 1) / page * page;
  const auto map = [&](void* where, int fixed) -> std::byte* {
    void* const got = ::mmap(where, bytes, protection, flags | fixed, file, static_cast<off_t>(place));
    return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
  };
  // Usually the kernel already picks an aligned address, next to the last such mapping.
  std::byte* const start = map(nullptr, 0);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(start) % kHugePage;
  if (past == 0) return start;
  ::munmap(start, bytes);
  void* const room = ::mmap(nullptr, bytes + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const from = static_cast<std::byte*>(room);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(from) % kHugePage) % kHugePage;
  if (before != 0) ::munmap(from, before);
  ::munmap(from + before + bytes, kHugePage - before);
  std::byte* const got = map(from + before, MAP_FIXED);
  if (got == nullptr) ::munmap(from + before, bytes);
  return got;
}

std::span<std::byte> bring_in_huge_pages(int file, std::uint64_t place, std::span<std::byte> view) {
  const std::size_t before = (kHugePage - place % kHugePage) % kHugePage;
  if (view.size() < before + kHugePage || refused.load(std::memory_order_relaxed)) return {};
  const auto huge = view.subspan(before, (view.size() - before) / kHugePage * kHugePage);
  // The kernel collapses only present small pages: here one small page and a hole.
  for (std::size_t at = 0; at < huge.size(); at += kHugePage) {
    if (::pwrite(file, "", 1, static_cast<off_t>(place + before + at)) != 1) return {};
  }
  // Linux 6.1 and later. MADV_COLLAPSE does not depend on the system's settings for huge pages of shared memory.
  if (::madvise(huge.data(), huge.size(), MADV_COLLAPSE) == 0) return huge;
  if (errno == EINVAL) refused.store(true, std::memory_order_relaxed);
  return {};
}

bool huge_pages_are_tried() {
  return !refused.load(std::memory_order_relaxed) && !slow.load(std::memory_order_relaxed) && can_populate();
}

std::size_t collapse_into_huge_pages(std::span<std::byte> memory) {
  if (!huge_pages_are_tried()) return 0;
  std::size_t done = 0;
  // Each call waits once for each CPU, for any size. So the first call takes one huge page, and each next twice as
  // many.
  for (std::size_t pages = 1; done < memory.size(); pages *= 2) {
    const auto part = memory.subspan(done, std::min(memory.size() - done, pages * kHugePage));
    const auto start = read(CLOCK_MONOTONIC);
    const auto cpu_start = read(CLOCK_THREAD_CPUTIME_ID);
    const bool collapsed = collapse(part);
    const auto each = static_cast<std::int64_t>(part.size() / kHugePage);
    if (read(CLOCK_THREAD_CPUTIME_ID) - cpu_start > each * kMaxCpuTimePerHugePage ||
        read(CLOCK_MONOTONIC) - start > each * kMaxTimePerHugePage)
      slow.store(true, std::memory_order_relaxed);
    if (collapsed) done += part.size();
    if (!collapsed || slow.load(std::memory_order_relaxed)) break;
  }
  return done;
}

}  // namespace wherry::memory
