// SPDX-License-Identifier: Apache-2.0
// Memory to register, and patterns to check it by.
#pragma once

#include <sys/mman.h>

#include <atomic>

#include "tests/scif/common.hpp"

namespace wherry::scif_test {

inline constexpr std::size_t kPage = 4096;
inline constexpr off_t kStep = 4096;
inline constexpr int kRw = SCIF_PROT_READ | SCIF_PROT_WRITE;

/// Anonymous private memory.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : bytes_(count * kPage),
        start_(
            static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(start_, bytes_); }
  // NOLINTNEXTLINE(google-explicit-constructor): a test passes it where SCIF wants the address
  operator char*() const { return start_; }
  template <class Offset>
  [[nodiscard]] char* at(Offset offset) const {
    return start_ + static_cast<std::size_t>(offset);
  }

 private:
  std::size_t bytes_;
  char* start_;
};

inline char byte_at(std::size_t i, int seed) {
  return static_cast<char>(i * 31 + (i >> 8) * 7 + static_cast<std::size_t>(seed) * 97);
}

inline void fill(char* memory, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = byte_at(i, seed);
}

inline bool is_filled(const char* memory, std::size_t bytes, int seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != byte_at(i, seed)) return false;
  }
  return true;
}

/// A child that registers pages filled with `seed`, and waits to be killed.
class Owner {
 public:
  Owner(const Listening& listening, std::size_t pages, int seed)
      : child_([this, &listening, pages, seed] {
          const Pages memory(pages);
          fill(memory, pages * kPage, seed);
          const Epd epd;
          scif_portID to = listening.port;
          if (scif_connect(epd, &to) <= 0) return false;
          *offset_ = scif_register(epd, memory, pages * kPage, 0, kRw, 0);
          while (true) ::pause();
        }) {}
  /// Of what it has registered; waits for that, once it is accepted.
  [[nodiscard]] off_t offset() const {
    while (*offset_ == 0) std::this_thread::yield();
    return *offset_;
  }
  [[nodiscard]] Child& child() { return child_; }

 private:
  SharedValue<std::atomic<off_t>> offset_;
  Child child_;
};

}  // namespace wherry::scif_test
