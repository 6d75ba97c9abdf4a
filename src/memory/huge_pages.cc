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

/// CPU time of a huge page, at most: what the faults of 512 small pages take. It takes a tenth of that, but for a
/// virtual machine, where the host may have to find the memory first, twice as much and more.
constexpr std::chrono::nanoseconds kMaxCpuTimePerHugePage{1'000'000};
/// Its time by the clock, at most. Beyond the CPU time it waits: for the work of other CPUs, mostly for microseconds;
/// for the host, for compaction or for a lock of the kernel's, where nothing bounds it.
constexpr std::chrono::nanoseconds kMaxTimePerHugePage{10'000'000};
std::atomic<bool> slow{false};  ///< one took longer

std::chrono::nanoseconds read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

bool collapse(std::span<std::byte> memory) {
  for (std::size_t at = 0; at < memory.size(); at += kHugePage) {
    // The kernel makes them of small ones only. The last byte: what is in use lies before it.
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
  // Mostly there is room right beside the last one.
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
  // The kernel makes huge pages of small ones only: of one and a hole, here.
  for (std::size_t at = 0; at < huge.size(); at += kHugePage) {
    if (::pwrite(file, "", 1, static_cast<off_t>(place + before + at)) != 1) return {};
  }
  // Linux 6.1 and later. Asked for by name, they do not depend on the settings for shared memory in general.
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
  // The kernel waits for each CPU once per call, whatever that is for: so one first, then twice as many each time.
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
