// SPDX-License-Identifier: Apache-2.0
// wherry://NODE:PORT/NAME?OPTIONS
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace wherry::root {

struct FileUrl {
  std::string address;                     ///< wherry://NODE:PORT
  std::string name;                        ///< of the output; absolute if it begins with /
  std::chrono::milliseconds reconnect{0};  ///< option
};

/// Throws Error(EINVAL) that says what is wrong with it.
FileUrl parse_url(std::string_view url);

}  // namespace wherry::root
