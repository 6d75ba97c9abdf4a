// SPDX-License-Identifier: Apache-2.0
// Parses URLs of files: wherry://NODE:PORT/NAME?OPTIONS
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace wherry::root {

struct FileUrl {
  std::string address;                     ///< wherry://NODE:PORT
  std::string name;                        ///< name of the output; absolute if it begins with /
  std::chrono::milliseconds reconnect{0};  ///< the option reconnect=
};

/// Throws Error(EINVAL) with the reason if the URL is invalid.
FileUrl parse_url(std::string_view url);

}  // namespace wherry::root
