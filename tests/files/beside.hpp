// SPDX-License-Identifier: Apache-2.0
// What files_changer and its reader share: the bytes that the file must have, and how a reader may find it for a
// moment.
#pragma once

#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "tests/files/truth.hpp"

struct Beside {
  Truth truth{};
  /// The clock after another process made the file shorter. docs/files.md: until 12 ms later a read in the page in
  /// which the file ends may find zeros behind the end.
  std::atomic<std::uint64_t> shortened{0};
  /// How often another file was given the name. A descriptor from before has the older file.
  std::atomic<std::uint64_t> replaced{0};
};

constexpr std::uint64_t kWindow = 12'000'000;  // ns
constexpr std::size_t kPageBytes = 4096;

inline std::uint64_t clock_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline Beside& map_beside(int descriptor) {
  void* const shared = mmap(nullptr, sizeof(Beside), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  want(shared != MAP_FAILED, "mmap");
  return *static_cast<Beside*>(shared);
}

/// What the reader is to do before it answers.
struct Turn {
  std::uint32_t reads = 0;
  std::uint32_t changes = 0;  ///< that it makes itself, before its reads
};

/// All of a reader's reads up to now.
struct ReadsMade {
  std::uint64_t reads = 0;
  std::uint64_t unseen = 0;  ///< by the kernel
};
