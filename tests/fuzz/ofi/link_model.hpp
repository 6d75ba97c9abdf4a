// SPDX-License-Identifier: Apache-2.0
// For the fuzz target of connections between hosts: what the peer's messages mean, told a second time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "fabric/ofi/layout/link_messages.hpp"

namespace wherry::fuzz {

/// Of a segment.
inline constexpr std::size_t kPage = 4096;
/// Of what the program exposes.
inline constexpr std::size_t kExposed = 3 * kPage;

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void read_all(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (const std::byte each : bytes) sum += std::to_integer<unsigned>(each);
  require(sum != 1U << 31);  // So that the reads are not optimised away.
}

/// What an honest reading of link_messages.hpp makes of the peer's messages.
class LinkModel {
 public:
  explicit LinkModel(std::size_t peer_bytes) : peer_bytes_(peer_bytes) {}

  void on_word(std::uint64_t data) {
    const std::size_t slot = fabric::ofi::layout::slot_of(data);
    if (is_broken_) return;
    if (slot >= slots_.size()) {
      is_broken_ = true;
    } else {
      store(slots_[slot], fabric::ofi::layout::slot_value(data));
    }
  }
  /// `is_exposed`: the memory of that key holds such a word.
  void on_message(const fabric::ofi::layout::LinkMessage& message, bool is_exposed) {
    if (is_broken_) return;
    is_broken_ = !is_sensible(message, is_exposed);
    if (is_broken_) return;
    if (message.kind == static_cast<std::uint32_t>(fabric::ofi::layout::LinkKind::welcome)) is_welcome_ = true;
    if (message.kind == static_cast<std::uint32_t>(fabric::ofi::layout::LinkKind::slot)) slots_.push_back(message.a);
    if (message.kind == static_cast<std::uint32_t>(fabric::ofi::layout::LinkKind::word)) store(message.a, message.b);
  }
  void on_flush_sent(std::uint64_t number) {
    require(number > asked_);
    asked_ = number;
  }
  void on_write(std::size_t offset, std::span<const std::byte> bytes) {
    std::memcpy(segment_.data() + offset, bytes.data(), bytes.size());
  }

  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] std::size_t slots() const { return slots_.size(); }
  [[nodiscard]] std::uint64_t asked() const { return asked_; }
  [[nodiscard]] std::span<const std::byte> segment() const { return segment_; }

 private:
  static bool is_word(std::uint64_t offset) { return offset % 8 == 0 && offset < kPage; }
  [[nodiscard]] bool is_sensible(const fabric::ofi::layout::LinkMessage& message, bool is_exposed) const {
    switch (message.kind) {
      case 1:
        return !is_welcome_ && message.number == fabric::ofi::layout::kLinkVersion && message.c == peer_bytes_;
      case 2:
        return message.number == slots_.size() && slots_.size() < 256 && is_word(message.a) && message.b < 3;
      case 3:
        return is_word(message.a) && message.number < 3;
      case 4:
        return is_exposed;
      case 6:
        return message.a <= asked_;
      default:
        return message.kind == 5 || message.kind == 7 || message.kind == 8;
    }
  }
  void store(std::uint64_t offset, std::uint64_t value) { std::memcpy(segment_.data() + offset, &value, sizeof value); }

  const std::size_t peer_bytes_;
  std::array<std::byte, kPage> segment_{};
  std::vector<std::uint64_t> slots_;
  std::uint64_t asked_ = 0;
  bool is_welcome_ = false;
  bool is_broken_ = false;
};

}  // namespace wherry::fuzz
