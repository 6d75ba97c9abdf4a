// SPDX-License-Identifier: Apache-2.0
// Valid names of jobs and fabrics. They become parts of socket names and addresses, so no character may need quoting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace wherry {

inline constexpr std::size_t kMaxJobNameLength = 64;

/// [A-Za-z0-9._-]{1,64}
constexpr bool is_job_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kMaxJobNameLength && std::all_of(name.begin(), name.end(), allowed);
}

/// [a-z0-9+-]+
constexpr bool is_fabric_name(std::string_view name) {
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace wherry
