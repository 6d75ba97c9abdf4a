// SPDX-License-Identifier: Apache-2.0
// For fuzz targets: decisions, read from the front of the input. An input that is used up gives zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace wherry::fuzz {

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  template <class Number>
  Number number() {
    Number value{};
    const std::size_t n = std::min(sizeof value, bytes_.size());
    std::memcpy(&value, bytes_.data(), n);
    bytes_ = bytes_.subspan(n);
    return value;
  }

  /// Never when the input is used up, so that a loop over it ends.
  bool one_in(std::uint8_t chances) { return !empty() && number<std::uint8_t>() % chances == 1; }

  std::span<const std::uint8_t> take(std::size_t most) {
    const auto taken = bytes_.first(std::min(most, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace wherry::fuzz
