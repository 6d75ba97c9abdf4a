// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <ostream>
#include <system_error>

#include <wherry/result.hpp>

namespace wherry {
namespace {

std::string byte_count(std::size_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

std::string error_text(int error) {
  const char* name = strerrorname_np(error);
  return std::system_category().message(error) + (name != nullptr ? " (" + std::string(name) + ")" : "");
}

}  // namespace

std::string Result::to_string() const {
  switch (status) {
    case Status::moved:
      return byte_count(bytes);
    case Status::would_block:
      return "would block";
    case Status::end:
      return "end";
    case Status::failed:
      break;
  }
  return error_text(error) + (bytes != 0 ? " after " + byte_count(bytes) : "");
}

std::ostream& operator<<(std::ostream& to, const Result& result) { return to << result.to_string(); }

}  // namespace wherry
