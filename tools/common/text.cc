// SPDX-License-Identifier: Apache-2.0
#include "common/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace wherry::tools {
std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = bytes;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  const bool fraction = value < 99.5 && (unit != 0 || value != std::floor(value));
  if (fraction && value < 0.95) return fmt::format("{:.2g} {}", value, kUnits[unit]);
  return fraction ? fmt::format("{:.1f} {}", value, kUnits[unit]) : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

std::string human_rate(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? human_bytes(static_cast<double>(bytes) / seconds) + "/s" : "-";
}

std::string human_time(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  const bool milli = seconds >= 1e-3;
  const double value = seconds * (milli ? 1e3 : 1e6);
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, milli ? "ms" : "us");
}

std::string counted(std::uint64_t count, std::string_view noun) {
  const bool one = count == 1;
  if (!one && noun.ends_with('y')) return fmt::format("{} {}ies", count, noun.substr(0, noun.size() - 1));
  return fmt::format("{} {}{}", count, noun, one ? "" : noun.ends_with("ch") ? "es" : "s");
}

}  // namespace wherry::tools
