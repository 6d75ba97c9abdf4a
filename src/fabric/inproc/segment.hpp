// SPDX-License-Identifier: Apache-2.0
// The memory one side brings into a connection. May include: base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/offer.hpp"

namespace wherry::fabric::inproc {

/// How the peer gets at memory of the caller's.
enum class Reach : std::uint8_t {
  map,   ///< by a pointer of its own, that it may use for as long as its own connection lives
  wire,  ///< by puts only, which end with the connection
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

  /// As the owner sees it.
  [[nodiscard]] std::span<std::byte> own() const { return {own_, bytes_}; }
  /// As the peer sees it: the same bytes, valid until this object dies, whatever the owner does.
  [[nodiscard]] std::byte* far() const { return far_; }

  /// The caller has its memory for itself again: what the peer may still write no longer reaches it.
  void give_back() noexcept;

 private:
  void share_callers_pages();

  std::byte* own_ = nullptr;
  std::byte* far_ = nullptr;
  std::size_t bytes_ = 0;
  bool shared_ = false;  // the caller's pages are replaced by ones that are also mapped at far_
  bool mapped_ = false;  // far_ is a mapping of this object's
};

}  // namespace wherry::fabric::inproc
