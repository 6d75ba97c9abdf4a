// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace wherry::tools {

/// JSON as our programs print it. A path or a variable is bytes and JSON is UTF-8: what is not becomes U+FFFD. What is
/// not ASCII is written as \uNNNN, so that a terminal sees no control characters.
inline std::string json_text(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace wherry::tools
