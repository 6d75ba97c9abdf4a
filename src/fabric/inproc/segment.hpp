// SPDX-License-Identifier: Apache-2.0
// The memory that one side brings into a connection. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/offer.hpp"

namespace wherry::fabric::inproc {

/// How the peer accesses the caller's memory.
enum class Reach : std::uint8_t {
  map,   ///< by a pointer, which it may use as long as its own end of the connection exists
  wire,  ///< only by puts, which end with the connection
};

class Segment {
 public:
  Segment() = default;
  /// Throws Error(ENOMEM, EMFILE ...).
  Segment(const Offer& offer, Reach reach);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  /// Returns the segment as the owner sees it.
  [[nodiscard]] std::span<std::byte> own() const { return {own_, bytes_}; }
  /// Returns the segment as the peer sees it: the same bytes. Valid until this object is destroyed.
  [[nodiscard]] std::byte* far() const { return far_; }

  /// Makes the caller's memory private again: later writes of the peer do not reach it.
  void give_back() noexcept;

 private:
  void share_callers_pages();

  std::byte* own_ = nullptr;
  std::byte* far_ = nullptr;
  std::size_t bytes_ = 0;
  bool shared_ = false;  // the caller's pages are replaced by ones that are also mapped at far_
  bool mapped_ = false;  // this object owns the mapping at far_
};

}  // namespace wherry::fabric::inproc
