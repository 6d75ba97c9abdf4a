// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry {

/// Three pages of which the middle one is not mapped, and stays so: the kernel fills the highest gaps first, and these
/// lie far below all others.
class PagesWithAHole {
 public:
  static constexpr std::size_t kPage = 4096;

  PagesWithAHole() {
    auto* const low = std::bit_cast<void*>(std::uintptr_t{1} << 28);
    void* start = ::mmap(low, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(start, low);
    bytes_ = {static_cast<std::byte*>(start), 3 * kPage};
    EXPECT_EQ(::munmap(hole().data(), kPage), 0);
  }
  PagesWithAHole(const PagesWithAHole&) = delete;
  PagesWithAHole& operator=(const PagesWithAHole&) = delete;
  ~PagesWithAHole() {
    ::munmap(bytes_.data(), kPage);
    ::munmap(bytes_.data() + 2 * kPage, kPage);
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> hole() const { return bytes_.subspan(kPage, kPage); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace wherry
