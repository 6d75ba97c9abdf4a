// SPDX-License-Identifier: Apache-2.0
// The segment that one side brings into a connection: the caller's memory, or zeroed pages that this object owns.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <wherry/error.hpp>

#include "fabric/offer.hpp"

namespace wherry::fabric::ofi {

class OwnSegment {
 public:
  /// Throws Error(ENOMEM).
  explicit OwnSegment(const Offer& offer)
      : bytes_(offer.memory, offer.segment_bytes), mapped_(offer.memory == nullptr) {
    if (!mapped_) return;
    void* got = ::mmap(nullptr, bytes_.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) {
      throw Error(errno, "map a segment", "",
                  std::to_string(bytes_.size()) + " bytes were asked for; ask for less, or free some");
    }
    bytes_ = {static_cast<std::byte*>(got), bytes_.size()};
  }
  OwnSegment(OwnSegment&& other) noexcept : bytes_(other.bytes_), mapped_(std::exchange(other.mapped_, false)) {}
  OwnSegment& operator=(OwnSegment&&) = delete;
  ~OwnSegment() {
    if (mapped_) ::munmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  bool mapped_;
};

}  // namespace wherry::fabric::ofi
