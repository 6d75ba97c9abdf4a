// SPDX-License-Identifier: Apache-2.0
#include "base/readable.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace wherry {
namespace {

/// Returns a number in printf's `format` with its unit: "1.5 GB".
std::string with_unit(const char* format, double value, const char* unit) {
  std::array<char, 32> number;
  std::snprintf(number.data(), number.size(), format, value);
  return std::string(number.data()) + ' ' + unit;
}

}  // namespace

std::string human_bytes(double bytes) {
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = bytes;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  const bool fraction = value < 99.5 && (unit != 0 || value != std::floor(value));
  if (fraction && value < 0.95) return with_unit("%.2g", value, kUnits[unit]);
  return with_unit(fraction ? "%.1f" : "%.0f", value, kUnits[unit]);
}

std::string human_rate(std::uint64_t bytes, double seconds) {
  return seconds > 0 ? human_bytes(static_cast<double>(bytes) / seconds) + "/s" : "-";
}

std::string human_time(double seconds) {
  if (seconds >= 1) return with_unit("%.2f", seconds, "s");
  const bool milli = seconds >= 1e-3;
  const double value = seconds * (milli ? 1e3 : 1e6);
  return with_unit(value < 9.95 ? "%.1f" : "%.0f", value, milli ? "ms" : "us");
}

std::string counted(std::uint64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + ' ';
  if (count == 1) return text.append(noun);
  if (noun.ends_with('y')) return text.append(noun.substr(0, noun.size() - 1)) + "ies";
  return text.append(noun) + (noun.ends_with("ch") ? "es" : "s");
}

}  // namespace wherry
