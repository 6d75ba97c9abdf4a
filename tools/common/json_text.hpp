// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace wherry::tools {

/// Formats JSON for the output of our programs. Paths and variables are bytes, but JSON is UTF-8: invalid bytes become
/// U+FFFD. Non-ASCII characters become \uNNNN, so that a terminal sees no control characters.
inline std::string json_text(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace wherry::tools
