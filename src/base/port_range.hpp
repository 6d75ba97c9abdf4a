// SPDX-License-Identifier: Apache-2.0
// The TCP ports that Wherry may use: WHERRY_PORTS, as FIRST-LAST.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry {

struct PortRange {
  std::uint16_t first;
  std::uint16_t last;

  /// Empty: the text is not a range of ports from 1024 to 65535.
  static std::optional<PortRange> parse(std::string_view text) {
    constexpr std::uint16_t kFirstUnprivileged = 1024;
    PortRange range{};
    const auto [hyphen, error] = std::from_chars(text.data(), text.data() + text.size(), range.first);
    const char* const end = text.data() + text.size();
    if (error != std::errc() || hyphen == end || *hyphen != '-') return std::nullopt;
    const auto [stop, wrong] = std::from_chars(hyphen + 1, end, range.last);
    if (wrong != std::errc() || stop != end) return std::nullopt;
    if (range.first < kFirstUnprivileged || range.last < range.first) return std::nullopt;
    return range;
  }

  [[nodiscard]] std::uint32_t size() const { return std::uint32_t{1} + last - first; }
  [[nodiscard]] std::string to_string() const { return std::to_string(first) + "-" + std::to_string(last); }
};

}  // namespace wherry
